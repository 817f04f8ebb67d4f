// What products by register tiles on CPU drivers have in common (kernels/include/tile_sweep.h): the
// plan, and the launches where A is packed.
#pragma once

#include <functional>

#include "kernels/defines.h"
#include "matmul.h"

namespace ocltensor::opencl::matmul {

// The tile of a work-item: its rows, and its panels of 32 columns.
struct TilePlan {
  int32_t rows;
  int32_t panels;
};
constexpr ParameterNames kTilePlanParameters{"rows", "panels"};
// For `steps` steps along k: one for each k, or for each pair of them.
Planned<TilePlan> plan_tiles(const OpCall& call, const Problem& p, int64_t steps,
                             const Configuration& configuration);
Configurations tile_space(const OpCall& call, const Problem& p, int64_t steps);
Grid tile_grid(const Problem& p, const TilePlan& plan);

// Whether so many steps are summed in several blocks.
bool takes_several_blocks(int64_t steps);
// Multiplies by `multiply`, whose sums meet in the result of the problem that it is told: this
// one's, or, if they take `several` blocks and have 16 bits, in float scratch memory, to be rounded
// once.
void round_once(const OpCall& call, const Problem& p, bool several,
                const std::function<void(const Problem& p)>& multiply);

constexpr int64_t kTileRows = 8;        // tile_rows.h
constexpr int64_t kPackedAtOnce = 512;  // steps that a work-item of the packing kernels packs
// Of kernels that include tile_rows.h.
Defines tile_defines(const Problem& p);

// A is packed as panels [m / 8][step][8] of 4 bytes by `pack`, which `multiply` reads.
template <typename Pack, typename Multiply>
void multiply_packed(const OpCall& call, const Problem& p, const TilePlan& plan, int64_t steps,
                     const KernelOf<Pack>& pack, const Defines& of_pack,
                     const KernelOf<Multiply>& multiply) {
  const int64_t batch = p.a.batch == 0 ? 1 : p.batch;
  const int64_t panel_batch = divide_up(p.m, kTileRows) * kTileRows * steps;
  const Scratch panels = call.scratch(static_cast<uint64_t>(batch * panel_batch) * sizeof(float));
  const MatmulParams params = matmul_params(p);
  call.launch(pack, of_pack,
              Pack{.panel = panels, .a = memory_of_a(p), .p = params, .panel_batch = panel_batch})
      .run({divide_up(p.m, kTileRows), divide_up(steps, kPackedAtOnce), batch}, {1, 1, 1});

  call.launch(multiply, tile_defines(p),
              Multiply{.c = memory_of_c(p),
                       .a = panels,
                       .b = memory_of_b(p),
                       .s = memory_of_self(p),
                       .scales = memory_of_scales(p),
                       .p = params,
                       .a_batch = batch == 1 ? 0 : panel_batch,
                       .rows = plan.rows,
                       .panels = plan.panels,
                       .add_s = p.end.self.has_value()})
      .run(tile_grid(p, plan), {1, 1, 1});
}

}  // namespace ocltensor::opencl::matmul
