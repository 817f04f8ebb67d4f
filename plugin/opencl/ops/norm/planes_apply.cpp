// Launches norm/planes_apply_*.cl.
#include "planes_apply.h"

#include <algorithm>

#include "call/divide_up.h"
#include "kernels/norm.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::norm {
namespace {

Defines apply_defines(const Application& a) {
  Defines d;
  d.type(define::COMPUTE, a.compute)
      .type(define::X, a.input.dtype())
      .type(define::OUT, a.out.dtype());
  if (a.grad != nullptr) d.set(define::BACKWARD, 1).type(define::DY, a.grad->dtype());
  if (a.channels_inner()) d.set(define::CHANNELS_INNER, 1);
  return d;
}

}  // namespace

void apply_cpu(const OpCall& call, const Application& a) {
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 4096;
  const Planes& p = a.p;
  const int64_t rows = a.channels_inner() ? p.samples : p.samples * p.channels;
  const int64_t n = a.channels_inner() ? p.channels : p.inner;
  const int64_t piece = std::max(kSmallest, divide_up(rows * n, kPieces));
  const int64_t per = std::max<int64_t>(1, piece / n);
  const int64_t chunk = per > 1 ? n : std::min(n, divide_up(piece, 16) * 16);
  call.launch(kernels::norm::planes_apply_cpu::apply, apply_defines(a),
              {.x = a.input,
               .dy = a.grad,
               .table = a.table,
               .out = a.out,
               .rows = rows,
               .n = n,
               .planes = p.planes,
               .per = per,
               .chunk = chunk})
      .run({divide_up(rows, per), divide_up(n, chunk), 1}, {1, 1, 1});
}

void apply_gpu(const OpCall& call, const Application& a) {
  const int64_t total = a.input.numel();
  Defines d = apply_defines(a);
  d.set(define::INDEX, total < (int64_t{1} << 31) ? "uint" : "ulong");
  const int64_t group = reduce::group_size(call.caps());
  call.launch(kernels::norm::planes_apply_gpu::apply, d,
              {.x = a.input,
               .dy = a.grad,
               .table = a.table,
               .out = a.out,
               .total = static_cast<uint64_t>(total),
               .n = static_cast<uint64_t>(a.p.inner),
               .planes = static_cast<uint64_t>(a.p.planes)})
      .run({divide_up(total, group * 4) * group, 1, 1}, {group, 1, 1});
}

}  // namespace ocltensor::opencl::norm
