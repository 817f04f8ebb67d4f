// Copies that swap dimensions on CPU drivers, by blocks.
#include "base/iteration.h"
#include "call/divide_up.h"
#include "copy.h"
#include "kernel_sources.h"
#include "pointwise_params.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kBlock = 64;    // transpose.cl
constexpr int64_t kShortest = 8;  // elements along either dimension that are worth a block

}  // namespace

bool transpose_copy(const OpCall& call, TensorView target, TensorView source) {
  if (call.caps().style != KernelStyle::Cpu || target.itemsize() > 4) return false;
  IterationSpace nest = make_iteration(
      target.sizes(),
      std::vector{Dims(target.strides()),
                  broadcast_strides(source.sizes(), source.strides(), target.sizes())});
  Dims& out = nest.strides[0];
  Dims& in = nest.strides[1];
  if (nest.rank() < 2 || nest.rank() > POINTWISE_RANK || out[0] != 1 || in[0] == 1 ||
      nest.sizes[0] < kShortest)
    return false;
  size_t along = 1;  // the dimension whose neighbours are neighbours in the source
  while (along < nest.rank() && in[along] != 1) ++along;
  if (along == nest.rank() || nest.sizes[along] < kShortest) return false;
  std::swap(nest.sizes[1], nest.sizes[along]);
  std::swap(out[1], out[along]);
  std::swap(in[1], in[along]);

  PointwiseParams p{};
  p.rank = static_cast<int32_t>(nest.rank());
  for (size_t i = 0; i < nest.rank(); ++i) {
    p.sizes[i] = nest.sizes[i];
    p.strides[0][i] = out[i];
    p.strides[1][i] = in[i];
  }
  Defines d;
  d.type("TYPE", target.dtype());
  Launch launch = call.launch(kernel_sources::copy_transpose, "transpose", d);
  bind(launch, target);
  bind(launch, source);
  launch.value(p).run({static_cast<size_t>(divide_up(p.sizes[0], kBlock)),
                       static_cast<size_t>(divide_up(p.sizes[1], kBlock)),
                       static_cast<size_t>(nest.numel / p.sizes[0] / p.sizes[1])},
                      {1, 1, 1});
  return true;
}

}  // namespace ocltensor::opencl
