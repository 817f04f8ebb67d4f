// Matrix products for CPU drivers: packed tiles, tiles over A in place, and products of a few rows.
#include <algorithm>

#include "kernels/matmul.h"
#include "matmul.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kTileRows = 8;  // tile_rows.h
constexpr int64_t kPanel = 32;    // tile_rows.h
constexpr int64_t kBlock = 256;   // tile_rows.h
constexpr int64_t kSkinny = 4;
constexpr int64_t kSmallOutput = 256 * 256;
constexpr uint64_t kPackedBytes = 8 * kBlock * kPanel * sizeof(float);  // local memory of the tiles

const char* refuse_common(const Problem& p) {
  if (compute_type(p.dtype) != DType::Float32) return "not computed in float32";
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  return nullptr;
}

int64_t count(int64_t n, int64_t piece) { return divide_up(n, piece); }

Defines defines(const Problem& p, DType out) {
  Defines d;
  d.type(define::TYPE, p.dtype).type(define::OUT, out);
  return d;
}

Grid tile_grid(const Problem& p, const TilePlan& plan) {
  return {count(p.n, kPanel * plan.panels), count(p.m, plan.rows), p.batch};
}

Planned<TilePlan> plan_packed(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_common(p)) return reason;
  if (call.caps().local_memory < kPackedBytes) return "less than 256 KiB of local memory";
  return plan_tiles(p, p.k, call.caps().compute_units);
}

Planned<TilePlan> plan_in_place(const OpCall& call, const Problem& p) {
  if (p.dtype != DType::Float32) return "A needs conversion";
  return plan_packed(call, p);
}
const char* pass_over_in_place(const OpCall&, const Problem& p) {
  return p.m * p.n > kSmallOutput ? "large enough to pack A" : nullptr;
}

void run_in_place(const OpCall& call, const Problem& p, const TilePlan& plan) {
  call.launch(kernels::matmul::cpu_in_place::matmul_in_place, defines(p, p.dtype),
              {.c = memory_of_c(p),
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .p = matmul_params(p),
               .rows = plan.rows,
               .panels = plan.panels,
               .add_s = p.self.has_value()})
      .run(tile_grid(p, plan), {1, 1, 1});
}

void multiply_packed(const OpCall& call, const Problem& p, const TilePlan& plan, DType out) {
  const int64_t batch = p.a.batch == 0 ? 1 : p.batch;
  const int64_t panel_batch = divide_up(p.m, kTileRows) * kTileRows * p.k;
  const Scratch panels = call.scratch(static_cast<uint64_t>(batch * panel_batch) * sizeof(float));
  const MatmulParams params = matmul_params(p);
  Defines pack;
  pack.type(define::TYPE, p.dtype).type(define::OUT, DType::Float32);
  call.launch(kernels::matmul::cpu_pack_a::pack_a, pack,
              {.panel = panels, .a = memory_of_a(p), .p = params, .panel_batch = panel_batch})
      .run({count(p.m, kTileRows), count(p.k, 512), batch}, {1, 1, 1});

  Problem of_result = p;
  of_result.dtype = out;
  call.launch(kernels::matmul::cpu_packed::matmul_packed, defines(p, out),
              {.c = memory_of_c(of_result),
               .a = panels,
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .p = params,
               .a_batch = batch == 1 ? 0 : panel_batch,
               .rows = plan.rows,
               .panels = plan.panels,
               .add_s = p.self.has_value()})
      .run(tile_grid(p, plan), {1, 1, 1});
}

// Half precision with several blocks of K is summed in float scratch memory and rounded once.
void run_packed(const OpCall& call, const Problem& p, const TilePlan& plan) {
  if (p.dtype == DType::Float32 || p.k <= kBlock) return multiply_packed(call, p, plan, p.dtype);
  const Dims sizes{p.batch, p.m, p.n};
  const Scratch sums = call.scratch(static_cast<uint64_t>(numel(sizes)) * sizeof(float));
  Problem wide = p;
  wide.c = {sums.address(), p.m * p.n, p.n, 1};
  multiply_packed(call, wide, plan, DType::Float32);
  copy_tensor(call, LocalTensor(p.c.address, p.dtype, sizes, {p.c.batch, p.c.row, p.c.col}),
              LocalTensor(sums.address(), DType::Float32, sizes));
}

const char* refuse_skinny(const OpCall&, const Problem& p) {
  if (const char* reason = refuse_common(p)) return reason;
  if (p.m > kSkinny) return "more than 4 rows";
  if (p.b.col == 1) return nullptr;
  if (p.b.row == 1 && (p.a.col == 1 || p.k == 1)) return nullptr;
  return "B has no neighbouring elements";
}

void run_skinny(const OpCall& call, const Problem& p) {
  Defines d = defines(p, p.dtype);
  d.set(define::ROWS, p.m == 1 ? 1 : kSkinny);
  const int64_t batch = p.batch;
  if (p.b.col == 1)
    return call
        .launch(kernels::matmul::cpu_skinny_rows::matmul_skinny_rows, d,
                {.c = memory_of_c(p),
                 .a = memory_of_a(p),
                 .b = memory_of_b(p),
                 .s = memory_of_self(p),
                 .p = matmul_params(p),
                 .add_s = p.self.has_value()})
        .run({count(p.n, 256), 1, batch}, {1, 1, 1});
  const int64_t columns = std::max<int64_t>(8, divide_up(divide_up(p.n * p.batch, 64), 8) * 8);
  call.launch(kernels::matmul::cpu_skinny_dots::matmul_skinny_dots, d,
              {.c = memory_of_c(p),
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .p = matmul_params(p),
               .add_s = p.self.has_value(),
               .columns = columns})
      .run({count(p.n, columns), 1, batch}, {1, 1, 1});
}

}  // namespace

// The cheapest plan by a model in cycles: 1 per row, panel and step; about 6 per packed row of a
// panel (repeated for every chunk of rows); 0.05 per row and k to fetch A again; 500 per work-item.
// The cost of the last, partly filled round of work-items falls with their number.
TilePlan plan_tiles(const Problem& p, int64_t steps, uint32_t threads) {
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

constinit const AlgorithmFor<Problem> kSkinny({.id = "matmul.skinny",
                                               .description = "a few rows",
                                               .style = DeviceStyle::Cpu},
                                              Steps<refuse_skinny, run_skinny>());
constinit const AlgorithmFor<Problem> kInPlace(
    {.id = "matmul.in_place", .description = "tiles, A in place", .style = DeviceStyle::Cpu},
    Steps<plan_in_place, run_in_place>(), pass_over_in_place);
constinit const AlgorithmFor<Problem> kPacked({.id = "matmul.packed",
                                               .description = "tiles, A packed",
                                               .style = DeviceStyle::Cpu},
                                              Steps<plan_packed, run_packed>());

}  // namespace ocltensor::opencl::matmul
