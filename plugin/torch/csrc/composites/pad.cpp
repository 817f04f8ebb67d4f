// Padding by reflection and replication, by the plugin's operators for any number of dimensions.
#include "composite.h"
#include "operators/operator.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using c10::SymIntArrayRef;

// ATen's checks, for the forms whose checks ATen leaves to the kernel; the last `dims` dimensions
// are padded.
void check_padding(const Tensor& self, at::IntArrayRef padding, int64_t dims, bool reflects) {
  TORCH_CHECK(padding.size() == static_cast<size_t>(2 * dims), "padding size is expected to be ",
              2 * dims);
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "Expected ", dims + 1, "D or ",
              dims + 2, "D (batch mode) tensor for input, but got: ", self.sizes());
  for (int64_t k = 0; k < dims; ++k) {
    const int64_t size = self.size(-1 - k), before = padding[2 * k], after = padding[2 * k + 1];
    TORCH_CHECK(!reflects || (before < size && after < size),
                "Padding size should be less than the corresponding input dimension, but got: "
                "padding (",
                before, ", ", after, ") at dimension ", self.dim() - 1 - k, " of input ",
                self.sizes());
    TORCH_CHECK(size + before + after >= 1 && size > 0, "input of size ", self.sizes(),
                " is too small for padding ", padding);
  }
}

std::vector<int64_t> padded_sizes(const Tensor& self, at::IntArrayRef padding) {
  std::vector<int64_t> sizes = self.sizes().vec();
  for (size_t k = 0; 2 * k < padding.size(); ++k)
    sizes[sizes.size() - 1 - k] += padding[2 * k] + padding[2 * k + 1];
  return sizes;
}

void check_gradient(const Tensor& grad, const Tensor& self, at::IntArrayRef padding) {
  TORCH_CHECK(grad.sizes() == at::IntArrayRef(padded_sizes(self, padding)), "grad_output has size ",
              grad.sizes(), ", which is not that of input ", self.sizes(), " padded by ", padding);
}

// New memory for the result; images keep their format.
Tensor result_of(const Tensor& self, at::IntArrayRef sizes, int64_t dims) {
  const auto format = dims == 2 ? self.suggest_memory_format() : at::MemoryFormat::Contiguous;
  return at::empty(sizes, self.options().memory_format(format));
}

PluginOperator plugin_pad("_ocl_pad.out"), plugin_pad_backward("_ocl_pad_backward.out");

// Runs the plugin's operator on its first argument. Returns why it was declined, if it was: ATen's
// runs on the CPU then.
std::optional<std::string> declined(PluginOperator& op, const Tensor& source,
                                    at::IntArrayRef padding, bool reflects, Tensor& out) {
  Arguments in;
  in.add(source);
  in.add(padding);
  in.add(c10::string_view(reflects ? "reflect" : "replicate"));
  try {
    op.run_out(in, std::span(&out, 1));
    return std::nullopt;
  } catch (const Declined& reason) {
    return reason.what();
  }
}

// ATen's operators for `dims` padded dimensions.
template <int64_t dims, bool reflects>
struct Pad {
  static std::string name(const char* rest) {
    return c10::str(reflects ? "reflection_pad" : "replication_pad", dims, "d", rest);
  }
  static void fall_back(const char* rest, torch::jit::Stack stack, const std::string& reason) {
    fall_back_row(name(rest).c_str(), RowForm::Out, stack, reason.c_str());
  }

  static Tensor& forward_out(const Tensor& self, SymIntArrayRef symbolic, Tensor& out) {
    const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(symbolic);
    check_padding(self, padding, dims, reflects);
    if (const auto reason = declined(plugin_pad, self, padding, reflects, out))
      fall_back(".out", {self, padding, out}, *reason);
    return out;
  }

  static Tensor forward(const Tensor& self, SymIntArrayRef symbolic) {
    const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(symbolic);
    check_padding(self, padding, dims, reflects);
    Tensor out = result_of(self, padded_sizes(self, padding), dims);
    return forward_out(self, symbolic, out);
  }

  static Tensor& backward_out(const Tensor& grad, const Tensor& self, SymIntArrayRef symbolic,
                              Tensor& out) {
    const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(symbolic);
    check_padding(self, padding, dims, reflects);
    check_gradient(grad, self, padding);
    if (const auto reason = declined(plugin_pad_backward, grad, padding, reflects, out))
      fall_back("_backward.grad_input", {grad, self, padding, out}, *reason);
    return out;
  }

  static Tensor backward(const Tensor& grad, const Tensor& self, SymIntArrayRef padding) {
    Tensor out = result_of(self, self.sizes(), dims);
    return backward_out(grad, self, padding, out);
  }

  static void register_outs(torch::Library& m) {
    m.impl(name(".out").c_str(), TORCH_FN(forward_out));
    m.impl(name("_backward.grad_input").c_str(), TORCH_FN(backward_out));
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  Pad<1, true>::register_outs(m);
  Pad<2, true>::register_outs(m);
  Pad<3, true>::register_outs(m);
  Pad<1, false>::register_outs(m);
  Pad<2, false>::register_outs(m);
  Pad<3, false>::register_outs(m);
  // These forms are not structured, or have results of another layout than ATen would derive.
  m.impl("reflection_pad2d", TORCH_FN((Pad<2, true>::forward)));
  m.impl("replication_pad2d", TORCH_FN((Pad<2, false>::forward)));
  m.impl("reflection_pad2d_backward", TORCH_FN((Pad<2, true>::backward)));
  m.impl("replication_pad2d_backward", TORCH_FN((Pad<2, false>::backward)));
  m.impl("replication_pad3d_backward", TORCH_FN((Pad<3, false>::backward)));
}

}  // namespace torch_ocl
