// A step of a plan that launches a kernel.
#pragma once

#include "kernel.h"
#include "plan.h"

namespace torch_ocl::plan {

// A tensor or a number of the run, or an integer.
struct LaunchArgument {
  std::optional<size_t> value;
  Integer integer;
};

class TORCH_OCL_API Launch final : public Step {
 public:
  // One to three numbers of work-items, and as many of a group's, or none.
  Launch(KernelReference kernel, std::vector<LaunchArgument> arguments, Integers threads,
         Integers group);
  void run(Run& run) const override;

 private:
  LaunchRange range(const Values& values) const;

  KernelReference kernel_;
  std::vector<LaunchArgument> arguments_;
  Integers threads_, group_;
  LaunchRange fixed_;  // if neither varies
};

}  // namespace torch_ocl::plan
