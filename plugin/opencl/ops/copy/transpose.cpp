// Copies that swap dimensions on CPU drivers, by blocks.
#include "base/iteration.h"
#include "call/divide_up.h"
#include "copy.h"
#include "kernels/copy.h"
#include "pointwise_params.h"

namespace ocltensor::opencl::copy {
namespace {

constexpr int64_t kBlock = 64;    // transpose.cl
constexpr int64_t kShortest = 8;  // elements along either dimension that are worth a block

}  // namespace

Planned<PointwiseParams> plan_transpose(const OpCall&, const Problem& copy) {
  const TensorView target = copy.target, source = copy.source;
  if (source.dtype() != target.dtype()) return "the types differ";
  if (target.itemsize() > 4) return "elements are larger than 4 bytes";
  IterationSpace nest = make_iteration(
      target.sizes(),
      std::vector{Dims(target.strides()),
                  broadcast_strides(source.sizes(), source.strides(), target.sizes())});
  Dims& out = nest.strides[0];
  Dims& in = nest.strides[1];
  if (nest.rank() < 2 || nest.rank() > POINTWISE_RANK || out[0] != 1 || in[0] == 1 ||
      nest.sizes[0] < kShortest)
    return "no two long dimensions are swapped";
  size_t along = 1;  // the dimension that is contiguous in the source
  while (along < nest.rank() && in[along] != 1) ++along;
  if (along == nest.rank() || nest.sizes[along] < kShortest)
    return "no two long dimensions are swapped";
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
  return p;
}

void run_transpose(const OpCall& call, const Problem& copy, const PointwiseParams& p) {
  int64_t planes = 1;
  for (int32_t i = 2; i < p.rank; ++i) planes *= p.sizes[i];
  Defines d;
  d.type(define::TYPE, carrier_type(copy.target.dtype()));
  call.launch(kernels::copy::transpose::transpose, d,
              {.out = copy.target, .in = copy.source, .p = p})
      .run({divide_up(p.sizes[0], kBlock), divide_up(p.sizes[1], kBlock), planes}, {1, 1, 1});
}

}  // namespace ocltensor::opencl::copy
