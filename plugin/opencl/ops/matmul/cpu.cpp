// Matrix products for CPU drivers: packed tiles, tiles over A in place, and products of a few rows.
#include <algorithm>

#include "cpu_tiles.h"
#include "kernels/matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kSkinny = 4;
constexpr int64_t kSmallOutput = 256 * 256;

Planned<TilePlan> plan_packed(const OpCall& call, const Problem& p, const Configuration& c) {
  if (const char* reason = refuse_non_floats(p)) return reason;
  return plan_tiles(call, p, p.k, c);
}
Configurations space(const OpCall& call, const Problem& p) { return tile_space(call, p, p.k); }

Planned<TilePlan> plan_in_place(const OpCall& call, const Problem& p, const Configuration& c) {
  if (p.types.a != DType::Float32) return "A needs conversion";
  return plan_packed(call, p, c);
}
const char* pass_over_in_place(const OpCall&, const Problem& p) {
  return p.m * p.n > kSmallOutput ? "large enough to pack A" : nullptr;
}

void run_in_place(const OpCall& call, const Problem& p, const TilePlan& plan) {
  call.launch(kernels::matmul::cpu_in_place::matmul_in_place, tile_defines(p),
              {.c = memory_of_c(p),
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .scales = memory_of_scales(p),
               .p = matmul_params(p),
               .rows = plan.rows,
               .panels = plan.panels,
               .add_s = p.end.self.has_value()})
      .run(tile_grid(p, plan), {1, 1, 1});
}

void run_packed(const OpCall& call, const Problem& p, const TilePlan& plan) {
  round_once(call, p, takes_several_blocks(p.k), [&](const Problem& q) {
    multiply_packed(call, q, plan, p.k, kernels::matmul::cpu_pack_a::pack_a,
                    Defines().type(define::A_TYPE, q.types.a),
                    kernels::matmul::cpu_packed::matmul_packed);
  });
}

const char* refuse_skinny(const OpCall&, const Problem& p) {
  if (const char* reason = refuse_non_floats(p)) return reason;
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  if (p.m > kSkinny) return "more than 4 rows";
  if (p.b.col == 1) return nullptr;
  if (p.b.row == 1 && (p.a.col == 1 || p.k == 1)) return nullptr;
  return "B has no neighbouring elements";
}

void run_skinny(const OpCall& call, const Problem& p) {
  Defines d = tile_defines(p);
  d.type(define::A_TYPE, p.types.a);
  d.set(define::ROWS, p.m == 1 ? 1 : kSkinny);
  const int64_t batch = p.batch;
  if (p.b.col == 1)
    return call
        .launch(kernels::matmul::cpu_skinny_rows::matmul_skinny_rows, d,
                {.c = memory_of_c(p),
                 .a = memory_of_a(p),
                 .b = memory_of_b(p),
                 .s = memory_of_self(p),
                 .scales = memory_of_scales(p),
                 .p = matmul_params(p),
                 .add_s = p.end.self.has_value()})
        .run({divide_up(p.n, 256), 1, batch}, {1, 1, 1});
  const int64_t columns = std::max<int64_t>(8, divide_up(divide_up(p.n * p.batch, 64), 8) * 8);
  call.launch(kernels::matmul::cpu_skinny_dots::matmul_skinny_dots, d,
              {.c = memory_of_c(p),
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .scales = memory_of_scales(p),
               .p = matmul_params(p),
               .add_s = p.end.self.has_value(),
               .columns = columns})
      .run({divide_up(p.n, columns), 1, batch}, {1, 1, 1});
}

}  // namespace

constinit const AlgorithmFor<Problem> kSkinny({.id = "matmul.skinny",
                                               .description = "a few rows",
                                               .style = DeviceStyle::Cpu},
                                              Steps<refuse_skinny, run_skinny>());
constinit const AlgorithmFor<Problem> kInPlace({.id = "matmul.in_place",
                                                .description = "tiles, A in place",
                                                .style = DeviceStyle::Cpu,
                                                .parameters = kTilePlanParameters},
                                               Steps<plan_in_place, run_in_place, space>(),
                                               pass_over_in_place);
constinit const AlgorithmFor<Problem> kPacked({.id = "matmul.packed",
                                               .description = "tiles, A packed",
                                               .style = DeviceStyle::Cpu,
                                               .parameters = kTilePlanParameters},
                                              Steps<plan_packed, run_packed, space>());

}  // namespace ocltensor::opencl::matmul
