// Schema parser: a hand-written scanner for the subset of ATen's schema language that out-variants
// use.
#include "schema.h"

#include <array>
#include <utility>

#include "ocltensor/error.h"

namespace ocltensor {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

ArgType base_type(std::string_view t) {
  static constexpr std::array<std::pair<std::string_view, ArgType>, 9> kTypes{
      {{"Tensor", ArgType::Tensor},
       {"Scalar", ArgType::Scalar},
       {"int", ArgType::Int},
       {"SymInt", ArgType::Int},
       {"float", ArgType::Float},
       {"bool", ArgType::Bool},
       {"str", ArgType::String},
       {"ScalarType", ArgType::DType},
       {"Generator", ArgType::Generator}}};
  for (const auto& [text, type] : kTypes)
    if (t == text) return type;
  return ArgType::Other;
}

ArgType list_of(ArgType t) {
  switch (t) {
    case ArgType::Tensor: return ArgType::TensorList;
    case ArgType::Int: return ArgType::IntList;
    case ArgType::Float:
    case ArgType::Scalar: return ArgType::FloatList;
    case ArgType::Bool: return ArgType::BoolList;
    default: return ArgType::Other;
  }
}

// "Tensor(a!)", "int[2]?", "Tensor?[]", "float?" ...
void parse_type(std::string_view text, Argument& argument) {
  if (text.ends_with('?')) {
    argument.optional = true;
    text.remove_suffix(1);
  }
  bool list = false;
  if (text.ends_with(']')) {
    const size_t open = text.rfind('[');
    list = true;
    const std::string_view length = text.substr(open + 1, text.size() - open - 2);
    if (!length.empty()) argument.fixed_length = std::stoi(std::string(length));
    text = text.substr(0, open);
    if (text.ends_with('?')) {
      argument.list_of_optional = true;
      text.remove_suffix(1);
    }
  }
  if (const size_t alias = text.find('('); alias != std::string_view::npos)
    text = text.substr(0, alias);
  argument.type = base_type(text);
  if (list) argument.type = list_of(argument.type);
}

// Splits at the commas that are outside of brackets and parentheses.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (const auto last = trim(text.substr(start)); !last.empty()) parts.push_back(last);
  return parts;
}

}  // namespace

const char* name(Arg argument) {
  static constexpr const char* kNames[] = {
#define OCLTENSOR_ARGUMENT(name) #name,
#include "base/argument_names.def"
#undef OCLTENSOR_ARGUMENT
  };
  return kNames[static_cast<size_t>(argument)];
}

int Schema::input(std::string_view argument) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == argument) return static_cast<int>(i);
  return -1;
}

Schema parse_schema(std::string_view text) {
  Schema schema;
  const size_t open = text.find('(');
  const size_t arrow = text.rfind(") -> ");
  check(open != std::string_view::npos && arrow != std::string_view::npos,
        "'{}' is not an operator schema", text);
  const std::string_view full = text.substr(0, open);
  const size_t dot = full.find('.');
  schema.full = full;
  schema.name = full.substr(0, dot);
  if (dot != std::string_view::npos) schema.overload = full.substr(dot + 1);
  bool keyword_only = false;
  for (std::string_view part : split(text.substr(open + 1, arrow - open - 1))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    const size_t space = part.rfind(' ', part.find('='));
    check(space != std::string_view::npos, "'{}': argument '{}' has no name", text, part);
    Argument argument;
    argument.keyword_only = keyword_only;
    std::string_view name = part.substr(space + 1);
    if (const size_t equals = name.find('='); equals != std::string_view::npos) {
      argument.default_value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    argument.name = name;
    const std::string_view type = part.substr(0, space);
    parse_type(type, argument);
    argument.written = type.find('!') != std::string_view::npos;
    (keyword_only && argument.written ? schema.outputs : schema.inputs)
        .push_back(std::move(argument));
  }
  for (size_t i = 0; i < kArgNames; ++i) {
    const auto arg = static_cast<Arg>(i);
    const int position = schema.input(name(arg));
    schema.positions[i] = static_cast<int8_t>(position);
    if (position >= 0) schema.inputs[static_cast<size_t>(position)].arg = arg;
  }
  return schema;
}

}  // namespace ocltensor
