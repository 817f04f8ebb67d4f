// The thread's default device.
#include "ocltensor/options.h"

namespace ocltensor {
namespace {

Device& current() noexcept {
  thread_local Device device;
  return device;
}

}  // namespace

Device default_device() noexcept { return current(); }

DefaultDevice::DefaultDevice(Device device) noexcept : before_(current()) { current() = device; }
DefaultDevice::~DefaultDevice() { current() = before_; }

}  // namespace ocltensor
