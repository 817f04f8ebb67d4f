// Launches of a plan's kernels.
#include "launch.h"

#include <c10/util/SmallVector.h>

#include <algorithm>

namespace torch_ocl::plan {
namespace {

LaunchSizes sizes_of(const Integers& integers, const Values& values, const char* name) {
  c10::DimVector place;
  const c10::IntArrayRef numbers = integers.evaluate(values, place);
  LaunchSizes sizes;
  sizes.rank = static_cast<uint32_t>(numbers.size());
  if (sizes.rank > sizes.values.size() ||
      std::any_of(numbers.begin(), numbers.end(), [](int64_t n) { return n < 0; }))
    C10_THROW_ERROR(ValueError,
                    c10::str(name, " must be one to three sizes of at least 0, got ", numbers));
  std::copy(numbers.begin(), numbers.end(), sizes.values.begin());
  return sizes;
}

// The arguments of one launch in the plugin's form.
class Packed {
 public:
  Packed(const KernelReference& kernel, const std::vector<LaunchArgument>& arguments,
         const Values& values)
      : kernel_(kernel) {
    values_.resize(arguments.size());
    tensors_.reserve(arguments.size());  // so that their addresses stay
    for (size_t i = 0; i < arguments.size(); ++i) pack(values_[i], arguments[i], values);
  }
  const tb_value* data() const { return values_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(values_.size()); }

 private:
  void pack(tb_value& v, const LaunchArgument& argument, const Values& values) {
    v = {};
    if (!argument.value.has_value()) return set_integer(v, argument.integer.evaluate(values));
    const c10::IValue& value = values[*argument.value];
    if (!value.isTensor()) return pack_number(v, value);
    tensors_.push_back(describe_argument(kernel_, value.toTensor()));
    v.tag = TB_TENSOR;
    v.as.p = &tensors_.back();
  }

  static void set_integer(tb_value& v, int64_t integer) {
    v.tag = TB_INT;
    v.as.i = integer;
  }

  void pack_number(tb_value& v, const c10::IValue& value) const {
    if (value.isInt()) return set_integer(v, value.toInt());
    if (value.isDouble()) {
      v.tag = TB_FLOAT;
      v.as.f = value.toDouble();
    } else if (value.isBool()) {
      v.tag = TB_BOOL;
      v.as.i = value.toBool();
    } else {
      C10_THROW_ERROR(TypeError,
                      c10::str("kernel ", kernel_.name, ": tensors and numbers can be passed, not ",
                               value.tagKind()));
    }
  }

  const KernelReference& kernel_;
  c10::SmallVector<tb_value, 16> values_;
  c10::SmallVector<tb_tensor, 12> tensors_;
};

}  // namespace

Launch::Launch(KernelReference kernel, std::vector<LaunchArgument> arguments, Integers threads,
               Integers group)
    : kernel_(std::move(kernel)),
      arguments_(std::move(arguments)),
      threads_(std::move(threads)),
      group_(std::move(group)) {
  if (threads_.size() == 0 || (group_.size() != 0 && group_.size() != threads_.size()))
    C10_THROW_ERROR(ValueError, c10::str("group_size has ", group_.size(),
                                         " dimensions, threads has ", threads_.size()));
  if (threads_.are_constant() && group_.are_constant()) fixed_ = range({});
}

LaunchRange Launch::range(const Values& values) const {
  return {sizes_of(threads_, values, "threads"), sizes_of(group_, values, "group_size")};
}

void Launch::run(Run& run) const {
  const Packed arguments(kernel_, arguments_, run.values);
  const bool is_fixed = fixed_.threads.rank != 0;
  launch_kernel(kernel_, arguments.data(), arguments.size(), is_fixed ? fixed_ : range(run.values));
}

}  // namespace torch_ocl::plan
