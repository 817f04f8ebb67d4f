// Sums over everything recorded: operators, kernels, copies, CPU fallbacks, program builds.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/observe/profiler.h"

namespace ocltensor::opencl::profiler::statistics {

enum class Kind : uint32_t { Operator = 1, Kernel, Copy, Fallback, Build, Load, Hit };
inline constexpr uint32_t kKindCount = 7;
// The name of a kind: "operators".
const char* name(Kind kind);

struct Row {
  std::string name;
  uint64_t count = 0;
  int64_t total_ns = 0;    // on the device for operators, kernels and copies; else of the host
  int64_t longest_ns = 0;  // of one call
  int64_t host_ns = 0;     // what the calls took on the host
  uint64_t bytes = 0;      // of copies, and of the copies of fallbacks
  double mean_ns() const {
    return count == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(count);
  }
};

void add(const Call& call);
void add(const DeviceWork& work);
// To be called when all commands of a call have finished; `ns` is the sum of their times.
void add_device_time(const Call& call, int64_t ns);

// Longest total first, without commands that are still running.
std::vector<Row> rows(Kind kind);
void reset();

// A readable table with a title; a line that says so if there are no rows.
std::string table(Kind kind);

}  // namespace ocltensor::opencl::profiler::statistics
