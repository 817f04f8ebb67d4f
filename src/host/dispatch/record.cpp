// Saves what derivatives need, and makes nodes of calls.
#include "record.h"

#include "dispatcher.h"

namespace ocltensor::detail {
namespace {

Tensor handle_of(const tb_tensor* t) {
  if (t == nullptr) return {};
  const auto& impl = static_cast<const TensorImpl&>(*t);
  return Tensor(std::const_pointer_cast<TensorImpl>(impl.shared_from_this()));
}

const Derivative* derivative_of(const Operator& op) {
  static const std::vector<const Derivative*>& rows = [] {
    auto& found = *new std::vector<const Derivative*>(operators().size(), nullptr);
    for (const Derivative& d : derivatives()) {
      const Operator* row = find_operator(d.name);
      if (row == nullptr) fail(TB_E_INTERNAL, "derivatives.def names {}, which is none", d.name);
      found[static_cast<size_t>(row->schema.index)] = &d;
    }
    return std::ref(found);
  }();
  return rows[static_cast<size_t>(op.schema.index)];
}

Scalar scalar_of(const tb_value& v) {
  switch (v.tag) {
    case TB_BOOL: return v.as.i != 0;
    case TB_INT: return v.as.i;
    case TB_FLOAT: return v.as.f;
    case TB_COMPLEX: {
      const auto* parts = static_cast<const double*>(v.as.p);
      return std::complex<double>(parts[0], parts[1]);
    }
    default: return 0;
  }
}

}  // namespace

bool needs_recording(std::span<const tb_value> args) {
  bool needed = false;
  for_each_tensor(args, [&](size_t, const TensorImpl& t) { needed = needed || needs_gradient(t); });
  return needed;
}

void count_changes(const Operator& op, std::span<const tb_value> args,
                   std::span<const Tensor> outs) {
  if (!any_gradient_wanted.load(std::memory_order_relaxed)) return;
  for (const Tensor& out : outs)
    if (out.defined()) ++out.impl()->storage->version;
  for_each_tensor(args, [&](size_t i, const TensorImpl& t) {
    if (op.schema.inputs[i].written) ++t.storage->version;
  });
}

SavedCall::SavedCall(const Operator& op, std::span<const tb_value> args, uint64_t saved_tensors)
    : op_(op), entries_(args.size()) {
  for (size_t i = 0; i < args.size(); ++i) {
    const tb_value& v = args[i];
    Entry& e = entries_[i];
    e.tag = v.tag;
    const bool save = (saved_tensors >> i & 1) != 0;
    switch (v.tag) {
      case TB_TENSOR: {
        const Tensor t = handle_of(static_cast<const tb_tensor*>(v.as.p));
        e.sizes = t.sizes();
        e.dtype = t.dtype();
        if (save) e.tensor = SavedTensor(t);
        break;
      }
      case TB_TENSOR_LIST: {
        const auto* list = static_cast<const tb_tensor* const*>(v.as.p);
        for (uint32_t k = 0; k < v.count; ++k) {
          const Tensor t = handle_of(list[k]);
          e.list_sizes.push_back(t.defined() ? t.sizes() : Dims());
          e.tensors.emplace_back(save ? t : Tensor());
        }
        break;
      }
      case TB_INT_LIST: {
        const auto* values = static_cast<const int64_t*>(v.as.p);
        e.ints.assign(values, values + v.count);
        break;
      }
      case TB_STRING: e.text.assign(static_cast<const char*>(v.as.p), v.count); break;
      case TB_DTYPE: e.dtype = from_abi(v.as.dtype); break;
      default: e.number = scalar_of(v);
    }
  }
}

void SavedCall::add_results(std::span<const Tensor> results, uint64_t saved) {
  results_.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i)
    if ((saved >> i & 1) != 0) results_[i] = SavedTensor::output(results[i]);
}

Tensor SavedCall::tensor(size_t i) const {
  const Entry& e = entries_[i];
  if (e.tag == TB_TENSOR) return e.tensor.get(op_.name);
  const DType type = e.number.is_complex() ? DType::Complex128
                     : e.number.is_float() ? DType::Float64
                                           : DType::Int64;
  return full({}, e.number, {type, Device()});
}

Tensor SavedCall::operand(size_t i, DType result) const {
  const Tensor t = tensor(i);
  return is_tensor(i) && is_floating(t.dtype()) && is_floating(result) ? t.to(result) : t;
}

std::optional<Tensor> SavedCall::optional_tensor(size_t i) const {
  return entries_[i].tag == TB_NONE ? std::nullopt : std::optional(tensor(i));
}

std::vector<Tensor> SavedCall::tensors(size_t i) const {
  std::vector<Tensor> list;
  for (const SavedTensor& t : entries_[i].tensors) list.push_back(t.get(op_.name));
  return list;
}

