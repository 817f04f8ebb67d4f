// Building the operator table from operators.def, multi_tensor.def and pointwise.def.
#include "operators.h"

#include <string>
#include <unordered_map>

#include "infer/infer.h"
#include "pointwise.h"

namespace ocltensor {
namespace {

// A row's last column, which it need not have.
using enum LayoutRule;
constexpr LayoutRule layout_of_row(LayoutRule rule = Contiguous) { return rule; }

std::vector<Operator> build() {
  std::vector<Operator> table;
  const auto add = [&](const char* text, const char* family, InferFunction infer, uint32_t flags,
                       LayoutRule layout) {
    Operator op{schema_of_row(table.size()),  text,   family, infer, flags & kAbiFlags,
                flags & ~uint32_t{kAbiFlags}, layout, {}};
    op.name = op.schema.full_name();
    table.push_back(std::move(op));
  };
#define OCLTENSOR_OPERATOR(family, inference, flags, schema, ...) \
  add(schema, #family, infer::inference, flags, layout_of_row(__VA_ARGS__));
// The order of these files is the table's order, so it is not sorted.
// clang-format off
#include "operators.def"
#include "multi_tensor.def"
// clang-format on
#undef OCLTENSOR_OPERATOR
#define OCLTENSOR_POINTWISE(rule, schema, ...) \
  add(schema, "pointwise", infer_pointwise, kPointwise __VA_OPT__(|) __VA_ARGS__, Contiguous);
#define OCLTENSOR_POINTWISE_VARIANT(...)
#include "pointwise.def"
#undef OCLTENSOR_POINTWISE
#undef OCLTENSOR_POINTWISE_VARIANT
  return table;
}

}  // namespace

std::span<const Operator> operators() {
  static const auto& table =
      *new std::vector<Operator>(build());  // leaked: used until the last thread ends
  return table;
}

const Operator* find_operator(std::string_view name) {
  static const auto& index = *new auto([] {
    std::unordered_map<std::string_view, const Operator*> map;
    for (const Operator& op : operators()) map.emplace(op.name, &op);
    return map;
  }());
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace ocltensor
