// eigh.divide: eigenvalues of symmetric and Hermitian matrices on GPUs by tridiagonal form, divide
// and conquer, and back transformation.
#include "call/division.h"
#include "eigh_parts.h"
#include "kernels/linalg.h"

namespace ocltensor::opencl::linalg {
namespace {

const char* refuse(const OpCall& call, const EighProblem& p) {
  if (most_leaf_rows(call, real_type(p.a.dtype())) == 0) return "leaves do not fit in local memory";
  if (call.caps().max_work_group_size < 256) return "work-groups are too small";
  return p.a.size(-1) < 2 ? "a matrix of one row" : nullptr;
}

void store_vectors(const OpCall& call, const Stack& reduced, const Tridiagonal& t,
                   const Conquest& solved, const Dims& batch, TensorView out) {
  const int64_t n = reduced.rows;
  const Numbers& found = *solved.vectors;
  Dims sizes = batch;
  Dims strides = contiguous_strides(batch);
  for (int64_t& stride : strides) stride *= solved.total * solved.total;
  for (const int64_t stride : {solved.total, int64_t{1}}) {
    sizes.push_back(n);
    strides.push_back(stride);
  }
  Packed vectors(call, reduced.dtype, batch, n, n);
  vectors.load(LocalTensor(found.view().address(), found.view().dtype(), sizes, strides));
  apply_q(call, reduced.block(1, 0, n - 1, n - 1), vectors.stack().block(1, 0, n - 1, n), batch,
          t.tau.view(), Right::Any);
  vectors.store(out);
}

void run(const OpCall& call, const EighProblem& p) {
  const Dims batch = batch_of(p.a);
  const DType type = p.a.dtype();
  const int64_t count = numel(batch);
  const int64_t n = p.a.size(-1);
  const Packed a(call, type, batch, n, n);
  const Numbers scales(call, real_type(type), {count, n});
  load_symmetric(call, p, a.stack(), scales);
  const Tridiagonal t(call, type, count, n);
  reduce_to_tridiagonal(call, a.stack(), t);
  const Conquest solved(call, t);
  LinalgParams params{};
  params.count = count;
  params.rows = n;
  params.columns = solved.total;
  run_items(
      call,
      launch_typed(call, real_type(type), kernels::linalg::eigh_parts::scale_values,
                   {.value = *solved.values, .scale = scales, .result = p.values, .p = params}),
      count * n);
  if (p.wants_vectors) store_vectors(call, a.stack(), t, solved, batch, p.vectors);
}

}  // namespace

constinit const AlgorithmFor<EighProblem> kDivideEigh(
    {.id = "eigh.divide",
     .description = "tridiagonal form, divide and conquer",
     .style = DeviceStyle::Gpu},
    Steps<refuse, run>());

}  // namespace ocltensor::opencl::linalg
