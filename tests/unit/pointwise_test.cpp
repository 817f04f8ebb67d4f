// Resolving pointwise calls: variants by option have types of their own.
#include "base/pointwise.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace ocltensor {
namespace {

DType type_of_division(DType operands, const char* mode) {
  const Operator* op = find_operator("div.out_mode");
  tb_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = to_abi(operands);
  std::array<tb_value, 3> values{};
  values[0].tag = values[1].tag = TB_TENSOR;
  values[0].as.p = values[1].as.p = &t;
  if (mode != nullptr) {
    values[2].tag = TB_STRING;
    values[2].count = static_cast<uint32_t>(std::strlen(mode));
    values[2].as.p = mode;
  }
  return resolve_pointwise(Args(op->schema, values)).result;
}

TEST(Pointwise, AnOptionHasItsOwnTypeRule) {
  EXPECT_EQ(type_of_division(DType::Int64, nullptr), DType::Float32);
  EXPECT_EQ(type_of_division(DType::Int64, "floor"), DType::Int64);
  EXPECT_EQ(type_of_division(DType::UInt8, "trunc"), DType::UInt8);
  EXPECT_EQ(type_of_division(DType::Float64, "floor"), DType::Float64);
}

TEST(Pointwise, AnUnknownOptionIsRefused) {
  EXPECT_THROW(type_of_division(DType::Float32, "ceil"), Error);
}

}  // namespace
}  // namespace ocltensor
