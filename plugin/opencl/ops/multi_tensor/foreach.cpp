// foreach: a pointwise formula, zeros, copies and norms over lists of tensors.
#include <cmath>

#include "base/infer/infer.h"
#include "base/multi_tensor.h"
#include "call/division.h"
#include "kernels/multi_tensor.h"
#include "multi_tensor.h"
#include "ops/copy/copy.h"
#include "ops/pointwise/pointwise.h"

namespace ocltensor::opencl::multi_tensor {
namespace {

constexpr elementwise::Formula kIdentity{"copy", elementwise::FormulaForm::Vector, "a"};
constexpr elementwise::Formula kZero{"zero", elementwise::FormulaForm::Vector, "K(0)"};
constexpr DefineName kTypes[] = {define::A, define::B, define::C};

// The type of all tensors of a list: a kernel is compiled for one type.
DType type_of(const OpCall& call, TensorViews list) {
  const DType type = list[0].dtype();
  for (const TensorView t : list)
    if (t.dtype() != type)
      unsupported(TB_REASON_DTYPE, "{}: the tensors of a list must be of one type, got {} and {}",
                  call.name(), name(type), name(t.dtype()));
  return type;
}

const elementwise::Formula& formula_of(const OpCall& call, const Foreach& f, DType compute) {
  const elementwise::Formula* const formula =
      f.row == nullptr ? nullptr : pointwise::find_formula(*f.row, compute);
  if (formula == nullptr) unsupported(TB_REASON_OPERATOR, "{} has no OpenCL formula", call.name());
  return *formula;
}

void set_formula(const OpCall& call, Defines& d, const elementwise::Formula& formula, DType compute,
                 bool number_in, bool alpha, size_t lists) {
  elementwise::define_formula(d, formula, compute);
  d.set(define::UNSIGNED, compute == DType::UInt8)
      .set(define::LISTS, static_cast<int64_t>(lists))
      .set(define::NUMBER_IN, number_in)
      .set(define::ALPHA, alpha);
  // Kernels of GPUs work on single elements in any case.
  if (is_cpu_style(call)) elementwise::define_rows(call.caps(), d, formula, compute);
}

// The number for tensor `t`: from a list, the same for all, or 1 where a tensor holds it.
Scalar number_of(const Args& args, const Foreach& f, size_t t) {
  if (!f.number) return f.has_alpha ? args.scalar(Arg::alpha) : Scalar(1);
  if (args.value(*f.number).tag == TB_FLOAT_LIST) return args.reals(*f.number)[t];
  return args.is_tensor(*f.number) ? Scalar(1) : args.scalar(*f.number);
}

void foreach_op(OpCall& call) {
  const Args& args = call.args();
  check_outputs_like(call, infer::check_foreach(args));
  const Foreach& f = *find_foreach(call.op());
  std::vector<TensorViews> lists;
  for (const Arg list : f.lists) lists.push_back(args.whole_list(list));
  if (lists[0].empty()) return call.accept();
  const DType type = type_of(call, lists[0]);
  const DType compute = compute_type(type);
  Defines d;
  set_formula(call, d, formula_of(call, f, compute), compute, f.number_is_operand, f.has_alpha,
              lists.size());
  d.type(define::OUT, type);
  for (size_t k = 0; k < lists.size(); ++k) d.type(kTypes[k], type);
  TensorLists tensors(call, compute, 1 + lists.size(), lists[0].size());
  if (f.has_alpha) tensors.set_number(0, args.real(Arg::alpha));
  if (f.number && args.is_tensor(*f.number)) {
    const TensorView number = args.tensor(*f.number);
    tensors.share(0, number);
    d.type(define::S, number.dtype());
  }
  std::vector<Role> roles;
  for (size_t t = 0; t < lists[0].size(); ++t) {
    roles.clear();
    roles.push_back({call.out(t), false, true});
    for (const TensorViews list : lists) roles.push_back({list[t], true, false});
    tensors.add(roles, number_of(args, f, t));
  }
  tensors.check_disjoint();
  call.accept();
  tensors.run(kernels::multi_tensor::foreach::foreach, d);
}

// Converts pairs of tensors by a formula of one operand; copies bits where the types are equal, and
// writes zeros of float64 as bits where the device lacks it.
void convert(const OpCall& call, std::span<const TensorView> to, std::span<const TensorView> from,
             const elementwise::Formula& formula, DType out, DType in, bool check_only_layout) {
  const bool moved = out == in && (&formula == &kIdentity || call.lacks(out));
  if (!moved) (call.need(out), call.need(in));
  const auto either = [&](DType type) { return out == type || in == type; };
  const DType compute = moved                    ? copy::carrier_type(out)
                        : either(DType::Float64) ? DType::Float64
                                                 : compute_type(out);
  Defines d;
  set_formula(call, d, formula, compute, false, false, 1);
  d.type(define::OUT, moved ? compute : out).type(define::A, moved ? compute : in);
  TensorLists tensors(call, compute, 2, to.size());
  for (size_t t = 0; t < to.size(); ++t)
    tensors.add(std::array{Role{to[t], false, true}, Role{from[t], true, false}});
  if (check_only_layout) return tensors.check_disjoint();
  tensors.run(kernels::multi_tensor::foreach::foreach, d);
}

void convert_op(OpCall& call, Arg source, const elementwise::Formula& formula) {
  check_outputs(call);
  const TensorViews self = call.args().whole_list(Arg::self);
  const TensorViews list = call.args().whole_list(source);
  if (self.empty()) return call.accept();
  const DType in = type_of(call, list);
  const DType out = type_of(call, self);
  if (!is_floating(in))
    unsupported(TB_REASON_DTYPE, "{} from {} is not supported", call.name(), name(in));
  std::vector<TensorView> to, from;
  for (size_t t = 0; t < list.size(); ++t) {
    to.push_back(call.out(t));
    from.push_back(list[t]);
  }
  convert(call, to, from, formula, out, in, true);
  call.accept();
  convert(call, to, from, formula, out, in, false);
}

void copy_op(OpCall& call) { convert_op(call, Arg::src, kIdentity); }
void zero_op(OpCall& call) { convert_op(call, Arg::self, kZero); }

void norm_op(OpCall& call) {
  check_outputs(call);
  const double order = call.args().real(Arg::ord);
  const TensorViews self = call.args().whole_list(Arg::self);
  const bool infinite = std::isinf(order) && order > 0;
  if (order != 1 && order != 2 && !infinite)
    unsupported(TB_REASON_ARGUMENT, "_foreach_norm has kernels for 1, 2 and inf, got {}", order);
  if (self.empty()) return call.accept();
  const DType type = type_of(call, self);
  const DType out = call.out(0).dtype();
  const bool wide = type == DType::Float64 || out == DType::Float64;
  Defines d;
  d.type(define::A, type)
      .type(define::OUT, out)
      .set(define::ORDER, infinite ? 0 : static_cast<int64_t>(order));
  TensorLists tensors(call, wide ? DType::Float64 : DType::Float32, 2);
  for (size_t t = 0; t < self.size(); ++t)
    tensors.add(std::array{Role{self[t], true, false}, Role{call.out(t), false, true, true}});
  tensors.check_disjoint();
  call.accept();
  namespace kernel = kernels::multi_tensor::foreach_norm;
  tensors.run(kernel::norm, kernel::finish, d);
}

std::vector<OpEntry> list_operators() {
  std::vector<OpEntry> list{{"_foreach_copy.out", copy_op, false, true},
                            {"_foreach_zero.out", zero_op, false, true},
                            {"_foreach_norm.Scalar_out", norm_op}};
  for (const Operator& op : operators())
    if (find_foreach(op) != nullptr) list.push_back({op.name.c_str(), foreach_op});
  return list;
}

}  // namespace

void copy_parts(const OpCall& call, std::span<const TensorView> to,
                std::span<const TensorView> from) {
  convert(call, to, from, kIdentity, to[0].dtype(), to[0].dtype(), false);
}

std::span<const OpEntry> foreach_operators() {
  static const auto& list = *new std::vector<OpEntry>(list_operators());
  return list;
}

}  // namespace ocltensor::opencl::multi_tensor
