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

// What is true of an operator, as its row in the table says it. Who decides something by an
// operator asks for a flag, never for a name.
enum OperatorFlags : uint32_t {
  // What the ABI tells (tb_op_info.flags).
  kDataDependentShape =
      TB_OP_DATA_DEPENDENT_SHAPE,  // inferred sizes are an upper bound; the backend resizes
  kRandom = TB_OP_RANDOM,
  kAbiFlags = kDataDependentShape | kRandom,

  // What hosts go by (call_plan.h).
  kPointwise = 1u << 16,       // an element of the result depends on one element of each operand
  kExactType = 1u << 17,       // outputs have the inferred type and no other: nothing is converted
  kAnyType = 1u << 18,         // a constructor, whose numbers an output of any type takes
  kStartsFromSelf = 1u << 19,  // changes a part of `self`, which the output may be
  kNoOverlap = 1u << 20,       // refuses outputs that share memory with an argument
  kNeverFallsBack = 1u << 21,  // changes arguments that its schema does not mark

  // What backends and inference go by.
  kLogVariant = 1u << 22,     // the logarithm of what its twin computes
  kRealOfComplex = 1u << 23,  // of a complex number it returns a real one
  kNeedsBound = 1u << 24,     // at least one of min and max must be given
  kWholeExponent = 1u << 25,  // of integers it takes no negative exponent
};

struct Operator {
  Schema schema;
  const char* text;    // the schema as written
  const char* family;  // "pointwise", ...
  InferFunction infer;
  uint32_t flags;    // those of kAbiFlags
  uint32_t traits;   // the others
  std::string name;  // schema.full_name()

  bool is(OperatorFlags flag) const { return ((flags | traits) & flag) != 0; }
};

std::span<const Operator> operators();
const Operator* find_operator(std::string_view name);  // nullptr if unknown

}  // namespace ocltensor
