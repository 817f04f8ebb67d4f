// The boxed call: an operator by its name, with values of any type that a schema has.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ocltensor/tensor.h"

namespace ocltensor {

struct Operator;  // NOLINT(bugprone-forward-declaration-namespace): the library has its definition

struct CallOptions {
  bool in_place = false;  // outs[0] is an input; its shape must not change
  std::optional<Device> device =
      {};                           // for operators without tensor arguments; default_device() else
  std::optional<DType> dtype = {};  // of the result of an operator without tensor arguments
};

// An argument of the boxed call, with one alternative per type of a schema. monostate is None.
using Value =
    std::variant<std::monostate, bool, int64_t, double, std::string, DType, Tensor,
                 std::vector<Tensor>, std::vector<int64_t>, std::vector<double>, Generator>;
using NamedValue = std::pair<std::string, Value>;

// Runs an operator by its name, e.g. call("add.out", {a, b}). Missing arguments take the schema's
// defaults. `outs` are undefined tensors, or tensors to write into. The results are returned.
// Error TB_E_INVALID: unknown operator or argument, missing argument.
OCLTENSOR_API std::vector<Tensor> call(std::string_view name, std::span<const Value> args,
                                       std::span<const NamedValue> named = {},
                                       std::span<const Tensor> outs = {},
                                       const CallOptions& options = {});
inline std::vector<Tensor> call(std::string_view name, std::initializer_list<Value> args,
                                const CallOptions& options = {}) {
  return call(name, std::span(args.begin(), args.size()), {}, {}, options);
}
// The schema text of every operator, in the order of the operator table.
OCLTENSOR_API std::vector<std::string> operator_schemas();

}  // namespace ocltensor
