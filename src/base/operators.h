// The operator table: every operator once, with its ATen schema, family, and the inference of its
// outputs. Hosts and backends look operators up here; each backend has its own list of the
// operators that it implements, under the same names.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "schema.h"
#include "value.h"

namespace ocltensor {

// What an operator's output will be: contiguous unless `strides` is set (LayoutRule).
struct TensorSpec {
  DType dtype = DType::Float32;
  Dims sizes;
  Dims strides;  // empty: contiguous
};

// Computes the outputs' shapes and dtypes from the inputs', one entry per out argument. Throws
// TB_E_INVALID for arguments that ATen refuses. An output that the call does not produce
// (output_mask) gets sizes [0].
using InferFunction = std::vector<TensorSpec> (*)(const Args&);

// Properties of an operator, from its row in the table. Code that treats operators differently
// tests a flag, never a name.
enum OperatorFlags : uint32_t {
  // Flags that the ABI reports (tb_op_info.flags).
  kDataDependentShape =
      TB_OP_DATA_DEPENDENT_SHAPE,  // inferred sizes are an upper bound; the backend resizes
  kRandom = TB_OP_RANDOM,
  kAbiFlags = kDataDependentShape | kRandom,

  // Flags for hosts (call_plan.h).
  kPointwise = 1u << 16,       // an element of the result depends on one element of each operand
  kExactType = 1u << 17,       // outputs must have the inferred type: no conversion
  kAnyType = 1u << 18,         // a constructor: writes its numbers to an output of any type
  kStartsFromSelf = 1u << 19,  // changes a part of `self`; the output may be `self`
  kNoOverlap = 1u << 20,       // refuses outputs that share memory with an argument
  kNeverFallsBack = 1u << 21,  // changes arguments that its schema does not mark

  // Flags for backends and inference.
  kLogVariant = 1u << 22,     // the logarithm of what its twin computes
  kRealOfComplex = 1u << 23,  // returns a real number for a complex one
  kNeedsBound = 1u << 24,     // at least one of min and max must be given
  kWholeExponent = 1u << 25,  // takes no negative exponent for integers
};

// The strides of new results, of tensors by their positions among the arguments; layouts.h computes
// them. A format is ATen's: channels_last, or contiguous.
enum class LayoutRule : uint8_t {
  Contiguous,      // or what inference says, as for pointwise operators
  LikeFirst,       // the first result has the order of dimensions of the first tensor
  LikeFirstTwo,    // the strides of an elementwise result of the first two
  LikeNormalized,  // the same, but where their formats differ, that of the second
  LikeTheNext,     // each result has the order of the tensor one place behind its own
  FormatOfFirst,
  FormatOfSecond,
  FormatOfConvolution,          // channels_last if the input or the weight is
  FormatOfConvolutionBackward,  // the same, behind the result's gradient
  Columns,                      // a matrix of contiguous columns, whose size the backend finds out
};

struct Operator {
  Schema schema;
  const char* text;    // the schema as written
  const char* family;  // "pointwise", ...
  InferFunction infer;
  uint32_t flags;   // those of kAbiFlags
  uint32_t traits;  // the others
  LayoutRule layout;
  std::string name;  // schema.full_name()

  bool is(OperatorFlags flag) const { return ((flags | traits) & flag) != 0; }
};

std::span<const Operator> operators();
const Operator* find_operator(std::string_view name);  // nullptr if unknown

}  // namespace ocltensor
