// Converts the integer operands of pointwise calls where the default type is not float32.
#include "default_type.h"

#include <ATen/ops/full.h>

#include <optional>

#include "base/pointwise.h"

namespace torch_ocl {

void use_default_type(const ocltensor::Operator& op, Arguments& in, c10::DeviceIndex device) {
  if (default_is_float32() || !op.is(ocltensor::kPointwise)) [[likely]]
    return;
  const ocltensor::Args args(op.schema, in.values());
  const ocltensor::PointwiseCall call = ocltensor::resolve_pointwise(args);
  if (call.rule == ocltensor::TypeRule::MaskedFill) return;  // has the type of `self`
  const auto position = [&](int k) {
    return static_cast<size_t>(op.schema.positions[static_cast<size_t>(call.operands[k].argument)]);
  };
  std::optional<int> fraction;  // an operand that is a number with a fraction, or complex
  for (int k = 0; k < call.operand_count; ++k) {
    const auto& operand = call.operands[k];
    if (operand.is_condition || args.is_none(operand.argument)) continue;
    if (!operand.is_number) {
      // Another tensor than of integers has a type of its own, which comes before the default.
      if (!ocltensor::is_integral(args.tensor(operand.argument).dtype(), true)) return;
    } else if (const auto number = args.number(operand.argument); number.is_float()) {
      if (!fraction || number.is_complex()) fraction = k;
    }
  }
  if (!fraction && call.rule != ocltensor::TypeRule::Float) return;
  const at::ScalarType type = c10::get_default_dtype_as_scalartype();
  bool converted = false;
  for (int k = 0; k < call.operand_count; ++k)
    if (!call.operands[k].is_condition) converted |= in.convert(position(k), type);
  if (converted || !fraction) return;
  const auto number = args.number(call.operands[*fraction].argument);
  const auto parts = number.as_complex();
  const at::Scalar value = number.is_complex() ? at::Scalar(c10::complex<double>(parts))
                                               : at::Scalar(number.as_double());
  const at::TensorOptions options = at::TensorOptions().device(at::Device(kOcl, device));
  in.replace(
      position(*fraction),
      at::full({}, value, options.dtype(number.is_complex() ? at::toComplexType(type) : type)));
}

}  // namespace torch_ocl
