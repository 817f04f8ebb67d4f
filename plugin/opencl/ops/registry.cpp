// Joins the families' tables.
#include "registry.h"

#include <string>
#include <unordered_map>

#include "base/config.h"
#include "call/providers.h"
#include "ops/family.h"
#include "runtime/observe/verbose.h"

namespace ocltensor::opencl {
std::span<const tb_op_s> registry() {
  static const auto& table = *new auto([] {
    std::vector<tb_op_s> list;
    for (const Family& family : all_families())
      for (const std::span<const OpEntry> operators : family.operators)
        for (const OpEntry& entry : operators) {
          const Operator* op = find_operator(entry.name);
          if (op == nullptr) fail(TB_E_INTERNAL, "{} is not declared in operators.def", entry.name);
          list.push_back({entry, op});
        }
    return list;
  }());
  return table;
}

const tb_op_s* find_in_registry(std::string_view name) {
  static const auto& index = *new auto([] {
    std::unordered_map<std::string_view, const tb_op_s*> map;
    for (const tb_op_s& op : registry()) map.emplace(op.op->name, &op);
    return map;
  }());
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

namespace {

// The fallback of every other operator needs it.
constexpr std::string_view kNeverDisabled = "copy.out";

}  // namespace

void steer_operator(const Policy& policy, const tb_op_s& op, const Stream& stream) {
  const std::string& name = op.op->name;
  if (name == kNeverDisabled) return;
  if (!policy.is_enabled(kPortable))
    unsupported(TB_REASON_DISABLED,
                "the kernel provider 'portable' is disabled ({}), and {} needs its kernels",
                config::name(config::Knob::DisabledProviders), name);
  if (policy.operations.find_operator(name) != nullptr)
    unsupported(TB_REASON_DISABLED, "{} is disabled ({})", name,
                config::name(config::Knob::DisabledOperations));
  if (policy.verbose > 1)
    print_verbose("choice", fmt::format("operator {} on ocl:{}", name, stream.device().index()));
}

void check_operations(std::string_view list) {
  for (const std::string& pattern : split_names(list)) {
    check(!matches_operator(pattern, kNeverDisabled) || pattern.find('*') != std::string::npos,
          "copy cannot be disabled: the fallback of every operator needs it");
    bool found = false;
    std::vector<std::string> names;
    for (const tb_op_s& op : registry()) {
      found = found || matches_operator(pattern, op.op->name);
      names.push_back(op.op->name);
    }
    if (found) continue;
    std::string near;
    for (const std::string& name : near_names(pattern, names)) near += " " + name;
    fail(TB_E_INVALID, "no operator fits '{}'{}{}", pattern,
         near.empty() ? "" : "; near are:", near);
  }
}

}  // namespace ocltensor::opencl
