// Plans of register tiles on CPU drivers, and sums that are rounded once.
#include "cpu_tiles.h"

#include <algorithm>

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kPanel = 32;                                          // tile_rows.h
constexpr int64_t kBlock = 256;                                         // tile_rows.h
constexpr uint64_t kPackedBytes = 8 * kBlock * kPanel * sizeof(float);  // local memory of the tiles

// The cheapest plan by a model in cycles: 1 per row, panel and step; about 6 per packed row of a
// panel (repeated for every chunk of rows); 0.05 per row and k to fetch A again; 500 per work-item.
// The cost of the last, partly filled round of work-items falls with their number.
TilePlan cheapest(const Problem& p, int64_t steps, uint32_t threads) {
  TilePlan best{kTileRows, 1};
  double lowest = 0;
  for (const int64_t panels : {1, 2, 4, 8}) {
    if (panels > 1 && kPanel * panels / 2 >= p.n) break;
    for (const int64_t chunk : {32, 64, 96, 128, 192, 256, 512, 1024}) {
      if (chunk > 32 && chunk / 2 >= p.m) break;
      const int64_t rows = divide_up(std::min(chunk, p.m), kTileRows) * kTileRows;
      const int64_t used = std::min(panels, divide_up(p.n, kPanel));
      const int64_t items = p.batch * divide_up(p.n, kPanel * panels) * divide_up(p.m, rows);
      const double item = static_cast<double>(steps) * (static_cast<double>(used * (rows + 6)) +
                                                        0.05 * static_cast<double>(rows)) +
                          500;
      const double cost = static_cast<double>(divide_up(items, threads)) * item *
                          (1 + 0.5 / static_cast<double>(items));
      if (lowest == 0 || cost < lowest) {
        lowest = cost;
        best = {static_cast<int32_t>(rows), static_cast<int32_t>(panels)};
      }
    }
  }
  return best;
}

}  // namespace

Planned<TilePlan> plan_tiles(const OpCall& call, const Problem& p, int64_t steps) {
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  if (call.caps().local_memory < kPackedBytes) return "less than 256 KiB of local memory";
  return cheapest(p, steps, call.caps().compute_units);
}

Grid tile_grid(const Problem& p, const TilePlan& plan) {
  return {divide_up(p.n, kPanel * plan.panels), divide_up(p.m, plan.rows), p.batch};
}

bool takes_several_blocks(int64_t steps) { return steps > kBlock; }

void round_once(const OpCall& call, const Problem& p, bool several,
                const std::function<void(const Problem& p, DType out)>& multiply) {
  if (!several || p.dtype == DType::Float32) return multiply(p, p.dtype);
  const Dims sizes{p.batch, p.m, p.n};
  const Scratch sums = call.scratch(static_cast<uint64_t>(numel(sizes)) * sizeof(float));
  Problem wide = p;
  wide.c = {sums.address(), p.m * p.n, p.n, 1};
  multiply(wide, DType::Float32);
  copy_tensor(call, LocalTensor(p.c.address, p.dtype, sizes, {p.c.batch, p.c.row, p.c.col}),
              LocalTensor(sums.address(), DType::Float32, sizes));
}

}  // namespace ocltensor::opencl::matmul
