// The case descriptors: for each operator family, how to make valid random arguments.
#pragma once

#include <span>
#include <vector>

#include "draw.h"

namespace ocltensor::testing {

struct FamilyCases {
  const char* family;
  // Does ATen define the operator for this type of its leading tensor?
  bool (*accepts)(const Operator& op, DType dtype);
  Case (*make)(const Operator& op, DType dtype, Draw& draw);
};

// nullptr for a family without a descriptor.
const FamilyCases* find_cases(std::string_view family);

// A descriptor for each file of cases/.
#define OCLTENSOR_FAMILY(name) const FamilyCases& name##_cases();
#include "base/families.def"
#undef OCLTENSOR_FAMILY

// ---- helpers of the generators

inline constexpr DType kTestedTypes[] = {
    DType::Bool,  DType::UInt8,   DType::Int8,     DType::Int16,   DType::Int32,
    DType::Int64, DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

// Those that cases are made for: complex types only where a family accepts them.
inline constexpr DType kSuiteTypes[] = {DType::Bool,    DType::UInt8,     DType::Int8,
                                        DType::Int16,   DType::Int32,     DType::Int64,
                                        DType::Float16, DType::BFloat16,  DType::Float32,
                                        DType::Float64, DType::Complex64, DType::Complex128};

// Reasons for tolerances, shared by several families.
inline constexpr const char* kWhyExact = "moves or selects values, no arithmetic";
inline constexpr const char* kWhySum =
    "a sum of n products loses about sqrt(n) eps of the sum of their absolute values";

inline Tolerance exact() { return {Scale::Bits, 0, 1, 1, nullptr, kWhyExact}; }
inline Tolerance sum_of(double terms, const char* op = nullptr, double k = 4) {
  return {Scale::Absolute, k, terms, 1, op, kWhySum};
}
inline Dims dims_of(const std::vector<int64_t>& values) {
  return Dims(std::span<const int64_t>(values));
}
inline std::vector<int64_t> list_of(std::span<const int64_t> values) {
  return {values.begin(), values.end()};
}

}  // namespace ocltensor::testing
