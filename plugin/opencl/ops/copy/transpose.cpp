// Copies that swap dimensions, by blocks: on CPU drivers in registers, on GPUs in local memory.
#include "base/iteration.h"
#include "call/divide_up.h"
#include "call/quotient.h"
#include "copy.h"
#include "kernels/copy.h"
#include "pointwise_params.h"

namespace ocltensor::opencl::copy {
namespace {

constexpr int64_t kBlock = 64;  // transpose.cl
constexpr int64_t kGpuItems = 256;

// The edge of transpose_gpu.cl's block.
int64_t gpu_block(int64_t itemsize) { return itemsize > 4 ? 32 : 64; }

// The nest of the copy with the dimension that is contiguous in the target first, and the source's
// second. `shortest`: elements along either that are worth a block.
Planned<PointwiseParams> plan_blocks(const Problem& copy, int64_t shortest) {
  const TensorView target = copy.target, source = copy.source;
  if (source.dtype() != target.dtype()) return "the types differ";
  IterationSpace nest = make_iteration(
      target.sizes(),
      std::vector{Dims(target.strides()),
                  broadcast_strides(source.sizes(), source.strides(), target.sizes())});
  Dims& out = nest.strides[0];
  Dims& in = nest.strides[1];
  if (nest.rank() < 2 || nest.rank() > POINTWISE_RANK || out[0] != 1 || in[0] == 1 ||
      nest.sizes[0] < shortest)
    return "no two long dimensions are swapped";
  size_t along = 1;  // the dimension that is contiguous in the source
  while (along < nest.rank() && in[along] != 1) ++along;
  if (along == nest.rank() || nest.sizes[along] < shortest)
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
  set_quotients(nest.sizes, IndexWidth::Bits64, p.multipliers, p.shifts);
  return p;
}

int64_t planes_of(const PointwiseParams& p) {
  int64_t planes = 1;
  for (int32_t i = 2; i < p.rank; ++i) planes *= p.sizes[i];
  return planes;
}

}  // namespace

Planned<PointwiseParams> plan_transpose(const OpCall&, const Problem& copy) {
  if (copy.target.itemsize() > 4) return "elements are larger than 4 bytes";
  return plan_blocks(copy, 8);
}

void run_transpose(const OpCall& call, const Problem& copy, const PointwiseParams& p) {
  Defines d;
  d.type(define::TYPE, carrier_type(copy.target.dtype()));
  call.launch(kernels::copy::transpose::transpose, d,
              {.out = copy.target, .in = copy.source, .p = p})
      .run({divide_up(p.sizes[0], kBlock), divide_up(p.sizes[1], kBlock), planes_of(p)}, {1, 1, 1});
}

Planned<PointwiseParams> plan_transpose_gpu(const OpCall& call, const Problem& copy) {
  const int64_t size = copy.target.itemsize(), block = gpu_block(size);
  if (size > 8) return "elements are larger than 8 bytes";
  if (call.caps().local_memory < static_cast<uint64_t>(block * (block + 1) * size))
    return "a block does not fit in local memory";
  if (call.caps().max_work_group_size < kGpuItems) return "work-groups are too small";
  return plan_blocks(copy, 16);
}

void run_transpose_gpu(const OpCall& call, const Problem& copy, const PointwiseParams& p) {
  const int64_t block = gpu_block(copy.target.itemsize()), rows = kGpuItems / block;
  Defines d;
  d.type(define::TYPE, carrier_type(copy.target.dtype()))
      .set(define::BLOCK, block)
      .set(define::ROWS, rows);
  call.launch(kernels::copy::transpose_gpu::transpose_gpu, d,
              {.out = copy.target, .in = copy.source, .p = p})
      .run(
          {divide_up(p.sizes[0], block) * block, divide_up(p.sizes[1], block) * rows, planes_of(p)},
          {block, rows, 1});
}

}  // namespace ocltensor::opencl::copy
