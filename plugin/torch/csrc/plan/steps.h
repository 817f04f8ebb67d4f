// The steps of a plan that need neither an operator nor a kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include "plan.h"

namespace torch_ocl::plan {

// at::empty_strided.
class TORCH_OCL_API Allocate final : public Step {
 public:
  Allocate(size_t to, Integers sizes, Integers strides, c10::TensorOptions options)
      : to_(to), sizes_(std::move(sizes)), strides_(std::move(strides)), options_(options) {}
  void run(Run& run) const override;

 private:
  size_t to_;
  Integers sizes_, strides_;
  c10::TensorOptions options_;
};

// The same memory with other sizes, from an offset on that is added to the tensor's own.
class TORCH_OCL_API View final : public Step {
 public:
  View(size_t to, size_t from, Integers sizes, Integers strides, Integer offset)
      : to_(to),
        from_(from),
        sizes_(std::move(sizes)),
        strides_(std::move(strides)),
        offset_(std::move(offset)) {}
  void run(Run& run) const override;

 private:
  size_t to_, from_;
  Integers sizes_, strides_;
  Integer offset_;
};

// Another name for a value.
class TORCH_OCL_API Copy final : public Step {
 public:
  Copy(size_t to, size_t from) : to_(to), from_(from) {}
  void run(Run& run) const override { run.values[to_] = run.values[from_]; }

 private:
  size_t to_, from_;
};

class TORCH_OCL_API Free final : public Step {
 public:
  explicit Free(std::vector<size_t> places) : places_(std::move(places)) {}
  void run(Run& run) const override;

 private:
  std::vector<size_t> places_;
};

class TORCH_OCL_API Compute final : public Step {
 public:
  Compute(size_t to, Integer integer) : to_(to), integer_(std::move(integer)) {}
  void run(Run& run) const override { run.values[to_] = integer_.evaluate(run.values); }

 private:
  size_t to_;
  Integer integer_;
};

// One of several results.
class TORCH_OCL_API Item final : public Step {
 public:
  Item(size_t to, size_t from, size_t index) : to_(to), from_(from), index_(index) {}
  void run(Run& run) const override;

 private:
  size_t to_, from_, index_;
};

// Sizes and strides are as the compiler was told; else `refuse` is run, whose error says so. Where
// there is one element along an axis, its stride is of no account.
class TORCH_OCL_API CheckSizes final : public Step {
 public:
  CheckSizes(size_t value, Integers sizes, Integers strides, std::unique_ptr<Step> refuse)
      : value_(value),
        sizes_(std::move(sizes)),
        strides_(std::move(strides)),
        refuse_(std::move(refuse)) {}
  void run(Run& run) const override;

 private:
  size_t value_;
  Integers sizes_, strides_;
  std::unique_ptr<Step> refuse_;
};

// A tensor begins at a multiple of some bytes of its memory.
class TORCH_OCL_API CheckOffset final : public Step {
 public:
  CheckOffset(size_t value, int64_t bytes, std::unique_ptr<Step> refuse)
      : value_(value), bytes_(bytes), refuse_(std::move(refuse)) {}
  void run(Run& run) const override;

 private:
  size_t value_;
  int64_t bytes_;
  std::unique_ptr<Step> refuse_;
};

class TORCH_OCL_API EnterDevice final : public Step {
 public:
  explicit EnterDevice(c10::DeviceIndex device) : device_(device) {}
  void run(Run& run) const override;

 private:
  c10::DeviceIndex device_;
};

class TORCH_OCL_API LeaveDevice final : public Step {
 public:
  void run(Run& run) const override;
};

}  // namespace torch_ocl::plan
