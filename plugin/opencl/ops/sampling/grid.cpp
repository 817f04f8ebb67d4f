// grid_sampler_2d, grid_sampler_3d and their gradients.
#include <algorithm>

#include "call/divide_up.h"
#include "call/division.h"
#include "grid_params.h"
#include "kernels/sampling.h"
#include "ops/copy/copy.h"
#include "ops/index/index.h"
#include "ops/index/runs.h"
#include "sampling.h"

namespace ocltensor::opencl::sampling {
namespace {

// The call's arguments and the kernels' parameters.
struct Sampling {
  explicit Sampling(const OpCall& call)
      : input(call.args().tensor(Arg::input)),
        grid(call.args().tensor(Arg::grid)),
        mode(call.args().integer(Arg::interpolation_mode)),
        batch(input.size(0)),
        dims(input.ndim() - 2) {
    p.padding = static_cast<int32_t>(call.args().integer(Arg::padding_mode));
    p.align = call.args().boolean(Arg::align_corners);
    p.channels = input.size(1);
    p.points = grid.numel() / std::max<int64_t>(1, batch * dims);
    p.elements = 1;
    for (int64_t d = 0; d < dims; ++d) {
      const int64_t size = input.size(-1 - d);
      p.elements *= size;
      if (size > (int64_t{1} << 24))
        unsupported(TB_REASON_SIZE, "{}: images are limited to 2^24 elements a dimension",
                    call.name());
      p.size[d] = static_cast<int32_t>(size);
      taps *= mode == 0 ? 2 : mode == 1 ? 1 : 4;
    }
  }
  Defines defines() const {
    Defines d;
    d.type(define::A, input.dtype()).set(define::DIMS, dims).set(define::MODE, mode);
    return d;
  }
  // Divides `pieces` of work, of `share` channels each, among work-items, and sets the parameters
  // for it.
  struct Pieces {
    GridParams p;
    Division division;
  };
  Pieces cut(const OpCall& call, int64_t pieces, int64_t share = 0) const {
    Pieces all{p, divide(call.caps(), pieces)};
    all.p.pieces = pieces;
    all.p.share = share;
    all.p.per_item = all.division.per_item;
    return all;
  }

