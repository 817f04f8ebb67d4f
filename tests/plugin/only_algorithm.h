// What a product runs by in tests: one algorithm, so far as it can be.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/config.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl::matmul {

// Disables all algorithms of products but that of this id. What it cannot do the others still do.
inline void disable_all_but(std::string_view id) {
  std::string others;
  for (const Algorithm* a : matmul_algorithms().algorithms())
    if (a->id != id) others += fmt::format("{}{}", others.empty() ? "" : ",", a->id);
  config::set("OCLTENSOR_DISABLED_ALGORITHMS", others);
}

}  // namespace ocltensor::opencl::matmul
