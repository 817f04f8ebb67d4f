// Inference for resampling of [N, C, ...]; how many dimensions are resampled is in the name.
#include "common.h"

namespace ocltensor::infer {
namespace {

size_t resampled(const Args& args) {
  const std::string& name = args.schema().name;
  return static_cast<size_t>(name[name.find_first_of("123")] - '0');
}

// [N, C, ...] of `input` with the sizes of `spatial`.
Dims with_spatial(const Args& args, std::span<const int64_t> input, const Dims& spatial) {
  bool fits = input.size() == 2 + spatial.size();
  for (size_t d = 0; fits && d < spatial.size(); ++d) fits = input[2 + d] > 0 && spatial[d] > 0;
  check(fits, "{} needs non-empty images of {} dimensions and an output size, got {} and {}",
        args.schema().full_name(), 2 + spatial.size(), to_string(input), to_string(spatial));
  Dims sizes{input[0], input[1]};
  for (const int64_t size : spatial) sizes.push_back(size);
  return sizes;
}

}  // namespace

Specs upsample(const Args& args) {
  const auto self = args.tensor(Arg::self);
  return {spec(self.dtype(), with_spatial(args, self.sizes(),
                                          spatial(args, Arg::output_size, resampled(args), {})))};
}

Specs upsample_backward(const Args& args) {
  const auto grad = args.tensor(Arg::grad_output);
  const size_t dims = resampled(args);
  const Dims input = spatial(args, Arg::input_size, 2 + dims, {});
  const Dims expected = with_spatial(args, input, spatial(args, Arg::output_size, dims, {}));
  check(Dims(grad.sizes()) == expected, "{}: grad_output must have shape {}, got {}",
        args.schema().full_name(), to_string(expected), to_string(grad.sizes()));
  return {spec(grad.dtype(), input)};
}

}  // namespace ocltensor::infer
