// The schemas of all operators, out of the tables that generate_schemas.py writes.
#include "schema.h"

namespace ocltensor {
namespace {

enum Flags : uint8_t {
  kOptional = 1,
  kListOfOptional = 2,
  kKeywordOnly = 4,
  kWritten = 8,
  kOperand = 16,
};

struct ArgumentRow {
  const char* name;
  std::optional<Arg> arg;  // of inputs
  ArgType type;
  uint8_t flags;
  int fixed_length;
  const char* default_value;
};

// Of the operator table, in its order: the inputs are `inputs` rows from kArguments[first] on,
// behind which the outputs are.
struct SchemaRow {
  const char* full_name;
  uint16_t first, inputs, outputs;
};

// clang-format off
#include "base/schemas.inc"
// clang-format on

Argument argument_of(const ArgumentRow& row) {
  const auto has = [&](Flags flag) { return (row.flags & flag) != 0; };
  return {.name = row.name,
          .arg = row.arg,
          .type = row.type,
          .optional = has(kOptional),
          .list_of_optional = has(kListOfOptional),
          .keyword_only = has(kKeywordOnly),
          .written = has(kWritten),
          .operand = has(kOperand),
          .fixed_length = row.fixed_length,
          .default_value = row.default_value};
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

Schema schema_of_row(size_t index) {
  const SchemaRow& row = kSchemas[index];
  Schema schema;
  schema.full = row.full_name;
  const size_t dot = schema.full.find('.');
  schema.name = schema.full.substr(0, dot);
  if (dot != std::string::npos) schema.overload = schema.full.substr(dot + 1);
  schema.index = static_cast<int>(index);
  schema.positions.fill(-1);
  for (size_t i = 0; i < row.inputs; ++i) {
    schema.inputs.push_back(argument_of(kArguments[row.first + i]));
    schema.positions[static_cast<size_t>(*schema.inputs[i].arg)] = static_cast<int8_t>(i);
  }
  for (size_t i = 0; i < row.outputs; ++i)
    schema.outputs.push_back(argument_of(kArguments[row.first + row.inputs + i]));
  return schema;
}

}  // namespace ocltensor
