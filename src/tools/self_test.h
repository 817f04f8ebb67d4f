// A short test of one device: correctness, and the speed of memory and launches.
#pragma once

#include <ocltensor/ocltensor.h>

namespace tools {

struct SelfTest {
  bool right = false;            // a sum of two random tensors equals the host's
  double copy_gb_per_s = 0;      // bytes read and written by a 64 MiB device copy
  double upload_gb_per_s = 0;    // 64 MiB from ordinary memory
  double download_gb_per_s = 0;  // 64 MiB to ordinary memory
  double launch_us = 0;      // one of 1000 dependent additions of 256 elements, host call included
  double round_trip_us = 0;  // one addition and a wait
  double first_result_ms = 0;  // of the first operator: driver, context and program included
};

SelfTest run_self_test(ocltensor::Device device);

}  // namespace tools
