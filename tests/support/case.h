// One test case: an operator with owned arguments, the layouts they have in device memory, and the
// tolerance of its outputs. Generators make it; conformance tests run it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/operators.h"
#include "host_tensor.h"

namespace ocltensor::testing {

// Where the elements of a tensor lie in its storage, in elements.
struct Layout {
  Dims strides;
  int64_t offset = 0;   // of element (0, 0, ...)
  int64_t storage = 0;  // elements of the whole storage
};

struct TensorData {
  HostTensor value;
  Layout layout;
};

// "None", a number, a string, a dtype, lists, a tensor, tensors with holes, or "a generator".
struct GeneratorArgument {};
using TensorPtr = std::shared_ptr<const TensorData>;
using CaseValue = std::variant<std::monostate, Scalar, std::string, DType, std::vector<int64_t>,
                               std::vector<double>, std::vector<bool>, TensorPtr,
                               std::vector<TensorPtr>, GeneratorArgument>;

// What the error of an element is measured against.
enum class Scale : uint8_t {
  Bits,      // nothing: the same value, and the same sign of zero
  Exact,     // nothing: the same value
  Result,    // |expected|: functions that lose no digits by cancellation
  Unit,      // 1 + |expected|: functions with zeros that arguments cannot resolve (lgamma, digamma)
  Inputs,    // (1 + largest finite |input|)^degree: short formulas that cancel (lerp, gelu)
  Absolute,  // the operator `scale_op` on |inputs|: sums of products
  Largest,   // the largest finite |expected| of the output: normalisations, chains of the above
  FromOne,   // 1 + that: recurrences that start at 1 and may end at 0
};

// Accepts |actual - expected| <= eps(out) * |expected| + k * sqrt(terms) * eps(compute) * scale +
// smallest normal. The first term is the rounding of the result; the second the arithmetic in the
// compute type (float32 for half types), where `terms` roundings add up like a random walk; the
// third admits devices that flush denormals.
struct Tolerance {
  Scale scale = Scale::Result;
  double k = 4;
  double terms = 1;
  int degree = 1;
  const char* scale_op = nullptr;  // nullptr: the operator itself
  const char* why = "";
};

struct Case {
  const Operator* op = nullptr;
  DType dtype = DType::Float32;
  uint64_t seed = 0;
  std::vector<CaseValue> args;
  std::vector<Tolerance> tolerance;  // one per output, or one for all
  // The reference runs on the same dtypes instead of float64 copies: limits of the type matter
  // (nextafter, nan_to_num), or the numbers are random.
  bool same_type = false;
  std::vector<size_t> mutates;     // arguments that the operator updates in place
  std::optional<DType> out_dtype;  // other than inferred, of the first output
  int alias = -1;                  // argument whose memory the first output (a list: all) shares
  // Where outputs are not unique (signs of singular vectors): makes of them what is, in float64.
  // That is what references, tolerances and recorded results are about then.
  std::vector<HostTensor> (*unique)(const std::vector<HostTensor>& outs) = nullptr;
  // Where what is added up may be rounded to the output's type first, once each (weights of
  // attention, for matrix units): per output the sums of the magnitudes of what is added, in
  // float64. If the kit is asked to, half an eps(out) of them is
  // accepted, too. `wide` has float64 arguments.
  std::vector<HostTensor> (*summands)(const Case& wide) = nullptr;

  const Tolerance& tolerance_of(size_t output) const {
    return tolerance[output < tolerance.size() ? output : 0];
  }
  void set(std::string_view argument, CaseValue value);
  const CaseValue& get(std::string_view argument) const;
  const TensorData& tensor(size_t i) const { return *std::get<TensorPtr>(args[i]); }
};

// All arguments at the defaults of the schema; required ones are None.
Case make_case(const Operator& op, DType dtype);

// The ABI's view of a case's arguments; tensors carry sizes and strides but no addresses, so that
// inference can run without a device. Keeps pointers into the case.
class CaseView {
 public:
  explicit CaseView(const Case& c);
  CaseView(const CaseView&) = delete;
  std::span<const tb_value> values() const { return values_; }
  std::span<tb_value> values() { return values_; }
  Args args() const { return Args(case_->op->schema, values_); }
  // Every tensor of the case in order of arguments, with its position.
  struct Slot {
    size_t argument;
    const TensorData* data;
    std::unique_ptr<tb_tensor> tensor;
  };
  std::vector<Slot>& slots() { return slots_; }

 private:
  const tb_tensor* add(size_t argument, const TensorData& data);
  const Case* case_;
  std::vector<tb_value> values_;
  std::vector<Slot> slots_;
  std::vector<std::vector<uint8_t>> bools_;
  std::vector<std::vector<const tb_tensor*>> lists_;
};

// Outputs by the operator table. Throws what inference throws.
std::vector<TensorSpec> infer(const Case& c);
// "self float32 [2, 3] strides [1, 2], dim=1": for messages.
std::string describe(const Case& c);

}  // namespace ocltensor::testing
