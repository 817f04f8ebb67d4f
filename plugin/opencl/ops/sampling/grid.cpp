// grid_sampler_2d, grid_sampler_3d and their gradients.
#include <algorithm>

#include "call/divide_up.h"
#include "call/division.h"
#include "grid_params.h"
#include "kernel_sources.h"
#include "ops/copy/copy.h"
#include "ops/index/index.h"
#include "ops/index/runs.h"
#include "sampling.h"

namespace ocltensor::opencl {
namespace {

// The call's arguments, from the image at `first` on.
struct Sampling {
  Sampling(const OpCall& call, size_t first)
      : input(call.args().tensor(first)),
        grid(call.args().tensor(first + 1)),
        mode(call.args().integer(first + 2)),
        batch(input.size(0)),
        dims(input.ndim() - 2) {
    p.padding = static_cast<int32_t>(call.args().integer(first + 3));
    p.align = call.args().boolean(first + 4);
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
  Defines defines(const OpCall& call) const {
    Defines d;
    d.type("A", input.dtype())
        .set("DIMS", dims)
        .set("MODE", mode)
        .set("CPU_STYLE", is_cpu_style(call));
    return d;
  }
  void run(const OpCall& call, Launch& launch, int64_t pieces) {
    p.pieces = pieces;
    const Division division = divide(call.caps(), pieces);
    p.per_item = division.per_item;
    launch.value(p).run(division.global, division.local);
  }

  TensorView input, grid;
  int64_t mode, batch, dims, taps = 1;
  GridParams p{};
};

// Channels of a piece of work where `others` pieces are there anyway and `wanted` are: finding the
// places of a point takes longer than reading them.
int64_t share_of(int64_t channels, int64_t others, int64_t wanted) {
  const int64_t parts = divide_up(wanted, std::max<int64_t>(1, others));
  return divide_up(channels, std::clamp<int64_t>(parts, 1, std::max<int64_t>(1, channels)));
}

void forward(OpCall& call) {
  check_outputs(call);
  Sampling s(call, 0);
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous image(call, s.input), grid(call, s.grid);
  ContiguousOutput out(call, call.out(0));
  s.p.share = share_of(s.p.channels, s.batch * s.p.points, is_cpu_style(call) ? 64 : 65536);
  Launch launch = call.launch(kernel_sources::sampling_grid, "forward", s.defines(call));
  bind(launch, out.view());
  bind(launch, image.view());
  bind(launch, grid.view());
  s.run(call, launch, s.batch * s.p.points * divide_up(s.p.channels, s.p.share));
  out.finish();
}

void grid_gradient(const OpCall& call, Sampling& s, TensorView gradient) {
  if (s.mode == 1 || s.p.channels == 0) return fill_tensor(call, call.out(1), 0);
  const Contiguous image(call, s.input), grid(call, s.grid), dense(call, gradient);
  ContiguousOutput out(call, call.out(1));
  Launch launch = call.launch(kernel_sources::sampling_grid, "grid_gradient", s.defines(call));
  bind(launch, out.view());
  bind(launch, dense.view());
  bind(launch, image.view());
  bind(launch, grid.view());
  s.run(call, launch, s.batch * s.p.points);
  out.finish();
}

// CPU drivers: an item owns channels of an image.
void image_gradient_by_channels(const OpCall& call, Sampling& s, TensorView gradient) {
  const Contiguous grid(call, s.grid), dense(call, gradient);
  Dims order;
  for (int64_t d = 0; d < s.dims + 2; ++d) order.push_back(d);
  Target target(call, call.out(0), order);
  s.p.share = share_of(s.p.channels, s.batch, 2 * call.caps().compute_units);
  Launch launch = call.launch(kernel_sources::sampling_grid, "image_gradient", s.defines(call));
  bind(launch, target.view());
  bind(launch, dense.view());
  bind(launch, grid.view());
  s.run(call, launch, s.batch * divide_up(s.p.channels, s.p.share));
  target.finish();
}

// GPUs: what points read is sorted by its place, and every place adds up its points in order,
// channels side by side.
void image_gradient_by_places(const OpCall& call, Sampling& s, TensorView gradient) {
  Dims order{0};
  for (int64_t d = 0; d < s.dims; ++d) order.push_back(2 + d);
  order.push_back(1);
  Target target(call, call.out(0), order);
  fill_tensor(call, target.view(), 0);
  const int64_t entries = s.batch * s.p.points * s.taps;
  if (entries > 0) {
    const DType type = compute_type(s.input.dtype());
    const Scratch keys(call.scratch(static_cast<uint64_t>(entries) * 8));
    const Scratch weights(call.scratch(static_cast<uint64_t>(entries * size_of(type))));
    const LocalTensor key_tensor(keys.address(), DType::Int64, Dims{entries});
    const LocalTensor weight_tensor(weights.address(), type, Dims{entries});
    const Contiguous grid(call, s.grid), dense(call, permuted(gradient, order));
    Launch launch = call.launch(kernel_sources::sampling_grid, "taps", s.defines(call));
    bind(launch, key_tensor);
    bind(launch, weight_tensor);
    bind(launch, grid.view());
    s.run(call, launch, s.batch * s.p.points);
    Accumulation what{target.view(), dense.view(), key_tensor};
    what.length = entries;
    what.block = s.p.channels;
    what.target_blocks = s.batch * s.p.elements;
    const TensorView factors = weight_tensor.view();
    what.factors = &factors;
    what.factors_each = s.taps;
    accumulate_runs(call, what);
  }
  target.finish();
}

void backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(0);
  Sampling s(call, 1);
  if (!is_cpu_style(call) &&
      (s.batch * s.p.points * s.taps >= INT32_MAX || s.batch * s.p.elements >= INT32_MAX))
    unsupported(TB_REASON_SIZE, "{}: images and what is read of them are limited to 2^31 places",
                call.name());
  call.accept();
  const auto wanted = call.args().booleans(6);
  if (wanted[0] && call.wants(0)) {
    if (is_cpu_style(call))
      image_gradient_by_channels(call, s, gradient);
    else
      image_gradient_by_places(call, s, gradient);
  }
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

}  // namespace ocltensor::opencl
