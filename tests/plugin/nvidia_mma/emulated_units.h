// What tests of kernels for matrix units share where no device has them: the first device, whose
// units are OpenCL C.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/config.h"
#include "nvidia/device_facts.h"
#include "runtime/device/device.h"

namespace ocltensor::opencl::nvidia_mma {

// The parameter is a value of OCLTENSOR_NVIDIA_MMA.
class EmulatedUnits : public testing::TestWithParam<const char*> {
 protected:
  // Skips the test where this process has opened the device with other settings.
  void open(const char* emulated) {
    setenv("OCLTENSOR_KERNEL_STYLE", "gpu", 1);
    setenv("OCLTENSOR_NVIDIA_MMA", emulated, 1);
    if (device(0).caps().style != KernelStyle::Gpu || !nvidia::facts(device(0).caps()).emulated_mma)
      GTEST_SKIP() << "SKIPPED: the device is open with other settings already; needs a process of "
                      "its own";
  }
  void TearDown() override {
    unsetenv("OCLTENSOR_NVIDIA_MMA");
    config::reset();
  }
};

}  // namespace ocltensor::opencl::nvidia_mma
