// Operators that ATen implements by tables of kernels for its own devices, which out-of-tree
// devices cannot extend: Kaiser's window, conjugation in place, and the shifts << and >>.
#include "composite.h"
#include "operators/kernel.h"

namespace torch_ocl {
namespace {

using at::Scalar;
using at::Tensor;

constexpr double kDefaultBeta = 12.0;

// I0(beta sqrt(1 - x^2)) / I0(beta) at `length` points x from -1 to 1. A periodic window has
// `length` + 1 points, of which the last is dropped.
Tensor kaiser_window(int64_t length, bool periodic, double beta,
                     std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                     std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const at::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided,
              "kaiser_window is not implemented for sparse types, got: ", *layout);
  TORCH_CHECK(at::isFloatingType(type), "kaiser_window expects floating point dtypes, got: ", type);
  TORCH_CHECK(length >= 0,
              "kaiser_window requires non-negative window_length, got window_length=", length);
  const auto options =
      at::TensorOptions(device.value_or(at::kPrivateUse1)).pinned_memory(pin_memory);
  if (length <= 1) return at::ones({length}, options.dtype(type));
  const int64_t points = periodic ? length + 1 : length;
  const auto wide = options.dtype(type == at::kDouble ? at::kDouble : at::kFloat);
  const Tensor x = at::arange(length, wide).mul_(2.0 / static_cast<double>(points - 1)).sub_(1.0);
  const Tensor depth = x.square().neg_().add_(1.0).clamp_min_(0.0).sqrt_().mul_(beta);
  return at::i0(depth).div_(at::i0(at::full({}, beta, wide))).to(type);
}
Tensor kaiser_window_periodic(int64_t length, bool periodic, std::optional<at::ScalarType> dtype,
                              std::optional<at::Layout> layout, std::optional<at::Device> device,
                              std::optional<bool> pin_memory) {
  return kaiser_window(length, periodic, kDefaultBeta, dtype, layout, device, pin_memory);
}
Tensor kaiser_window_default(int64_t length, std::optional<at::ScalarType> dtype,
                             std::optional<at::Layout> layout, std::optional<at::Device> device,
                             std::optional<bool> pin_memory) {
  return kaiser_window(length, true, kDefaultBeta, dtype, layout, device, pin_memory);
}

PluginOperator plugin_conj("conj_physical.out");
Tensor& conj_physical_(Tensor& self) {
  if (!self.is_complex()) return self;
  return InPlace<at::_ops::conj_physical_, plugin_conj>::call(self);
}

template <typename Other>
Tensor shift_left(const Tensor& self, const Other& other) {
  return at::bitwise_left_shift(self, other);
}
template <typename Other>
Tensor shift_right(const Tensor& self, const Other& other) {
  return at::bitwise_right_shift(self, other);
}
template <typename Other>
Tensor& shift_left_(Tensor& self, const Other& other) {
  return self.bitwise_left_shift_(other);
}
template <typename Other>
Tensor& shift_right_(Tensor& self, const Other& other) {
  return self.bitwise_right_shift_(other);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("kaiser_window", TORCH_FN(kaiser_window_default));
  m.impl("kaiser_window.periodic", TORCH_FN(kaiser_window_periodic));
  m.impl("kaiser_window.beta", TORCH_FN(kaiser_window));
  m.impl("conj_physical_", TORCH_FN(conj_physical_));
  m.impl("__lshift__.Scalar", TORCH_FN(shift_left<Scalar>));
  m.impl("__lshift__.Tensor", TORCH_FN(shift_left<Tensor>));
  m.impl("__rshift__.Scalar", TORCH_FN(shift_right<Scalar>));
  m.impl("__rshift__.Tensor", TORCH_FN(shift_right<Tensor>));
  m.impl("__ilshift__.Scalar", TORCH_FN(shift_left_<Scalar>));
  m.impl("__ilshift__.Tensor", TORCH_FN(shift_left_<Tensor>));
  m.impl("__irshift__.Scalar", TORCH_FN(shift_right_<Scalar>));
  m.impl("__irshift__.Tensor", TORCH_FN(shift_right_<Tensor>));
}

}  // namespace torch_ocl
