// ATen operator schemas, "add.out(Tensor self, ..., *, Tensor(a!) out) -> Tensor(a!)", as parsed by
// schemas.py when the library is built.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ocltensor {

enum class ArgType : uint8_t {
  Tensor,
  TensorList,
  Scalar,
  Int,
  IntList,
  Float,
  FloatList,
  Bool,
  BoolList,
  String,
  DType,
  Generator,
  Other
};

// The names of all operators' inputs. Schema::positions says which of them an operator has.
enum class Arg : uint16_t {
// clang-format off
#define OCLTENSOR_ARGUMENT(name) name,
#include "base/argument_names.def"
#undef OCLTENSOR_ARGUMENT
  // clang-format on
};
inline constexpr size_t kArgNames = 0
#define OCLTENSOR_ARGUMENT(name) +1
#include "base/argument_names.def"
#undef OCLTENSOR_ARGUMENT
    ;
const char* name(Arg argument);

struct Argument {
  std::string name;
  std::optional<Arg> arg;  // the name as Arg; outputs have none
  ArgType type = ArgType::Other;
  bool optional = false;          // "Tensor?", or "int[]?"
  bool list_of_optional = false;  // "Tensor?[]"
  bool keyword_only = false;
  bool written = false;       // "Tensor(a!)": an output, or an input that changes in place
  bool operand = false;       // of a pointwise operator: it takes part in type promotion
  int fixed_length = 0;       // "int[2]": a single int repeats; 0 = none
  std::string default_value;  // as written; empty = required
};

// A schema with inputs and out arguments in separate lists, as a tb_call passes them, each in the
// schema's order.
struct Schema {
  std::string name;      // "add"
  std::string overload;  // "out"
  std::string full;      // "add.out"
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  int index = -1;                             // position in the operator table; -1: in none
  std::array<int8_t, kArgNames> positions{};  // of inputs by name; -1: not one of this operator's
  const std::string& full_name() const { return full; }
  // Position of an input by name; -1 if there is none.
  int input(std::string_view argument) const;
  // "Tensor(a!)[] out": a call has as many outputs as the list has tensors.
  bool lists_outputs() const {
    return outputs.size() == 1 && outputs[0].type == ArgType::TensorList;
  }
};

// The schema of a row of the operator table.
Schema schema_of_row(size_t index);

}  // namespace ocltensor
