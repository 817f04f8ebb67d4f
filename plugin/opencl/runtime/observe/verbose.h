// Lines that a setting asked for (OCLTENSOR_VERBOSE, OCLTENSOR_DEBUG_ALLOCATOR): to standard error,
// whatever the level of the log.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace ocltensor::opencl {

inline void print_verbose(std::string_view component, std::string_view line) {
  std::string whole = "[ocltensor] ";
  whole.append(component).append(": ").append(line).append("\n");
  std::fwrite(whole.data(), 1, whole.size(), stderr);  // one call keeps lines of threads apart
}

}  // namespace ocltensor::opencl
