// The dry runs of each thread.
#include "dry_run.h"

namespace ocltensor::opencl {
namespace {

thread_local DryRun* current = nullptr;

}  // namespace

DryRun::DryRun() : outer_(current) {
  current = this;
  count_.fetch_add(1, std::memory_order_relaxed);
}

DryRun::~DryRun() {
  current = outer_;
  count_.fetch_sub(1, std::memory_order_relaxed);
}

DryRun* DryRun::innermost() { return current; }

}  // namespace ocltensor::opencl
