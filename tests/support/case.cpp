// Cases: defaults from schemas, conversion to the ABI's values, text.
#include "case.h"

#include <fmt/format.h>

#include <cstdlib>

#include "ocltensor/error.h"

namespace ocltensor::testing {
namespace {

std::vector<int64_t> parse_ints(std::string_view text) {
  std::vector<int64_t> values;
  std::string number;
  for (const char c : text) {
    if ((c >= '0' && c <= '9') || c == '-') {
      number += c;
    } else if (!number.empty()) {
      values.push_back(std::stoll(number));
      number.clear();
    }
  }
  if (!number.empty()) values.push_back(std::stoll(number));
  return values;
}

Scalar parse_scalar(const std::string& text) {
  if (text.find_first_of(".e") == std::string::npos) return Scalar(int64_t{std::stoll(text)});
  return Scalar(std::stod(text));
}

CaseValue default_value(const Argument& argument) {
  const std::string& text = argument.default_value;
  if (argument.type == ArgType::Generator) return GeneratorArgument{};
  if (text.empty() || text == "None") return std::monostate{};
  switch (argument.type) {
    case ArgType::Bool: return Scalar(text == "True");
    case ArgType::Int: return Scalar(int64_t{std::stoll(text)});
    case ArgType::Float: return Scalar(std::stod(text));
    case ArgType::Scalar: return parse_scalar(text);
    case ArgType::String: return text.substr(1, text.size() - 2);
    case ArgType::IntList: {
      auto values = parse_ints(text);
      if (text[0] != '[' && values.size() == 1)
        values.resize(std::max(1, argument.fixed_length), values[0]);
      return values;
    }
    default: return std::monostate{};
  }
}

std::string text_of(const TensorData& t) {
  std::string text = fmt::format("{} {}", name(t.value.dtype), ocltensor::to_string(t.value.sizes));
  if (!is_contiguous(t.value.sizes, t.layout.strides) || t.layout.offset != 0)
    text += fmt::format(" strides {} offset {}", ocltensor::to_string(t.layout.strides),
                        t.layout.offset);
  return text;
}

struct Describe {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(const Scalar& s) const {
    if (s.kind() == Scalar::Kind::Bool) return s.as_bool() ? "True" : "False";
    if (s.is_complex()) return fmt::format("{}{:+}j", s.as_double(), s.imaginary());
    return s.is_float() ? fmt::format("{:#.6g}", s.as_double()) : fmt::format("{}", s.as_int());
  }
  std::string operator()(const std::string& s) const { return "'" + s + "'"; }
  std::string operator()(DType t) const { return std::string(name(t)); }
  std::string operator()(const std::vector<int64_t>& v) const { return ocltensor::to_string(v); }
  std::string operator()(const std::vector<double>& v) const {
    return fmt::format("[{} floats]", v.size());
  }
  std::string operator()(const std::vector<bool>& v) const {
    std::string text;
    for (const bool b : v) text += b ? '1' : '0';
    return text;
  }
  std::string operator()(const TensorPtr& t) const { return t ? text_of(*t) : "None"; }
  std::string operator()(const std::vector<TensorPtr>& v) const {
    std::string text = "(";
    for (const auto& t : v) text += (text.size() > 1 ? "; " : "") + (*this)(t);
    return text + ")";
  }
  std::string operator()(GeneratorArgument) const { return "generator"; }
};

tb_value list_value(uint32_t tag, size_t count, const void* data) {
  tb_value v{tag, static_cast<uint32_t>(count), {}};
  v.as.p = data;
  return v;
}

}  // namespace

void Case::set(std::string_view argument, CaseValue value) {
  const int i = op->schema.input(argument);
  check(i >= 0, "{} has no argument '{}'", op->name, argument);
  args[static_cast<size_t>(i)] = std::move(value);
}

const CaseValue& Case::get(std::string_view argument) const {
  const int i = op->schema.input(argument);
  check(i >= 0, "{} has no argument '{}'", op->name, argument);
  return args[static_cast<size_t>(i)];
}

Case make_case(const Operator& op, DType dtype) {
  Case c;
  c.op = &op;
  c.dtype = dtype;
  for (const Argument& argument : op.schema.inputs) c.args.push_back(default_value(argument));
  c.tolerance.push_back({});
  return c;
}

CaseView::CaseView(const Case& c) : case_(&c), values_(c.args.size()) {
  for (size_t i = 0; i < c.args.size(); ++i) {
    tb_value& v = values_[i];
    const CaseValue& arg = c.args[i];
    if (const auto* s = std::get_if<Scalar>(&arg)) {
      v = s->to_value();
    } else if (const auto* text = std::get_if<std::string>(&arg)) {
      v = list_value(TB_STRING, text->size(), text->c_str());
    } else if (const auto* type = std::get_if<DType>(&arg)) {
      v.tag = TB_DTYPE;
      v.as.dtype = to_abi(*type);
    } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&arg)) {
      v = list_value(TB_INT_LIST, ints->size(), ints->data());
    } else if (const auto* reals = std::get_if<std::vector<double>>(&arg)) {
      v = list_value(TB_FLOAT_LIST, reals->size(), reals->data());
    } else if (const auto* flags = std::get_if<std::vector<bool>>(&arg)) {
      bools_.emplace_back(flags->begin(), flags->end());
      v = list_value(TB_BOOL_LIST, flags->size(), bools_.back().data());
    } else if (const auto* tensor = std::get_if<TensorPtr>(&arg); tensor && *tensor) {
      v = list_value(TB_TENSOR, 0, add(i, **tensor));
    } else if (const auto* tensors = std::get_if<std::vector<TensorPtr>>(&arg)) {
      auto& list = lists_.emplace_back();
      for (const auto& t : *tensors) list.push_back(t ? add(i, *t) : nullptr);
      v = list_value(TB_TENSOR_LIST, list.size(), list.data());
    } else if (std::holds_alternative<GeneratorArgument>(arg)) {
      v.tag = TB_GENERATOR;
    }
  }
}

const tb_tensor* CaseView::add(size_t argument, const TensorData& data) {
  auto t = std::make_unique<tb_tensor>();
  t->struct_size = sizeof(tb_tensor);
  t->dtype = to_abi(data.value.dtype);
  t->ndim = static_cast<uint32_t>(data.value.sizes.size());
  t->sizes = data.value.sizes.data();
  t->strides = data.layout.strides.data();
  slots_.push_back({argument, &data, std::move(t)});
  return slots_.back().tensor.get();
}

std::vector<TensorSpec> infer(const Case& c) {
  CaseView view(c);
  std::vector<TensorSpec> specs = c.op->infer(view.args());
  if (c.out_dtype) specs.at(0).dtype = *c.out_dtype;
  return specs;
}

std::string describe(const Case& c) {
  std::string text;
  for (size_t i = 0; i < c.args.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "" : ", ", c.op->schema.inputs[i].name,
                        std::visit(Describe{}, c.args[i]));
  if (c.out_dtype) text += fmt::format(", out dtype {}", name(*c.out_dtype));
  if (c.alias >= 0) text += ", in place";
  return text;
}

}  // namespace ocltensor::testing
