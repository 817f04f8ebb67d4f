// Handles of a backend's objects, destroyed with their last copy.
#pragma once

#include "base/log.h"
#include "host/core/backend.h"

namespace ocltensor {

template <typename Handle>
struct OwnedHandle {
  using Destroy = tb_status (*)(Handle, tb_error*);
  Device device;
  Handle handle;
  // `destroy`: of the backend's table; nullptr: the object is not ours. `component`, `what`: for
  // the log.
  OwnedHandle(Device d, Handle h, Destroy destroy, const char* component, const char* what)
      : device(d), handle(h), destroy_(destroy), component_(component), what_(what) {}
  OwnedHandle(const OwnedHandle&) = delete;
  ~OwnedHandle() {
    if (destroy_ == nullptr) return;
    ErrorBuffer error;
    if (destroy_(handle, error.get()) < 0)
      logging::error(component_, "destroying {} of {} failed: {}", what_, device.text(),
                     error.text());
  }

 private:
  Destroy destroy_;
  const char *component_, *what_;
};

}  // namespace ocltensor
