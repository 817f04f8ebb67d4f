// Products of groups on CPU drivers: register tiles over A in place, as floats.
#include "cpu_tiles.h"
#include "kernels/matmul.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::matmul {
namespace {

Planned<TilePlan> plan(const OpCall& call, const GroupedProblem& p) {
  Problem share = p.even_share();
  share.k = std::max<int64_t>(share.k, 1);
  return plan_tiles(call, share, share.k, {});
}

// A is read once for each panel of columns, so that its numbers are converted before.
struct Floats {
  std::optional<Scratch> memory;
  Matrix matrix;
  Floats(const OpCall& call, const GroupedProblem& p) : matrix(p.product.a) {
    const Problem& q = p.product;
    if (q.type() == DType::Float32) return;
    const Dims sizes{q.a.batch == 0 ? 1 : q.batch, q.m, q.k};
    memory.emplace(call.scratch(static_cast<uint64_t>(numel(sizes)) * sizeof(float)));
    copy_tensor(call, LocalTensor(memory->address(), DType::Float32, sizes),
                LocalTensor(q.a.address, q.type(), sizes, {q.a.batch, q.a.row, q.a.col}));
    matrix = {memory->address(), q.a.batch == 0 ? 0 : q.m * q.k, q.k, 1};
  }
};

void run(const OpCall& call, const GroupedProblem& p, const TilePlan& tile) {
  const Floats a(call, p);
  Problem whole = p.product;
  whole.batch = p.matrices();  // of the result
  round_once(call, whole, takes_several_blocks(whole.k), [&](const Problem& q) {
    Problem left = p.product;
    left.a = a.matrix;
    left.types.a = DType::Float32;
    MatmulParams params = matmul_params(q);
    params.a_batch = a.matrix.batch, params.a_row = a.matrix.row, params.a_col = a.matrix.col;
    call.launch(kernels::matmul::grouped_cpu::matmul_grouped,
                tile_defines(q).set(define::GROUPED, static_cast<int64_t>(p.parts)),
                {.c = memory_of_c(q),
                 .a = memory_of_a(left),
                 .b = memory_of_b(p.product),
                 .ends = p.memory_of_ends(),
                 .groups = static_cast<int32_t>(p.product.batch),
                 .faults = p.faults(call),
                 .p = params,
                 .rows = tile.rows,
                 .panels = tile.panels})
        .run({p.tiles_of_n(32 * tile.panels), p.tiles_of_m(tile.rows), p.matrices()}, {1, 1, 1});
  });
}

}  // namespace

constinit const AlgorithmFor<GroupedProblem> kGroupedInPlace({.id = "matmul_grouped.in_place",
                                                              .description = "tiles, A in place",
                                                              .style = DeviceStyle::Cpu,
                                                              .last_resort = true},
                                                             Steps<plan, run>());

}  // namespace ocltensor::opencl::matmul
