// Sliding blocks as columns, and back (im2col, col2im). Nothing is sent to the device.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;

// One dimension of im2col: taps of a block that are `dilation` apart, blocks that are `stride`
// apart, in the padded input.
struct Taps {
  int64_t kernel, dilation, blocks, stride, padded;
};

Taps taps(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
  TORCH_CHECK(kernel > 0 && dilation > 0 && stride > 0 && padding >= 0,
              "kernel, dilation and stride should be greater than zero and padding not negative");
  const int64_t padded = size + 2 * padding;
  const int64_t room = padded - (dilation * (kernel - 1) + 1);
  TORCH_CHECK(room >= 0, "a sliding block of ", kernel, " by dilation ", dilation,
              " does not fit into ", padded, " elements");
  return {kernel, dilation, room / stride + 1, stride, padded};
}

// The place of each tap of each block, tap-major, made on the device of `like`.
Tensor places(const Taps& t, const Tensor& like) {
  const auto numbers = like.options().dtype(at::kLong);
  const Tensor tap = at::arange(0, t.kernel * t.dilation, t.dilation, numbers);
  const Tensor block = at::arange(0, t.blocks * t.stride, t.stride, numbers);
  return tap.unsqueeze(1).add(block).reshape({-1});
}

Tensor im2col(const Tensor& self, at::IntArrayRef kernel, at::IntArrayRef dilation,
              at::IntArrayRef padding, at::IntArrayRef stride) {
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
              "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
              "dimensions for input, but got: ",
              self.sizes());
  if (self.dim() == 3)
    return at::im2col(self.unsqueeze(0), kernel, dilation, padding, stride).squeeze(0);
  const Taps h = taps(self.size(2), kernel[0], dilation[0], padding[0], stride[0]);
  const Taps w = taps(self.size(3), kernel[1], dilation[1], padding[1], stride[1]);
  const Tensor padded =
      at::constant_pad_nd(self, {padding[1], padding[1], padding[0], padding[0]}, 0).contiguous();
  const int64_t n = self.size(0), c = self.size(1);
  const at::IntArrayRef step = padded.strides();
  return padded
      .as_strided({n, c, h.kernel, w.kernel, h.blocks, w.blocks},
                  {step[0], step[1], h.dilation * step[2], w.dilation * step[3], h.stride * step[2],
                   w.stride * step[3]})
      .reshape({n, c * h.kernel * w.kernel, h.blocks * w.blocks});
}

Tensor col2im(const Tensor& self, c10::SymIntArrayRef output_size, at::IntArrayRef kernel,
              at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride) {
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3,
              "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
              "non-zero dimensions for input, but got: ",
              self.sizes());
  if (self.dim() == 2)
    return at::col2im_symint(self.unsqueeze(0), output_size, kernel, dilation, padding, stride)
        .squeeze(0);
  const at::IntArrayRef size = C10_AS_INTARRAYREF_SLOW(output_size);
  const Taps h = taps(size[0], kernel[0], dilation[0], padding[0], stride[0]);
  const Taps w = taps(size[1], kernel[1], dilation[1], padding[1], stride[1]);
  TORCH_CHECK(self.size(1) % (h.kernel * w.kernel) == 0 && self.size(2) == h.blocks * w.blocks,
              "Given output_size ", size, " and kernel_size ", kernel, ", input ", self.sizes(),
              " should have ", h.blocks * w.blocks, " columns of a multiple of ",
              h.kernel * w.kernel, " elements");
  const int64_t n = self.size(0), c = self.size(1) / (h.kernel * w.kernel);
  const Tensor blocks = self.reshape({n, c, h.kernel, w.kernel, h.blocks, w.blocks})
                            .transpose(3, 4)
                            .reshape({n, c, h.kernel * h.blocks, w.kernel * w.blocks});
  const Tensor rows = at::zeros({n, c, blocks.size(2), w.padded}, self.options())
                          .index_add(3, places(w, self), blocks);
  return at::zeros({n, c, h.padded, w.padded}, self.options())
      .index_add(2, places(h, self), rows)
      .narrow(2, padding[0], size[0])
      .narrow(3, padding[1], size[1])
      .contiguous();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("im2col", TORCH_FN(im2col));
  register_out<im2col>(m, "im2col.out");
  m.impl("col2im", TORCH_FN(col2im));
  register_out<col2im>(m, "col2im.out");
}

}  // namespace torch_ocl
