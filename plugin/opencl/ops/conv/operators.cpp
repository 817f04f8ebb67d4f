// convolution and convolution_backward: their arguments become problems.
#include "call/division.h"
#include "conv.h"
#include "kernels/conv.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::conv {
namespace {

// Sets up to three spatial dimensions, the last ones of three; those before them become `missing`.
void set_spatial(tk_i64 (&target)[3], std::span<const int64_t> values, size_t rank,
                 int64_t missing) {
  for (size_t d = 0; d < 3; ++d) {
    const size_t lead = 3 - rank;
    target[d] = d < lead             ? missing
                : values.size() == 1 ? values[0]
                : values.empty()     ? missing
                                     : values[d - lead];
  }
}
void set_strides(tk_i64 (&target)[5], TensorView tensor) {
  const auto strides = tensor.strides();
  const size_t lead = 5 - strides.size();
  for (size_t d = 0; d < 5; ++d)
    target[d] = d < 2 ? strides[d] : d - 2 < lead ? 0 : strides[d - lead];
}

// `small` is the tensor of window positions: the output, or the input of a transposed convolution.
Problem problem(Direction direction, const Args& args, TensorView big, TensorView small,
                TensorView weight) {
  const auto rank = static_cast<size_t>(weight.ndim()) - 2;
  Problem p{.direction = direction,
            .dtype = big.dtype(),
            .big = big.address(),
            .small = small.address(),
            .weight = weight.address(),
            .bias = std::nullopt,
            .params = {}};
  ConvParams& g = p.params;
  g.batch = big.size(0);
  g.groups = args.integer(Arg::groups);
  g.big_channels = big.size(1) / g.groups;
  g.small_channels = small.size(1) / g.groups;
  set_spatial(g.in, big.sizes().subspan(2), rank, 1);
  set_spatial(g.out, small.sizes().subspan(2), rank, 1);
  set_spatial(g.window, weight.sizes().subspan(2), rank, 1);
  set_spatial(g.stride, args.ints(Arg::stride), rank, 1);
  set_spatial(g.padding, args.ints(Arg::padding), rank, 0);
  set_spatial(g.dilation, args.ints(Arg::dilation), rank, 1);
  set_strides(g.big_strides, big);
  set_strides(g.small_strides, small);
  set_strides(g.weight_strides, weight);
  return p;
}

// Calls `body` with output i, or with a contiguous copy where elements of the output overlap.
template <typename Body>
void with_output(OpCall& call, size_t i, Body&& body) {
  const TensorView out = call.out(i);
  if (!has_internal_overlap(out.sizes(), out.strides())) return body(out);
  ContiguousOutput copy(call, out);
  body(copy.view());
  copy.finish();
}

void convolution(OpCall& call) {
  const Args& args = call.args();
  (void)check_outputs(call);
  const TensorView input = args.tensor(Arg::input);
  const TensorView weight = args.tensor(Arg::weight);
  const auto bias = args.optional_tensor(Arg::bias);
  const bool transposed = args.boolean(Arg::transposed);
  call.accept();
  if (call.out(0).numel() == 0) return;
  with_output(call, 0, [&](TensorView out) {
    Problem p = transposed ? problem(Direction::Data, args, out, input, weight)
                           : problem(Direction::Forward, args, input, out, weight);
    if (bias) {
      p.bias = bias->address();
      p.params.bias_stride = bias->strides()[0];
    }
    run_convolution(call, p);
  });
}

constexpr reduce::Reduction kSum{1, {{"a", reduce::kAdd, "0", "x"}}};

void bias_gradient(OpCall& call, TensorView grad, TensorView out) {
  if (!grad.is_contiguous() && grad.numel() > 0) {
    const auto rank = static_cast<size_t>(grad.ndim());
    Dims sizes(rank, 1), strides(rank, 0);
    sizes[1] = out.size(0);
    strides[1] = out.strides()[0];
    const LocalTensor sums(out.address(), out.dtype(), sizes, strides);
    const TensorView views[] = {grad, sums.view()};
    const DimMask but_channels = first_dims(rank).reset(1);
    return reduce::launch_reduce(call, {&kSum,
                                        compute_type(grad.dtype()),
                                        Dims(grad.sizes()),
                                        but_channels,
                                        {&views[0]},
                                        {&views[1]}});
  }
  const Contiguous in(call, grad);
  const int64_t lanes = by_style<int64_t>(call, 1, 128);
  const int64_t channels = grad.size(1);
  const int64_t positions =
      channels * grad.size(0) == 0 ? 0 : grad.numel() / channels / grad.size(0);
  Defines d;
  d.type(define::TYPE, grad.dtype()).set(define::FLOATING, 1).set(define::LANES, lanes);
  call.launch(kernels::conv::operators_bias::bias, d,
              {.out = out,
               .in = in.view(),
               .out_stride = out.strides()[0],
               .batch = grad.size(0),
               .batch_stride = channels * positions,
               .channel_stride = positions,
               .positions = positions})
      .run({channels * lanes, 1, 1}, {lanes, 1, 1});
}

void convolution_backward(OpCall& call) {
  const Args& args = call.args();
  (void)check_outputs(call);
  const TensorView grad = args.tensor(Arg::grad_output);
  const TensorView input = args.tensor(Arg::input);
  const TensorView weight = args.tensor(Arg::weight);
  const bool transposed = args.boolean(Arg::transposed);
  const auto mask = args.booleans(Arg::output_mask);
  call.accept();
  const TensorView big = transposed ? grad : input;
  const TensorView small = transposed ? input : grad;
  Shared shared;
  const auto run = [&](Direction direction, TensorView b, TensorView s, TensorView w) {
    Problem p = problem(direction, args, b, s, w);
    p.shared = &shared;
    run_convolution(call, p);
  };
  if (mask[0] && call.wants(0))
    with_output(call, 0, [&](TensorView out) {
      transposed ? run(Direction::Forward, grad, out, weight)
                 : run(Direction::Data, out, grad, weight);
    });
  if (mask[1] && call.wants(1))
    with_output(call, 1, [&](TensorView out) { run(Direction::Weight, big, small, out); });
  if (mask[2] && call.wants(2)) bias_gradient(call, grad, call.out(2));
}

constexpr OpEntry kOperators[] = {{"convolution.out", convolution},
                                  {"convolution_backward.out", convolution_backward}};

}  // namespace

std::span<const OpEntry> conv_operators() { return kOperators; }

}  // namespace ocltensor::opencl::conv
