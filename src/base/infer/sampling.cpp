// Inference for sampling images and volumes, [N, C, (D,) H, W], at the points of a grid.
#include "common.h"

namespace ocltensor::infer {
namespace {

void check_sampling(const Args& args, int64_t dims) {
  const auto input = args.tensor(Arg::input), grid = args.tensor(Arg::grid);
  const std::string& name = args.schema().full_name();
  check_floating(args, input);
  check_same_type(args, input, grid);
  check(input.ndim() == dims + 2 && grid.ndim() == dims + 2,
        "{}: expected an input and a grid of {} dimensions, got input of shape {} and grid of "
        "shape {}",
        name, dims + 2, to_string(input.sizes()), to_string(grid.sizes()));
  check(input.size(0) == grid.size(0),
        "{}: expected grid and input to have same batch size, but got input with sizes {} and "
        "grid with sizes {}",
        name, to_string(input.sizes()), to_string(grid.sizes()));
  check(grid.size(-1) == dims,
        "{}: expected grid to have size {} in last dimension, but got grid with sizes {}", name,
        dims, to_string(grid.sizes()));
  for (int64_t d = 2; d < input.ndim(); ++d)
    check(input.size(d) > 0,
          "{}: expected input to have non-empty spatial dimensions, but input has sizes {}", name,
          to_string(input.sizes()));
  const int64_t mode = args.integer(Arg::interpolation_mode);
  const int64_t padding = args.integer(Arg::padding_mode);
  check(mode >= 0 && mode <= (dims == 2 ? 2 : 1),
        "{}: interpolation_mode must be 0 (bilinear), 1 (nearest){}, got {}", name,
        dims == 2 ? " or 2 (bicubic)" : "; bicubic is for images alone", mode);
  check(padding >= 0 && padding <= 2,
        "{}: padding_mode must be 0 (zeros), 1 (border) or 2 (reflection), got {}", name, padding);
}

Dims sampled_sizes(TensorView input, TensorView grid) {
  Dims sizes{input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.ndim(); ++d) sizes.push_back(grid.size(d));
  return sizes;
}

Specs sampled(const Args& args, int64_t dims) {
  check_sampling(args, dims);
  const auto input = args.tensor(Arg::input);
  return {spec(input.dtype(), sampled_sizes(input, args.tensor(Arg::grid)))};
}

Specs sampled_backward(const Args& args, int64_t dims) {
  check_sampling(args, dims);
  const auto gradient = args.tensor(Arg::grad_output), input = args.tensor(Arg::input),
             grid = args.tensor(Arg::grid);
  check_same_type(args, gradient, input);
  const Dims expected = sampled_sizes(input, grid);
  check(Dims(gradient.sizes()) == expected, "{}: grad_output must have shape {}, got {}",
        args.schema().full_name(), to_string(expected), to_string(gradient.sizes()));
  const auto wanted = args.booleans(Arg::output_mask);
  return {wanted[0] ? spec(input.dtype(), input.sizes()) : no_output(input.dtype()),
          wanted[1] ? spec(grid.dtype(), grid.sizes()) : no_output(grid.dtype())};
}

}  // namespace

Specs grid_sampler_2d(const Args& args) { return sampled(args, 2); }
Specs grid_sampler_3d(const Args& args) { return sampled(args, 3); }
Specs grid_sampler_2d_backward(const Args& args) { return sampled_backward(args, 2); }
Specs grid_sampler_3d_backward(const Args& args) { return sampled_backward(args, 3); }

}  // namespace ocltensor::infer
