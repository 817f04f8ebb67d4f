// Argument access with checks that name operator and argument.
#include "value.h"

#include <cmath>

namespace ocltensor {

tb_value Scalar::to_value() const {
  tb_value v{};
  if (is_complex()) {
    v.tag = TB_COMPLEX;
    v.as.p = parts_;
  } else if (is_float()) {
    v.tag = TB_FLOAT;
    v.as.f = parts_[0];
  } else {
    v.tag = kind_ == Kind::Bool ? TB_BOOL : TB_INT;
    v.as.i = int_;
  }
  return v;
}

namespace {

// The largest finite number of a type, and the smallest.
struct Limits {
  double low, high;
};
Limits limits_of(DType type) {
  switch (type) {
    case DType::UInt8: return {0, 255};
    case DType::Int8: return {-128, 127};
    case DType::Int16: return {-32768, 32767};
    case DType::Int32: return {-0x1p31, 0x1p31 - 1};
    case DType::UInt16: return {0, 65535};
    case DType::UInt32: return {0, 0x1p32 - 1};
    case DType::UInt64: return {0, std::nextafter(0x1p64, 0)};
    case DType::Int64: return {-0x1p63, std::nextafter(0x1p63, 0)};
    case DType::Float16:
    case DType::Complex32: return {-65504, 65504};
    case DType::BFloat16: return {-0x1.FEp127, 0x1.FEp127};
    case DType::Float32:
    case DType::Complex64: return {-0x1.FFFFFEp127, 0x1.FFFFFEp127};
    default: return {-HUGE_VAL, HUGE_VAL};
  }
}

bool fits(double value, DType type) {
  const bool integral = is_integral(type, false);
  if (!std::isfinite(value)) return !integral;
  const Limits limits = limits_of(type);
  return value >= limits.low && value <= limits.high;
}

}  // namespace

void check_fits(const Scalar& value, DType type) {
  if (type == DType::Bool || type == DType::Float64 || is_float8(type)) return;
  const double real = value.as_double();
  const bool wraps = is_unsigned(type) && !value.is_float() && real < 0;
  const bool is_whole = (type == DType::Int64 || type == DType::UInt64) && !value.is_float();
  check(is_whole || (fits(wraps ? -real : real, type) && fits(value.imaginary(), type)),
        "value cannot be converted to type {} without overflow: {}", name(type),
        value.is_complex() ? fmt::format("{}{:+}j", real, value.imaginary())
        : value.is_float() ? fmt::format("{}", real)
                           : fmt::format("{}", value.as_int()));
}

void detail::refuse_number(const Scalar& value, bool is_float, bool is_signed, size_t bytes) {
  const char* kind = is_float ? "float" : is_signed ? "int" : "uint";
  const std::string type = fmt::format("{}{}", kind, 8 * bytes);  // also of bool
  check(!value.is_complex(), "a complex number is not a {}: use item()", type);
  const std::string text =
      value.is_float() ? fmt::format("{}", value.as_double()) : fmt::format("{}", value.as_int());
  fail(TB_E_INVALID, "{} does not fit in {}", text, type);
}

void Args::lacking(Arg a) const {
  fail(TB_E_INTERNAL, "{} has no argument '{}'", schema_->full_name(), name(a));
}

void Args::mismatch(Arg a, const char* wanted) const {
  const char* got[] = {
      "None",         "a bool",      "an int",     "a float",       "a complex number",
      "a string",     "a dtype",     "a tensor",   "a tensor list", "an int list",
      "a float list", "a bool list", "a generator"};
  const uint32_t tag = value(a).tag;
  if (tag > TB_GENERATOR)
    unsupported(TB_REASON_ARGUMENT, "{}: argument '{}' has the unknown tag {}",
                schema_->full_name(), name(a), tag);
  const bool undefined = tag == TB_NONE && std::string_view(wanted).starts_with("a tensor");
  fail(TB_E_INVALID, "{}: argument '{}' must be {}, got {}", schema_->full_name(), name(a), wanted,
       undefined ? "an undefined tensor" : got[tag]);
}

TensorView Args::tensor(Arg a) const {
  if (!is_tensor(a)) mismatch(a, "a tensor");
  return TensorView(*static_cast<const tb_tensor*>(value(a).as.p));
}

std::optional<TensorView> Args::optional_tensor(Arg a) const {
  if (is_none(a)) return std::nullopt;
  return tensor(a);
}

std::vector<std::optional<TensorView>> Args::tensors(Arg a) const {
  if (value(a).tag != TB_TENSOR_LIST) mismatch(a, "a list of tensors");
  const auto* list = static_cast<const tb_tensor* const*>(value(a).as.p);
  std::vector<std::optional<TensorView>> result;
  result.reserve(value(a).count);
  for (uint32_t k = 0; k < value(a).count; ++k) {
    if (list[k] == nullptr)
      result.emplace_back();
    else
      result.emplace_back(TensorView(*list[k]));
  }
  return result;
}

TensorViews Args::whole_list(Arg a) const {
  if (value(a).tag != TB_TENSOR_LIST) mismatch(a, "a list of tensors");
  const std::span list(static_cast<const tb_tensor* const*>(value(a).as.p), value(a).count);
  for (const tb_tensor* tensor : list)
    check(tensor != nullptr, "{}: '{}' has an absent tensor", schema_->full_name(), name(a));
  return TensorViews(list);
}

Scalar Args::scalar(Arg a) const {
  switch (value(a).tag) {
    case TB_BOOL: return Scalar(value(a).as.i != 0);
    case TB_INT: return Scalar(value(a).as.i);
    case TB_FLOAT: return Scalar(value(a).as.f);
    case TB_COMPLEX:
      unsupported(TB_REASON_DTYPE, "{}: argument '{}' must be a real number, got a complex one",
                  schema_->full_name(), name(a));
    default: mismatch(a, "a number");
  }
}

Scalar Args::number(Arg a) const {
  if (value(a).tag != TB_COMPLEX) return scalar(a);
  const auto* parts = static_cast<const double*>(value(a).as.p);
  return std::complex<double>(parts[0], parts[1]);
}

std::optional<Scalar> Args::optional_scalar(Arg a) const {
  if (is_none(a)) return std::nullopt;
  return scalar(a);
}

int64_t Args::integer(Arg a) const {
  if (value(a).tag != TB_INT && value(a).tag != TB_BOOL) mismatch(a, "an int");
  return value(a).as.i;
}

std::optional<int64_t> Args::optional_integer(Arg a) const {
  if (is_none(a)) return std::nullopt;
  return integer(a);
}

double Args::real(Arg a) const { return scalar(a).as_double(); }

std::optional<double> Args::optional_real(Arg a) const {
  if (is_none(a)) return std::nullopt;
  return real(a);
}

bool Args::boolean(Arg a) const {
  if (value(a).tag != TB_BOOL && value(a).tag != TB_INT) mismatch(a, "a bool");
  return value(a).as.i != 0;
}

std::optional<bool> Args::optional_boolean(Arg a) const {
  if (is_none(a)) return std::nullopt;
  return boolean(a);
}

std::span<const int64_t> Args::ints(Arg a) const {
  const tb_value& v = value(a);
  if (v.tag == TB_NONE) return {};
  if (v.tag == TB_INT) return {&v.as.i, 1};
  if (v.tag != TB_INT_LIST) mismatch(a, "a list of ints");
  return {static_cast<const int64_t*>(v.as.p), v.count};
}

std::span<const double> Args::reals(Arg a) const {
  if (is_none(a)) return {};
  if (value(a).tag != TB_FLOAT_LIST) mismatch(a, "a list of floats");
  return {static_cast<const double*>(value(a).as.p), value(a).count};
}

std::vector<bool> Args::booleans(Arg a) const {
  if (value(a).tag != TB_BOOL_LIST) mismatch(a, "a list of bools");
  const auto* list = static_cast<const uint8_t*>(value(a).as.p);
  std::vector<bool> result(value(a).count);
  for (uint32_t k = 0; k < value(a).count; ++k) result[k] = list[k] != 0;
  return result;
}

std::string_view Args::string(Arg a) const {
  if (value(a).tag == TB_NONE) return {};
  if (value(a).tag != TB_STRING) mismatch(a, "a string");
  return {static_cast<const char*>(value(a).as.p), value(a).count};
}

std::optional<DType> Args::optional_dtype(Arg a) const {
  if (is_none(a)) return std::nullopt;
  if (value(a).tag != TB_DTYPE) mismatch(a, "a dtype");
  return from_abi(value(a).as.dtype);
}

tb_generator Args::generator(Arg a) const {
  if (is_none(a)) return nullptr;
  if (value(a).tag != TB_GENERATOR) mismatch(a, "a generator");
  return static_cast<tb_generator>(const_cast<void*>(value(a).as.p));
}

}  // namespace ocltensor
