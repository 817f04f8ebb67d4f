// Matrix units of vendors whose devices are known by their compilers alone: the table of their
// architectures.
#pragma once

#include <cstdint>
#include <span>

#include "ocltensor/dtype.h"

namespace ocltensor::opencl::matrix_units {

// UNIT of kernels/matrix_units/include/matrix_unit.h.
enum class Unit : uint8_t { AmdDot = 1, AmdMfma, AmdWmma, IntelXmx };

// What is multiplied; sums are floats, of int8 int32.
enum class Kind : uint8_t { Half, BFloat, Float, Int8 };
inline constexpr size_t kKinds = 4;
constexpr DType type_of(Kind kind) {
  constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Int8};
  return kTypes[static_cast<int>(kind)];
}
constexpr int64_t bytes_of(Kind kind) {
  constexpr int64_t kBytes[] = {2, 2, 4, 1};
  return kBytes[static_cast<int>(kind)];
}

// A set of kinds.
using Kinds = uint8_t;
constexpr Kinds set_of(Kind kind) { return static_cast<Kinds>(1u << static_cast<unsigned>(kind)); }
constexpr bool has(Kinds kinds, Kind kind) { return (kinds & set_of(kind)) != 0; }

struct Architecture {
  const char* name;  // in OCLTENSOR_MATRIX_UNITS; of AMD's devices, theirs
  Unit unit;
  int64_t generation;  // GENERATION of the unit's header
  uint32_t lanes;      // of a sub-group; 1: any will do
  Kinds kinds;
  // Of Intel's devices: part of the name of those that have the unit, whatever their drivers'
  // extensions say; and how many of their compute units share local memory.
  const char* alike = nullptr;
  int64_t compute_units_together = 1;
};

std::span<const Architecture> architectures();

}  // namespace ocltensor::opencl::matrix_units
