// OpenCL's C++ bindings (clhpp), whose classes own objects and ask them. A long header: those that
// operators include name the classes only, which opencl.h declares.
#pragma once

#include "runtime/driver/opencl.h"

// Without exceptions: codes are raised by check_cl, with the name of the call.
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#include <CL/opencl.hpp>

namespace ocltensor::opencl {

// One more reference, for another owner of the handle. (A copy of clhpp's owners goes on without
// one if the driver refuses it, and releases it all the same.)
template <typename T>
cl_int add_reference(T handle) {
  return ::cl::detail::ReferenceHandler<T>::retain(handle);
}

// A handle that others own as an object of clhpp, to be asked: no reference is taken or released.
template <typename T>
class View {
 public:
  explicit View(typename T::cl_type handle) : object_(handle) {}
  ~View() { object_() = nullptr; }
  View(const View&) = delete;
  const T& operator*() const { return object_; }
  const T* operator->() const { return &object_; }

 private:
  T object_;
};

}  // namespace ocltensor::opencl
