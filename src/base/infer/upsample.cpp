// Inference for upsampling of images, [N, C, H, W].
#include "common.h"

namespace ocltensor::infer {
namespace {

void check_sizes(const Args& args, std::span<const int64_t> input, const Dims& output) {
  check(input.size() == 4 && input[2] > 0 && input[3] > 0 && output[0] > 0 && output[1] > 0,
        "{} needs a non-empty image [N, C, H, W] and output size, got {} and {}",
        args.schema().full_name(), to_string(input), to_string(output));
}

Specs backward(const Args& args) {
  const auto grad = args.tensor(0);
  const Dims output = spatial(args, 1, 2, {});
  const Dims input = spatial(args, 2, 4, {});
  check_sizes(args, input, output);
  const Dims expected{input[0], input[1], output[0], output[1]};
  check(Dims(grad.sizes()) == expected, "{}: grad_output must have shape {}, got {}",
        args.schema().full_name(), to_string(expected), to_string(grad.sizes()));
  return {spec(grad.dtype(), input)};
}

}  // namespace

Specs upsample_nearest2d(const Args& args) {
  const auto self = args.tensor(0);
  const Dims output = spatial(args, 1, 2, {});
  check_sizes(args, self.sizes(), output);
  return {spec(self.dtype(), Dims{self.size(0), self.size(1), output[0], output[1]})};
}

Specs upsample_bilinear2d(const Args& args) { return upsample_nearest2d(args); }
Specs upsample_nearest2d_backward(const Args& args) { return backward(args); }
Specs upsample_bilinear2d_backward(const Args& args) { return backward(args); }

}  // namespace ocltensor::infer
