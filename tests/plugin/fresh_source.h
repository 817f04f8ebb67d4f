// Programs that no cache on disk has.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <string>

#include "runtime/kernels/find_kernel.h"

namespace ocltensor::opencl {

// A source with the kernel `later`, which has a text of this process alone.
inline Source fresh_source(const char* body) {
  static std::deque<std::string> texts;  // as long as the process
  texts.push_back(fmt::format(
      "// {} {}\n__kernel void later(__global int *base, ulong offset, int value) {{ {} }}\n",
      getpid(), texts.size(), body));
  return {"test/later.cl", texts.back().c_str()};
}
inline constexpr const char* kStores = "base[offset / 4] = value;";

// Builders do not know these programs, and a process's first program is built at once.
inline void open_compiler(Stream& stream) {
  setenv("OCLTENSOR_BUILD_AHEAD", "0", 1);
  static const Source source = fresh_source(kStores);
  (void)find_kernel(stream, source, "later", {});
}

}  // namespace ocltensor::opencl
