// What tests of kernels for matrix units share where no device has them: the first device, whose
// unit is OpenCL C.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/config.h"
#include "matrix_units/device_facts.h"
#include "runtime/device/device.h"

namespace ocltensor::opencl::matrix_units {

// The parameter is a value of OCLTENSOR_MATRIX_UNITS.
class EmulatedUnit : public testing::TestWithParam<const char*> {
 protected:
  // Skips the test where this process has opened the device with other settings.
  void open(const char* emulated) {
    setenv("OCLTENSOR_KERNEL_STYLE", "gpu", 1);
    setenv("OCLTENSOR_MATRIX_UNITS", emulated, 1);
    const DeviceFacts& seen = facts(device(0).caps());
    const std::string wanted = std::string(emulated).substr(std::string("emulated:").size());
    if (device(0).caps().style != KernelStyle::Gpu || !seen.emulated ||
        seen.architecture->name != wanted)
      GTEST_SKIP() << "SKIPPED: the device is open with other settings already; needs a process of "
                      "its own";
  }
  void TearDown() override {
    unsetenv("OCLTENSOR_MATRIX_UNITS");
    config::reset();
  }
};

}  // namespace ocltensor::opencl::matrix_units
