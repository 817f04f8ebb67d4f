// Work that this thread does without its commands, to learn which programs it needs before any of
// them is enqueued.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace ocltensor::opencl {

class Program;

// While an object lives, launches and transfers of this thread are dropped, on every stream, and
// waiting for a result throws Error(TB_E_STATE). Objects nest: programs go to the innermost.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;

  // The innermost of this thread, or nullptr.
  static DryRun* here() {
    if (count_.load(std::memory_order_relaxed) == 0) [[likely]]
      return nullptr;
    return innermost();
  }
  static bool is_on() { return here() != nullptr; }

  void note(std::shared_ptr<Program> program) { missing_.push_back(std::move(program)); }
  const std::vector<std::shared_ptr<Program>>& missing() const { return missing_; }

 private:
  static DryRun* innermost();
  static inline std::atomic<int> count_{0};  // in all threads
  DryRun* outer_;
  std::vector<std::shared_ptr<Program>> missing_;
};

}  // namespace ocltensor::opencl