  TensorView input, grid;
  int64_t mode, batch, dims, taps = 1;
  GridParams p{};
};

// Channels of a piece of work, if there are `others` pieces in other dimensions and `wanted` shall
// be reached: as many as possible, since finding the places of a point takes longer than reading
// them.
int64_t share_of(int64_t channels, int64_t others, int64_t wanted) {
  const int64_t parts = divide_up(wanted, std::max<int64_t>(1, others));
  return divide_up(channels, std::clamp<int64_t>(parts, 1, std::max<int64_t>(1, channels)));
}

void run_points(const OpCall& call, const Sampling& s) {
  const Contiguous image(call, s.input), grid(call, s.grid);
  ContiguousOutput out(call, call.out(0));
  const int64_t share =
      share_of(s.p.channels, s.batch * s.p.points, by_style<int64_t>(call, 64, 65536));
  const auto [p, division] =
      s.cut(call, s.batch * s.p.points * divide_up(s.p.channels, share), share);
  call.launch(kernels::sampling::grid::forward, s.defines(),
              {.out = out.view(), .image = image.view(), .grid = grid.view(), .p = p})
      .run(division.global, division.local);
  out.finish();
}

constinit const AlgorithmFor<Sampling> kPoints(
    {.id = "sampling.points",
     .description = "a point and some channels for each work-item",
     .last_resort = true},
    Steps<takes_all<Sampling>, run_points>());

std::string describe_sampling(const OpCall& call, const Sampling& s) {
  return fmt::format("{} {} {} points of {}", call.name(), name(s.input.dtype()),
                     s.batch * s.p.points, to_string(s.input.sizes()));
}
struct Traits {
  static std::string describe(const OpCall& call, const Sampling& s) {
    return describe_sampling(call, s);
  }
};
using Algorithms = AlgorithmList<Sampling, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("sampling", sampling_operators(), {&kPoints});  // leaked
  return list;
}

void forward(OpCall& call) {
  check_outputs(call);
  const Sampling s(call);
  call.accept();
  if (call.wants(0)) algorithms().run(call, s);
}

void grid_gradient(const OpCall& call, const Sampling& s, TensorView gradient) {
  if (s.mode == 1 || s.p.channels == 0) return copy::fill_tensor(call, call.out(1), 0);
  const Contiguous image(call, s.input), grid(call, s.grid), dense(call, gradient);
  ContiguousOutput out(call, call.out(1));
  const auto [p, division] = s.cut(call, s.batch * s.p.points);
  call.launch(kernels::sampling::grid::grid_gradient, s.defines(),
              {.out = out.view(),
               .gradient = dense.view(),
               .image = image.view(),
               .grid = grid.view(),
               .p = p})
      .run(division.global, division.local);
  out.finish();
}

struct ImageGradient {
  const Sampling& sampling;
  TensorView gradient;
};

// Each work-item owns some channels of an image and goes through all points.
void image_gradient_by_channels(const OpCall& call, const ImageGradient& what) {
  const Sampling& s = what.sampling;
  const Contiguous grid(call, s.grid), dense(call, what.gradient);
  Dims order;
  for (int64_t d = 0; d < s.dims + 2; ++d) order.push_back(d);
  index::Target target(call, call.out(0), order);
  const int64_t share = share_of(s.p.channels, s.batch, 2 * call.caps().compute_units);
  const auto [p, division] = s.cut(call, s.batch * divide_up(s.p.channels, share), share);
  call.launch(kernels::sampling::grid::image_gradient, s.defines(),
              {.out = target.view(), .gradient = dense.view(), .grid = grid.view(), .p = p})
      .run(division.global, division.local);
  target.finish();
}

// The places that points read are sorted, and the points of each place are added up in order,
// channels in parallel.
void image_gradient_by_places(const OpCall& call, const ImageGradient& problem) {
  const Sampling& s = problem.sampling;
  Dims order{0};
  for (int64_t d = 0; d < s.dims; ++d) order.push_back(2 + d);
  order.push_back(1);
  index::Target target(call, call.out(0), order);
  copy::fill_tensor(call, target.view(), 0);
  const int64_t entries = s.batch * s.p.points * s.taps;
  if (entries > 0) {
    const DType type = compute_type(s.input.dtype());
    const Scratch keys(call.scratch(static_cast<uint64_t>(entries) * 8));
    const Scratch weights(call.scratch(static_cast<uint64_t>(entries * size_of(type))));
    const LocalTensor key_tensor(keys.address(), DType::Int64, Dims{entries});
    const LocalTensor weight_tensor(weights.address(), type, Dims{entries});
    const Contiguous grid(call, s.grid), dense(call, copy::permuted(problem.gradient, order));
    const auto [p, division] = s.cut(call, s.batch * s.p.points);
    call.launch(kernels::sampling::grid::taps, s.defines(),
                {.key = key_tensor, .weight = weight_tensor, .grid = grid.view(), .p = p})
        .run(division.global, division.local);
    index::Accumulation what{target.view(), dense.view(), key_tensor};
    what.length = entries;
    what.block = s.p.channels;
    what.target_blocks = s.batch * s.p.elements;
    const TensorView factors = weight_tensor.view();
    what.factors = &factors;
    what.factors_each = s.taps;
    index::accumulate_runs_gpu(call, what);
  }
  target.finish();
}

constinit const AlgorithmFor<ImageGradient> kChannels(
    {.id = "sampling_backward.channels",
     .description = "some channels of an image for each work-item, which goes through all points",
     .style = DeviceStyle::Cpu,
     .last_resort = true},
    Steps<takes_all<ImageGradient>, image_gradient_by_channels>());
constinit const AlgorithmFor<ImageGradient> kPlaces(
    {.id = "sampling_backward.places",
     .description = "what points read is sorted by its place",
     .style = DeviceStyle::Gpu,
     .last_resort = true},
    Steps<takes_all<ImageGradient>, image_gradient_by_places>());

struct BackwardTraits {
  static std::string describe(const OpCall& call, const ImageGradient& what) {
    return describe_sampling(call, what.sampling);
  }
};
using BackwardAlgorithms = AlgorithmList<ImageGradient, BackwardTraits>;

BackwardAlgorithms& backward_algorithms() {
  static BackwardAlgorithms& list = *new BackwardAlgorithms(
      "sampling_backward", sampling_operators(), {&kChannels, &kPlaces});  // leaked
  return list;
}

void backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(Arg::grad_output);
  const Sampling s(call);
  const int64_t limit = by_style<int64_t>(call, INT64_MAX, INT32_MAX);  // of places to sort
  if (s.batch * s.p.points * s.taps >= limit || s.batch * s.p.elements >= limit)
    unsupported(TB_REASON_SIZE, "{}: images and what is read of them are limited to 2^31 places",
                call.name());
  call.accept();
  const auto wanted = call.args().booleans(Arg::output_mask);
  if (wanted[0] && call.wants(0)) backward_algorithms().run(call, {s, gradient});
  if (wanted[1] && call.wants(1)) grid_gradient(call, s, gradient);
}

constexpr OpEntry kOperators[] = {
    {"grid_sampler_2d.out", forward},
    {"grid_sampler_2d_backward.out", backward},
    {"grid_sampler_3d.out", forward},
    {"grid_sampler_3d_backward.out", backward},
};

}  // namespace

std::span<const OpEntry> sampling_operators() { return kOperators; }

const AlgorithmFamily& sampling_algorithms() { return algorithms().family(); }
const AlgorithmFamily& sampling_backward_algorithms() { return backward_algorithms().family(); }

}  // namespace ocltensor::opencl::sampling
