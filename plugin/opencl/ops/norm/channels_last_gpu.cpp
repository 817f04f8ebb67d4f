// Launches norm/channels_last_gpu*.cl.
#include "channels_last_gpu.h"

#include <algorithm>
#include <optional>

#include "call/divide_up.h"
#include "call/scalar_bits.h"
#include "kernels/norm.h"
#include "norm_channels_params.h"
#include "ops/reduce/reduction.h"
#include "planes_gpu.h"
#include "planes_operands.h"

namespace ocltensor::opencl::norm {
namespace {

// How the matrix is divided: work-groups of `group` items have `columns` vectors of `width`
// channels of a row.
class Work {
 public:
  Work(const OpCall& call, const Planes& p, std::initializer_list<TensorView> tensors,
       DType compute)
      : width_(vector_width(p.channels, tensors)),
        group_(reduce::group_size(call.caps())),
        units_(static_cast<int64_t>(call.caps().compute_units)) {
    const int64_t vectors = p.channels / width_;
    for (int64_t c = 16; c >= 2; c /= 2)  // the least waste, and of those the widest
      if (divide_up(vectors, c) * c < divide_up(vectors, columns_) * columns_) columns_ = c;
    params.rows = p.samples;
    params.channels = p.channels;
    params.count = scalar_bits(p.count(), compute);
  }

  // For sums every compute unit has two work-groups, which run at once, so that none is the last;
  // for results more, which have nothing to merge. Every lane has a few rows.
  void cut_for_sums() { cut(2 * units_); }
  void cut_for_results() { cut(16 * units_); }

  void run(Launch launch) const {
    launch.run({tiles() * group_, params.pieces, 1}, {group_, 1, 1});
  }
  void run_merge(Launch launch) const {
    constexpr int64_t kMerged = 8;  // MERGED of norm_channels.h
    launch.run({divide_up(params.channels, kMerged) * group_, 1, 1}, {group_, 1, 1});
  }

  Defines defines(DType compute) const {
    const bool is_small = params.rows * params.channels < (int64_t{1} << 31);
    Defines d;
    d.type(define::COMPUTE, compute)
        .set(define::VEC, width_)
        .set(define::COLUMNS, columns_)
        .set(define::GROUP, group_)
        .set(define::INDEX, is_small ? "uint" : "ulong");
    return d;
  }

  NormChannelsParams params{};

 private:
  int64_t tiles() const { return divide_up(params.channels / width_, columns_); }
  void cut(int64_t groups) {
    constexpr int64_t kRows = 4;  // of a lane, at least
    const int64_t at_once = kRows * group_ / columns_;
    const int64_t pieces =
        std::clamp<int64_t>(groups / tiles(), 1, divide_up(params.rows, at_once));
    params.piece = divide_up(divide_up(params.rows, pieces), at_once) * at_once;
    params.pieces = divide_up(params.rows, params.piece);
  }

  int64_t width_, columns_ = 32, group_, units_;
};

Scratch numbers(const OpCall& call, int64_t count, DType type) {
  return call.scratch(static_cast<uint64_t>(count * size_of(type)));
}

}  // namespace

const char* refuse_channels_last_gpu(const Planes& p) {
  return p.by_channel() && p.inner == 1 ? nullptr : "channels are not the last dimension";
}

void channels_last_forward_gpu(const OpCall& call, const PlanesProblem& problem) {
  const auto& [input, out, weight, bias, mean, variance, p, train, given] = problem;
  const DType compute = compute_type(input.dtype());
  ContiguousOutput save_mean(call, call.out(1)), save_scale(call, call.out(2));
  Work w(call, p, {input, out}, compute);
  set_operands(w.params, problem);
  Defines d = w.defines(compute);
  define_operands(d, call, problem);
  std::optional<Scratch> table;
  if (train) {
    w.cut_for_sums();
    table.emplace(numbers(call, 3 * p.channels, compute));
    const Scratch partials = numbers(call, 2 * w.params.pieces * p.channels, compute);
    w.run(call.launch(kernels::norm::channels_last_gpu::moments, d,
                      {.x = input, .partials = partials, .p = w.params}));
    w.run_merge(call.launch(kernels::norm::channels_last_gpu::merge, d,
                            {.x = input,
                             .partials = partials,
                             .weight = weight,
                             .bias = bias,
                             .running_mean = mean,
                             .running_var = variance,
                             .save_mean = save_mean,
                             .save_scale = save_scale,
                             .table = table,
                             .p = w.params}));
  }
  w.cut_for_results();
  w.run(call.launch(kernels::norm::channels_last_gpu::apply, d,
                    {.x = input,
                     .weight = weight,
                     .bias = bias,
                     .running_mean = mean,
                     .running_var = variance,
                     .table = table,
                     .out = out,
                     .p = w.params}));
  save_mean.finish();
  save_scale.finish();
}

void channels_last_backward_gpu(const OpCall& call, const PlanesGradient& problem) {
  const auto& [grad, input, out, saved, weight, p, train, which] = problem;
  const DType compute = compute_type(input.dtype());
  Work w(call, p, {grad, input, out}, compute);
  set_operands(w.params, problem);
  Defines d = w.defines(compute);
  define_operands(d, call, problem);
  std::array<std::optional<ContiguousOutput>, 2> outs;
  for (size_t i = 0; i < 2; ++i)
    if (which[i + 1]) outs[i].emplace(call, call.out(i + 1));
  const Scratch table = numbers(call, 4 * p.channels, compute);
  std::optional<Scratch> partials;  // else there are no pieces to merge
  if (train || which[1] || which[2]) {
    w.cut_for_sums();
    partials.emplace(numbers(call, 2 * w.params.pieces * p.channels, compute));
    w.run(call.launch(
        kernels::norm::channels_last_gpu_backward::sums, d,
        {.dy = grad, .x = input, .mean = saved.mean, .partials = partials, .p = w.params}));
  }
  w.run_merge(call.launch(kernels::norm::channels_last_gpu_backward::merge, d,
                          {.partials = partials,
                           .mean = saved.mean,
                           .inverse = saved.inverse,
                           .weight = weight,
                           .dw = outs[0],
                           .db = outs[1],
                           .table = table,
                           .p = w.params}));
  if (which[0]) {
    w.cut_for_results();
    w.run(call.launch(kernels::norm::channels_last_gpu_backward::apply, d,
                      {.dy = grad, .x = input, .table = table, .out = out, .p = w.params}));
  }
  for (auto& o : outs)
    if (o) o->finish();
}

}  // namespace ocltensor::opencl::norm
