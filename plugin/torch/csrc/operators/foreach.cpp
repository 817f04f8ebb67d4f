// ATen's foreach operators: one call of the plugin if all tensors are alike (floating-point, of one
// type and device, equal shapes at each position), else ATen's own loop over the tensors.
#include <ATen/ATen.h>
#include <ATen/Operators.h>

#include "list_operator.h"
#include "register_kernels.h"

namespace torch_ocl {
namespace {

// Packs the arguments of one call, and finds out whether the plugin can take it.
class Lists {
 public:
  Lists(at::TensorList self, bool any_source_type) : self_(self), copies_(any_source_type) {
    fits_ = !self.empty() && self[0].device().type() == kOcl &&
            at::isFloatingType(self[0].scalar_type());
    add(self, self.empty() ? at::kFloat : self[0].scalar_type());
  }
  void add(at::TensorList list) {
    fits_ = fits_ && list.size() == self_.size() && at::isFloatingType(list[0].scalar_type());
    if (fits_) add(list, copies_ ? list[0].scalar_type() : self_[0].scalar_type());
  }
  void add(const at::Scalar& number) {
    fits_ = fits_ && !number.isComplex() && !number.isSymbolic();
    if (fits_) in_.add(number);
  }
  void add(at::ArrayRef<at::Scalar> numbers) {
    fits_ = fits_ && numbers.size() == self_.size();
    for (const at::Scalar& number : numbers) {
      fits_ = fits_ && !number.isComplex() && !number.isSymbolic();
      if (fits_) reals_.push_back(number.toDouble());
    }
    if (fits_) in_.add(at::ArrayRef<double>(reals_));
  }
  // A tensor with one number.
  void add(const at::Tensor& number) {
    bool alone = true;  // the result depends on neither its dimensions nor its type
    for (const at::Tensor& t : self_) alone = alone && t.dim() > 0;
    fits_ = fits_ && number.dim() == 0 && at::isFloatingType(number.scalar_type()) &&
            (alone || number.scalar_type() == self_[0].scalar_type());
    if (!fits_) return;
    if (number.is_cpu())
      in_.add(number.item().toDouble());
    else if ((fits_ = number.device() == self_[0].device()))
      in_.add(number);
  }
  void add(bool flag) { in_.add(flag); }

  bool fits() const { return fits_; }
  Arguments& arguments() { return in_; }
  c10::DeviceIndex device() const { return self_[0].device().index(); }

 private:
  void add(at::TensorList list, at::ScalarType type) {
    for (size_t i = 0; i < list.size() && fits_; ++i) {
      const at::Tensor& t = list[i];
      fits_ = t.device() == self_[0].device() && t.scalar_type() == type &&
              t.sizes() == self_[i].sizes() && t.layout() == at::kStrided && !t.is_neg();
    }
    if (fits_) in_.add(list);
  }

  at::TensorList self_;
  bool copies_;
  bool fits_;
  c10::SmallVector<double, 64> reals_;
  Arguments in_;
};

at::Tensor result_like(const at::Tensor& t) {
  return t.is_non_overlapping_and_dense()
             ? make_tensor(t.sizes(), t.strides(), t.scalar_type(), t.device().index())
             : at::empty_like(t);
}

// Returns whether the plugin took the call.
template <typename Call>
bool try_plugin(Call&& call) {
  try {
    call();
  } catch (const Declined&) {
    return false;
  }
  return true;
}
bool try_plugin(ListOperator& op, Lists& lists, at::TensorList outs) {
  return try_plugin([&] { op.invoke(lists.arguments(), outs, lists.device()); });
}
bool try_in_place(ListOperator& op, Lists& lists) {
  return try_plugin([&] { op.invoke_in_place(lists.arguments(), lists.device()); });
}

// ATen's loop, which its dispatcher has for backends without foreach kernels, such as the CPU.
constexpr c10::DispatchKeySet kLoop{c10::DispatchKey::CPU};

template <typename Op, auto& plugin_op, typename Signature = typename Op::schema>
struct Foreach;
template <typename Op, auto& plugin_op, typename... A>
struct Foreach<Op, plugin_op, std::vector<at::Tensor>(at::TensorList, A...)> {
  static std::vector<at::Tensor> call(at::TensorList self, A... args) {
    Lists lists(self, false);
    (lists.add(args), ...);
    if (lists.fits()) {
      std::vector<at::Tensor> outs;
      outs.reserve(self.size());
      for (const at::Tensor& t : self) outs.push_back(result_like(t));
      if (try_plugin(plugin_op, lists, outs)) return outs;
    }
    return Op::redispatch(kLoop, self, args...);
  }
};
template <typename Op, auto& plugin_op, typename... A>
struct Foreach<Op, plugin_op, void(at::TensorList, A...)> {
  static void call(at::TensorList self, A... args) {
    for (const at::Tensor& t : self)  // before addresses are taken: may replace a shared storage
      if (t.device().type() == kOcl) (void)t.mutable_data_ptr();
    constexpr bool copies = std::is_same_v<Op, at::_ops::_foreach_copy_>;
    Lists lists(self, copies);
    (lists.add(args), ...);
    if (!lists.fits() || !try_in_place(plugin_op, lists)) Op::redispatch(kLoop, self, args...);
  }
};

std::vector<at::Tensor> norm(at::TensorList self, const at::Scalar& order,
                             std::optional<at::ScalarType> type) {
  static ListOperator& op = *new ListOperator("_foreach_norm.Scalar_out");
  Lists lists(self, false);
  lists.add(order);
  const bool empty = std::ranges::any_of(self, [](const at::Tensor& t) { return t.numel() == 0; });
  if (lists.fits() && !empty && (!type || at::isFloatingType(*type))) {
    lists.arguments().add(type);
    std::vector<at::Tensor> outs;
    for (const at::Tensor& t : self)
      outs.push_back(make_tensor({}, {}, type.value_or(t.scalar_type()), lists.device()));
    if (try_plugin(op, lists, outs)) return outs;
  }
  return at::_ops::_foreach_norm_Scalar::redispatch(kLoop, self, order, type);
}

// Copies all tensors in one launch, as _foreach_copy_ does.
std::vector<at::Tensor> clone(at::TensorList self, std::optional<at::MemoryFormat> format) {
  std::vector<at::Tensor> outs;
  outs.reserve(self.size());
  for (const at::Tensor& t : self) outs.push_back(at::empty_like(t, {}, {}, {}, {}, format));
  if (!outs.empty()) at::_foreach_copy_(outs, self);
  return outs;
}

#define OCL_FOREACH(op, plugin_name) ListOperator plugin_##op(plugin_name);
#include "multi_tensor.def"
#undef OCL_FOREACH

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#define OCL_FOREACH(op, plugin_name) \
  register_kernel<at::_ops::op, Foreach<at::_ops::op, plugin_##op>>(m);
#include "multi_tensor.def"
#undef OCL_FOREACH
  m.impl("_foreach_norm.Scalar", TORCH_FN(norm));
  m.impl("_foreach_clone", TORCH_FN(clone));
}

}  // namespace torch_ocl