Scalar SavedCall::number(size_t i) const { return entries_[i].number; }
std::optional<Scalar> SavedCall::optional_number(size_t i) const {
  return entries_[i].tag == TB_NONE ? std::nullopt : std::optional(number(i));
}
std::optional<int64_t> SavedCall::optional_integer(size_t i) const {
  return entries_[i].tag == TB_NONE ? std::nullopt : std::optional(integer(i));
}
std::optional<double> SavedCall::optional_real(size_t i) const {
  return entries_[i].tag == TB_NONE ? std::nullopt : std::optional(real(i));
}
std::optional<bool> SavedCall::optional_boolean(size_t i) const {
  return entries_[i].tag == TB_NONE ? std::nullopt : std::optional(boolean(i));
}
IntList SavedCall::ints(size_t i) const {
  const Entry& e = entries_[i];
  if (e.tag == TB_NONE) return std::nullopt;
  if (e.tag == TB_INT) return e.number.as_int();
  return std::span<const int64_t>(e.ints);
}
std::optional<std::string_view> SavedCall::optional_string(size_t i) const {
  return entries_[i].tag == TB_NONE ? std::nullopt : std::optional(string(i));
}
std::optional<DType> SavedCall::optional_dtype(size_t i) const {
  return entries_[i].tag == TB_NONE ? std::nullopt : std::optional(entries_[i].dtype);
}

Recording::Recording(const Operator& op, std::span<const tb_value> args,
                     std::span<const Tensor> outs, bool in_place)
    : derivative_(derivative_of(op)) {
  for (const Tensor& out : outs) {
    if (!out.defined()) continue;
    check(in_place, "{}: an out argument records no gradient: use the form that returns a tensor",
          op.name);
    check_in_place(out, op.name.c_str());
  }
  for_each_tensor(args, [&](size_t i, const TensorImpl& t) {
    check(!op.schema.inputs[i].written || !needs_gradient(t),
          "{} changes '{}' in place, which needs a gradient: run it under NoGrad", op.name,
          op.schema.inputs[i].name);
  });
  call_ = std::make_shared<SavedCall>(op, args,
                                      derivative_ == nullptr ? 0 : derivative_->saved_tensors);
  for (const tb_value& v : args) {
    first_.push_back(edges_.size());
    if (v.tag == TB_TENSOR) {
      edges_.push_back(edge_to(handle_of(static_cast<const tb_tensor*>(v.as.p))));
    } else if (v.tag == TB_TENSOR_LIST) {
      const auto* list = static_cast<const tb_tensor* const*>(v.as.p);
      for (uint32_t k = 0; k < v.count; ++k) edges_.push_back(edge_to(handle_of(list[k])));
    }
  }
  first_.push_back(edges_.size());
  for (const Edge& edge : edges_) complex_ = complex_ || is_complex(edge.dtype);
}

void Recording::finish(std::span<const Tensor> results) {
  if (derivative_ != nullptr && derivative_->function == nullptr) return;
  for (const Tensor& result : results)
    complex_ = complex_ || (result.defined() && is_complex(result.dtype()));
  const auto node = make_node(call_->op().name, std::move(edges_), results.size(), nullptr);
  if (derivative_ == nullptr) {
    node->backward = [name = call_->op().name](const auto&) -> std::vector<Tensor> {
      fail(TB_UNSUPPORTED,
           "the derivative of {} is not known: detach() its arguments, or give one with record()",
           name);
    };
  } else if (complex_ && !derivative_->complex) {
    node->backward = [name = call_->op().name](const auto&) -> std::vector<Tensor> {
      fail(TB_UNSUPPORTED,
           "the derivative of {} is not known for complex numbers: detach() its arguments, or give "
           "one with record()",
           name);
    };
  } else {
    call_->add_results(results, derivative_->saved_results);
    node->backward = [call = call_, row = derivative_, first = std::move(first_),
                      raw = node.get()](const std::vector<Tensor>& grads) {
      Gradients to(*raw, first);
      for (size_t i = 0; i + 1 < first.size(); ++i)
        if ((row->known >> i & 1) == 0 && to.wants(i))
          fail(TB_UNSUPPORTED,
               "the derivative of {} with respect to '{}' is not known: detach() that argument",
               row->name, call->op().schema.inputs[i].name);
      row->function(*call, grads, to);
      return to.take();
    };
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (derivative_ == nullptr || (derivative_->passing >> i & 1) != 0)
      set_history(results[i], node, static_cast<uint32_t>(i));
}

}  // namespace ocltensor::detail

namespace ocltensor {

std::vector<DifferentiableOperator> differentiable_operators() {
  std::vector<DifferentiableOperator> found;
  for (const detail::Derivative& d : detail::derivatives()) {
    if (d.function == nullptr) continue;
    found.push_back({d.name, {}, d.complex});
    const Schema& schema = find_operator(d.name)->schema;
    for (size_t i = 0; i < schema.inputs.size(); ++i)
      if ((d.known >> i & 1) != 0) found.back().arguments.push_back(schema.inputs[i].name);
  }
  return found;
}

}  // namespace ocltensor
