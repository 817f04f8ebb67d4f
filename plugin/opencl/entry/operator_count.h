// The number of operators that have run, for tb_counters.
#pragma once

#include <atomic>
#include <cstdint>

namespace ocltensor::opencl {
std::atomic<uint64_t>& operators_run();
}
