// Plans of register tiles on CPU drivers, and sums that are rounded once.
#include "cpu_tiles.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kPanel = 32;        // tile_rows.h
constexpr int64_t kBlock = 256;       // tile_rows.h
constexpr size_t kMostMeasured = 24;  // plans, the cheapest
constexpr int64_t kMostPanels = 8;    // tile_sweep.h
constexpr uint64_t kPackedBytes = kMostPanels * kBlock * kPanel * sizeof(float);  // local memory

// The cost of a plan by a model in cycles: 1 per row, panel and step; about 6 per packed row of a
// panel (repeated for every chunk of rows); 0.05 per row and k to fetch A again; 500 per work-item.
// The cost of the last, partly filled round of work-items falls with their number.
double model_cost(const Problem& p, int64_t steps, uint32_t threads, const TilePlan& plan) {
  const int64_t used = std::min<int64_t>(plan.panels, divide_up(p.n, kPanel));
  const int64_t items = p.batch * divide_up(p.n, kPanel * plan.panels) * divide_up(p.m, plan.rows);
  const double item = static_cast<double>(steps) * (static_cast<double>(used * (plan.rows + 6)) +
                                                    0.05 * static_cast<double>(plan.rows)) +
                      500;
  return static_cast<double>(divide_up(items, threads)) * item *
         (1 + 0.5 / static_cast<double>(items));
}

// The plans that are worth a thought: no tile is twice as large as the result.
template <typename Each>
void each_plan(const Problem& p, std::initializer_list<int64_t> chunks, const Each& each) {
  const int64_t smallest = *chunks.begin();
  for (const int64_t panels : {1, 2, 4, 8}) {
    if (panels > 1 && kPanel * panels / 2 >= p.n) break;
    for (const int64_t chunk : chunks) {
      if (chunk > smallest && chunk / 2 >= p.m) break;
      const int64_t rows = divide_up(std::min(chunk, p.m), kTileRows) * kTileRows;
      each(TilePlan{static_cast<int32_t>(rows), static_cast<int32_t>(panels)});
    }
  }
}

TilePlan cheapest(const Problem& p, int64_t steps, uint32_t threads) {
  TilePlan best{kTileRows, 1};
  double lowest = 0;
  each_plan(p, {32, 64, 96, 128, 192, 256, 512, 1024}, [&](const TilePlan& plan) {
    const double cost = model_cost(p, steps, threads, plan);
    if (lowest != 0 && cost >= lowest) return;
    lowest = cost;
    best = plan;
  });
  return best;
}

}  // namespace

Planned<TilePlan> plan_tiles(const OpCall& call, const Problem& p, int64_t steps,
                             const Configuration& configuration) {
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  if (call.caps().local_memory < kPackedBytes) return "less than 256 KiB of local memory";
  if (configuration.empty()) return cheapest(p, steps, call.caps().compute_units);
  if (configuration.size() != 2) return "it has two sizes";
  const int64_t rows = configuration[0], panels = configuration[1];
  if (rows < kTileRows || rows % kTileRows != 0 || panels < 1 || panels > kMostPanels)
    return "no such tile";
  return TilePlan{static_cast<int32_t>(rows), static_cast<int32_t>(panels)};
}

Configurations tile_space(const OpCall& call, const Problem& p, int64_t steps) {
  std::vector<std::pair<double, Configuration>> found;
  const uint32_t threads = call.caps().compute_units;
  each_plan(p, {8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024}, [&](const TilePlan& plan) {
    found.emplace_back(model_cost(p, steps, threads, plan), Configuration{plan.rows, plan.panels});
  });
  std::ranges::stable_sort(found, {}, [](const auto& f) { return f.first; });
  Configurations space;
  for (const auto& [cost, configuration] : found) {
    if (space.size() == kMostMeasured) break;
    if (std::ranges::find(space, configuration) == space.end()) space.push_back(configuration);
  }
  return space;
}

Grid tile_grid(const Problem& p, const TilePlan& plan) {
  return {divide_up(p.n, kPanel * plan.panels), divide_up(p.m, plan.rows), p.batch};
}

Defines tile_defines(const Problem& p) {
  Defines d = float_defines(p);
  if (p.end.formula != nullptr) elementwise::define_vector_form(d, *p.end.formula);
  return d;
}

bool takes_several_blocks(int64_t steps) { return steps > kBlock; }

void round_once(const OpCall& call, const Problem& p, bool several,
                const std::function<void(const Problem& p)>& multiply) {
  if (!several || p.types.result == DType::Float32) return multiply(p);
  const Dims sizes{p.batch, p.m, p.n};
  const Scratch sums = call.scratch(static_cast<uint64_t>(numel(sizes)) * sizeof(float));
  Problem wide = p;
  wide.c = {sums.address(), p.m * p.n, p.n, 1};
  wide.types.result = DType::Float32;
  multiply(wide);
  copy_tensor(call, LocalTensor(p.c.address, p.types.result, sizes, {p.c.batch, p.c.row, p.c.col}),
              LocalTensor(sums.address(), DType::Float32, sizes));
}

}  // namespace ocltensor::opencl::matmul
