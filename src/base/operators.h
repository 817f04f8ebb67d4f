// The operator table: every operator once, with its ATen schema, family, and the inference of its
// outputs. Hosts and backends look operators up here; what a backend implements is its own list, by
// the same names.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "schema.h"
#include "value.h"

namespace ocltensor {

// What an operator's output will be: contiguous unless `strides` is set.
struct TensorSpec {
  DType dtype = DType::Float32;
  Dims sizes;
  Dims strides;  // empty: contiguous
};

// Shapes and dtypes in, shapes and dtypes out, one entry per out argument. Throws TB_E_INVALID with
// ATen's meaning for arguments that do not fit. An output that the call does not produce
// (output_mask) gets sizes [0].
using InferFunction = std::vector<TensorSpec> (*)(const Args&);

enum OperatorFlags : uint32_t {
  kDataDependentShape =
      TB_OP_DATA_DEPENDENT_SHAPE,  // inferred sizes are an upper bound; the backend resizes
  kRandom = TB_OP_RANDOM,
};

struct Operator {
  Schema schema;
  const char* text;    // the schema as written
  const char* family;  // "pointwise", ...
  InferFunction infer;
  uint32_t flags;
  std::string name;  // schema.full_name()
};

std::span<const Operator> operators();
const Operator* find_operator(std::string_view name);  // nullptr if unknown

}  // namespace ocltensor
