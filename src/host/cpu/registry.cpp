// The table of all operators: joins the families' tables, checks calls against inference, runs
// them.
#include "registry.h"

#include <atomic>
#include <string>
#include <unordered_map>

#include "base/multi_tensor.h"
#include "base/promotion.h"
#include "complex.h"

namespace ocltensor::cpu {
namespace {

struct Entry {
  const Operator* op;
  CpuFunction run;
  CpuFunction own_complex = nullptr;  // of the operator's family
  ComplexFunction run_complex = nullptr;
  bool takes_complex() const { return own_complex != nullptr || run_complex != nullptr; }
};

std::vector<Entry> build() {
  std::unordered_map<std::string_view, CpuOperator> functions;
  const std::span<const CpuOperator> tables[] = {
#define OCLTENSOR_FAMILY(name) name##_operators(),
#include "base/families.def"
#undef OCLTENSOR_FAMILY
  };
  for (const auto& table : tables)
    for (const CpuOperator& row : table) functions.emplace(row.name, row);
  std::vector<Entry> entries;
  for (const Operator& op : operators()) {
    if (op.is(kPointwise))
      entries.push_back({&op, run_pointwise});
    else if (find_foreach(op) != nullptr)
      entries.push_back({&op, run_foreach});
    else if (const auto it = functions.find(op.name); it != functions.end())
      entries.push_back({&op, it->second.run, it->second.run_complex});
  }
  for (Entry& entry : entries) entry.run_complex = find_complex(*entry.op);
  return entries;
}

const std::vector<Entry>& entries() {
  static const auto& table = *new std::vector<Entry>(build());  // leaked: used until exit
  return table;
}

tb_op handle(const Entry& entry) {
  return reinterpret_cast<tb_op>(&entry);  // NOLINT: opaque by contract
}
const Entry& entry_of(tb_op op) {
  const auto* entry = reinterpret_cast<const Entry*>(op);  // NOLINT
  const auto& all = entries();
  check(entry >= all.data() && entry < all.data() + all.size(),
        "the operator handle does not belong to the CPU backend");
  return *entry;
}

std::atomic<uint64_t> successes{0};

// Checks a tensor's description: element alignment, and elements inside its storage.
void check_tensor(const Operator& op, const std::string& argument, TensorView t) {
  check(t.raw().struct_size >= TB_TENSOR_SIZE_V1, "{}: argument '{}': tb_tensor is too small",
        op.name, argument);
  if (t.numel() == 0) return;
  check(t.address() != 0, "{}: argument '{}' of shape {} has no memory", op.name, argument,
        to_string(t.sizes()));
  check(t.address() % static_cast<uint64_t>(t.itemsize()) == 0,
        "{}: argument '{}' is not aligned to its element size", op.name, argument);
  if (t.raw().base == 0) return;
  const Extent e = extent(t.sizes(), t.strides());
  const auto first = static_cast<int64_t>(t.address() - t.raw().base) + e.low * t.itemsize();
  const auto end = static_cast<int64_t>(t.address() - t.raw().base) + e.high * t.itemsize();
  check(first >= 0 && end <= static_cast<int64_t>(t.raw().base_bytes),
        "{}: argument '{}' of shape {} reaches outside of its storage of {} bytes", op.name,
        argument, to_string(t.sizes()), t.raw().base_bytes);
}

void check_inputs(const Operator& op, const Args& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& argument = op.schema.inputs[i].name;
    const Arg a = args.nth(i);
    switch (args.value(a).tag) {
      case TB_TENSOR: check_tensor(op, argument, args.tensor(a)); break;
      case TB_TENSOR_LIST:
        for (const auto& t : args.tensors(a))
          if (t) check_tensor(op, argument, *t);
        break;
      default: break;
    }
  }
}

void check_outputs(const Operator& op, const tb_call& call, std::span<const TensorSpec> specs) {
  check(call.out_count == specs.size(), "{}: {} outputs were passed, {} are needed", op.name,
        call.out_count, specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (call.outs[i] == nullptr) continue;
    const TensorView out(*call.outs[i]);
    const std::string& argument = op.schema.outputs[op.schema.lists_outputs() ? 0 : i].name;
    if (op.is(kDataDependentShape)) continue;
    if (specs[i].sizes == Dims{0}) continue;  // empty, or not produced by this call
    check_tensor(op, argument, out);
    check(Dims(out.sizes()) == specs[i].sizes, "{}: output '{}' must have shape {}, got {}",
          op.name, argument, to_string(specs[i].sizes), to_string(out.sizes()));
    check(op.is(kAnyType) || can_cast(specs[i].dtype, out.dtype()),
          "{}: a result of type {} cannot be written to output '{}' of type {}", op.name,
          name(specs[i].dtype), argument, name(out.dtype()));
    check(!has_internal_overlap(out.sizes(), out.strides()),
          "{}: elements of output '{}' share memory", op.name, argument);
  }
  check(!(op.is(kDataDependentShape)) || call.resize_out != nullptr,
        "{}: the output's shape depends on data: the call needs resize_out", op.name);
}

// Checks everything that does not depend on data; then, with `run`, runs the operator.
void checked(const tb_call* call, bool run) {
  check(call != nullptr && call->struct_size >= TB_CALL_SIZE_V1, "the call structure is missing");
  const Entry& entry = entry_of(call->op);
  const Operator& op = *entry.op;
  check(call->stream != nullptr, "{}: the call names no stream", op.name);
  check(call->arg_count == op.schema.inputs.size(), "{}: {} arguments were passed, {} are needed",
        op.name, call->arg_count, op.schema.inputs.size());
  const Args args(op.schema, {call->args, call->arg_count});
  check_inputs(op, args);
  bool complex = has_complex(args);
  const auto admit = [&] {
    if (complex && !entry.takes_complex())
      unsupported(TB_REASON_DTYPE, "{}: the CPU backend does not take complex numbers", op.name);
  };
  admit();
  const auto specs = op.infer(args);
  check_outputs(op, *call, specs);
  complex = complex || has_complex(std::span(call->outs, call->out_count));
  admit();
  if (!run) return;
  const CpuCall the_call{args, *call, specs};
  if (!complex)
    entry.run(the_call);
  else if (entry.own_complex != nullptr)
    entry.own_complex(the_call);
  else
    entry.run_complex(the_call, entry.run);
  ++successes;
}

tb_status count(uint32_t* count, tb_error* error) {
  return guarded(error, [&] { *count = static_cast<uint32_t>(entries().size()); });
}

tb_status at(uint32_t index, tb_op* op, tb_op_info* info, tb_error* error) {
  return guarded(error, [&] {
    check(index < entries().size(), "there is no operator {}: the backend has {}", index,
          entries().size());
    const Entry& entry = entries()[index];
    if (op != nullptr) *op = handle(entry);
    if (info == nullptr) return;
    check(info->struct_size >= TB_OP_INFO_SIZE_V1, "tb_op_info is too small");
    info->flags = entry.op->flags;
    info->name = entry.op->name.c_str();
    info->schema = entry.op->text;
    info->family = entry.op->family;
  });
}

tb_status find(const char* wanted, tb_op* op, tb_error* error) {
  return guarded(error, [&] {
    static const auto& index = *new auto([] {
      std::unordered_map<std::string_view, const Entry*> map;
      for (const Entry& e : entries()) map.emplace(e.op->name, &e);
      return map;
    }());
    const auto it = index.find(wanted);
    if (it == index.end())
      unsupported(TB_REASON_OPERATOR, "the CPU backend has no operator '{}'", wanted);
    *op = handle(*it->second);
  });
}

tb_status supports(const tb_call* call, tb_error* error) {
  return guarded(error, [&] { checked(call, false); });
}
tb_status invoke(const tb_call* call, tb_error* error) {
  return guarded(error, [&] { checked(call, true); });
}

}  // namespace

std::span<const CpuOperator> joined(std::initializer_list<std::span<const CpuOperator>> parts) {
  auto& all = *new std::vector<CpuOperator>;  // leaked: used until exit
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

View CpuCall::resized(size_t i, std::span<const int64_t> sizes) const {
  tb_tensor tensor{};
  tensor.struct_size = sizeof(tb_tensor);
  const tb_status status =
      raw.resize_out(raw.resize_context, static_cast<uint32_t>(i), sizes.data(),
                     static_cast<uint32_t>(sizes.size()), &tensor);
  if (status != TB_OK)
    fail(status, "the host could not resize output {} to {}", i, to_string(sizes));
  return TensorView(tensor);
}

const tb_operator_api* operator_api() {
  static const tb_operator_api api = {
      .struct_size = sizeof(tb_operator_api),
      .count = count,
      .at = at,
      .find = find,
      .supports = supports,
      .invoke = invoke,
  };
  return &api;
}

uint64_t successful_calls() { return successes; }

}  // namespace ocltensor::cpu
