// How many successive integers a type holds: the range of random_(), the same in every backend.
#pragma once

#include <cstdint>

#include "ocltensor/dtype.h"

namespace ocltensor {

// Successive integers from 0 on that the type represents exactly; of 64-bit types those of int64,
// as in PyTorch.
constexpr uint64_t whole_numbers(DType type) {
  switch (type) {
    case DType::Bool: return 2;
    case DType::UInt8: return 1u << 8;
    case DType::Int8: return 1u << 7;
    case DType::Int16: return 1u << 15;
    case DType::Int32: return 1u << 31;
    case DType::UInt16: return 1u << 16;
    case DType::UInt32: return uint64_t{1} << 32;
    case DType::UInt64:
    case DType::Int64: return uint64_t{1} << 63;
    case DType::Float16: return (1u << 11) + 1;
    case DType::BFloat16: return (1u << 8) + 1;
    case DType::Float32: return (1u << 24) + 1;
    default: return (uint64_t{1} << 53) + 1;
  }
}

}  // namespace ocltensor
