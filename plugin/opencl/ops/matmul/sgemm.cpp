// Matrix products for GPUs: tiles through local memory.
#include <algorithm>
#include <utility>
#include <vector>

#include "call/scalar_bits.h"
#include "gpu_tiles.h"
#include "guard.h"
#include "kernels/matmul.h"
#include "matmul.h"
#include "split_k_sum.h"

namespace ocltensor::opencl::matmul {
namespace {

using Tile = GpuTile;
using Pieces = GpuPieces;
constexpr Tile kLarge{128, 128, 8, 8};
constexpr Tile kSmall{64, 64, 8, 8};
constexpr Tile kTiny{32, 64, 4, 4, 16};
// kSmall for work-items with few registers: Intel's compiler keeps parts of 8 x 8 in memory.
constexpr Tile kNarrow{64, 64, 4, 8};

const Tile& small_tile(const OpCall& call) {
  return call.caps().large_register_tiles() ? kSmall : kNarrow;
}

// The large tile reuses more of what it loads, but pays only if its tiles fill the device twice,
// and if they are not much emptier than small ones.
const char* pass_over_large(const OpCall& call, const Problem& p) {
  const auto area = [&p](const Tile& t) { return tiles(p, t) * t.m * t.n; };
  if (tiles(p, kLarge) < 2 * static_cast<int64_t>(call.caps().compute_units))
    return "too few large tiles to fill the device";
  return 4 * area(kLarge) > 5 * area(kSmall) ? "large tiles would be empty in part" : nullptr;
}

// Tiny tiles occupy more of the device where small ones leave compute units idle: on an H100
// products of 128 to 512 take half the time.
const char* pass_over_tiny(const OpCall& call, const Problem& p) {
  const bool fills = tiles(p, kSmall) >= static_cast<int64_t>(call.caps().compute_units);
  return fills ? "small tiles fill the device" : nullptr;
}
// Sums of this length are added up sooner than partial sums are merged.
const char* pass_over_pieces(const OpCall& call, const Problem& p) {
  constexpr int64_t kShort = 1024;
  const bool fills = 2 * tiles(p, kTiny) >= static_cast<int64_t>(call.caps().compute_units);
  return p.k <= kShort && fills ? "tiny tiles fill the device" : nullptr;
}

// The widest vectors, of 4 elements at most, at whose multiples the rows of `m`, of a type, begin,
// which are `line` apart, and end, after `length` elements.
int64_t width_of(const Problem& p, const Matrix& m, DType type, int64_t line, int64_t length) {
  int64_t width = 4;
  const auto fits = [&](int64_t w) {
    return m.address % static_cast<uint64_t>(w * size_of(type)) == 0 && line % w == 0 &&
           length % w == 0 && (p.batch == 1 || m.batch % w == 0);
  };
  while (width > 1 && !fits(width)) width /= 2;
  return width;
}

bool along_k(int64_t k_stride, int64_t other_stride) { return k_stride == 1 || other_stride != 1; }

const char* refuse_form(const Problem& p) {
  if (const char* reason = refuse_non_floats(p)) return reason;
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  if (p.a.col != 1 && p.a.row != 1) return "A has no neighbouring elements";
  if (p.b.col != 1 && p.b.row != 1) return "B has no neighbouring elements";
  return p.m <= 4 ? "a few rows" : nullptr;
}

const char* refuse_size(const OpCall& call, const Tile& t) {
  if (call.caps().max_work_group_size < t.items()) return "work-groups are too small";
  if (call.caps().local_memory < static_cast<uint64_t>(t.local_memory()))
    return "too little local memory";
  return nullptr;
}

template <const Tile& tile>
const char* refuse_tiles(const OpCall& call, const Problem& p) {
  if (!call.caps().register_tiles()) return "the device keeps no tiles in registers";
  if (const char* reason = refuse_form(p)) return reason;
  if (&tile == &kLarge && !call.caps().large_register_tiles())
    return "a work-item has too few registers";
  return refuse_size(call, tile);
}

struct TileRun {
  Tile tile;
  Pieces pieces;
  tb_address sums = 0;  // with pieces: where their sums go, see split_k_sum.h
  Guard guard;
  const GroupedProblem* grouped = nullptr;  // whose product this is
};

// The same of an operand; parts of its lines begin anywhere.
int64_t width_of(const Problem& p, const Matrix& m, bool is_a, bool lies_along_k, Parts parts) {
  const Parts own = is_a ? Parts::OfM : Parts::OfN;
  if (parts == (lies_along_k ? Parts::OfK : own)) return 1;
  const int64_t across = is_a ? m.row : m.col, along = is_a ? m.col : m.row;
  const DType type = is_a ? p.types.a : p.types.b;
  return lies_along_k ? width_of(p, m, type, across, p.k)
                      : width_of(p, m, type, along, is_a ? p.m : p.n);
}

void launch_tiles(const OpCall& call, const Problem& problem, const TileRun& run) {
  using Count = std::optional<Number<int64_t>>;
  using Groups = std::optional<Number<int32_t>>;
  const Tile& t = run.tile;
  const bool in_pieces = run.sums != 0;
  Problem p = problem;
  if (in_pieces) {  // which end later
    p.end = {};
    p.types.result = DType::Float32;
    p.c = {run.sums, p.m * p.n, p.n, 1};
  }
  const int64_t batches = p.batch * run.pieces.count;
  const GroupedProblem* const groups = run.grouped;
  const Parts parts = groups == nullptr ? Parts::Of1 : groups->parts;
  Defines d = float_defines(p);
  d.type(define::A_TYPE, p.types.a);
  d.set(define::ADD_SELF, p.end.self.has_value())
      .set(define::EDGE, groups != nullptr || has_edges(p, t))
      .set(define::PIECES, in_pieces)
      .set(define::GROUPED, static_cast<int64_t>(parts));
  d.set(define::BM, t.m).set(define::BN, t.n).set(define::TM, t.item_m).set(define::TN, t.item_n);
  const bool a_along_k = along_k(p.a.col, p.a.row), b_along_k = along_k(p.b.row, p.b.col);
  d.set(define::A_ALONG_K, a_along_k).set(define::B_ALONG_K, b_along_k);
  d.set(define::A_WIDTH, width_of(p, p.a, true, a_along_k, parts))
      .set(define::B_WIDTH, width_of(p, p.b, false, b_along_k, parts));
  const bool whole = parts != Parts::OfN && width_of(p, p.c, p.types.result, p.c.row, p.n) == 4;
  d.set(define::C_WIDTH, whole ? 4 : 1);
  if (t.step != kSmall.step) d.set(define::BK, t.step);
  d.set(define::GUARDED, run.guard.word != 0);
  MatmulParams params = matmul_params(p);
  if (in_pieces) params.k = run.pieces.length;
  const MemoryRange c =
      in_pieces
          ? MemoryRange(run.sums, 0, batches * p.m * p.n * static_cast<int64_t>(sizeof(float)))
          : memory_of_c(p);
  const int64_t tiles = groups == nullptr ? divide_up(p.m, t.m) * divide_up(p.n, t.n)
                                          : groups->tiles_of_m(t.m) * groups->tiles_of_n(t.n);
  call.launch(kernels::matmul::sgemm::sgemm, d,
              {.c = c,
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .scales = given_scales(p),
               .word = run.guard.given(run.guard.memory()),
               .wanted = run.guard.given<Number<uint32_t>>(run.guard.value),
               .k_all = in_pieces ? Count(p.k) : std::nullopt,
               .batch = in_pieces ? Count(p.batch) : std::nullopt,
               .ends = groups ? std::optional(groups->memory_of_ends()) : std::nullopt,
               .groups = groups ? Groups(static_cast<int32_t>(p.batch)) : std::nullopt,
               .faults = groups ? std::optional(groups->faults(call)) : std::nullopt,
               .p = params})
      .run({tiles * t.items(), groups ? groups->matrices() : batches, 1}, {t.items(), 1, 1});
}
void run_tiles(const OpCall& call, const Problem& p, const Tile& t, const Guard& guard = {}) {
  launch_tiles(call, p, {.tile = t, .guard = guard});
}

bool allows_split(const OpCall& call, DType type) {
  if (type == DType::Float32) return true;
  return type == DType::BFloat16 ? call.policy().bf16.split : call.policy().fp16.split;
}

// Partial sums are float32: they round nothing, whatever the type of the result. A unit works on
// several tiles at once: with one or two of them long sums are cut as well (H100: 4096 x 128 x 4096
// took 0.37 ms with a tile a unit, 11.7 TFLOP/s; a full device reaches 38).
Planned<Pieces> plan_pieces(const OpCall& call, const Problem& p) {
  constexpr int64_t kMost = 256, kTilesOfUnit = 4;
  if (const char* reason = refuse_tiles<kSmall>(call, p)) return reason;
  if (!allows_split(call, p.type())) return "split-K is not allowed";
  const int64_t units = call.caps().compute_units, work = tiles(p, kSmall);
  if (work >= 2 * units) return "enough results to work on";
  const int64_t shortest = 2 * work > units ? 1024 : 256;  // terms of a piece
  const int64_t most = std::min<int64_t>({kTilesOfUnit * units / work, kMost, p.k / shortest});
  if (most < 2) return "the sums are short";
  return cut(p, most, kSmall);
}
void run_tiles_in_pieces(const OpCall& call, const Problem& p, const Tile& t,
                         const Pieces& pieces) {
  const int64_t bytes = pieces.count * p.batch * p.m * p.n * sum_bytes(p.type());
  const Scratch sums = call.scratch(static_cast<uint64_t>(bytes));
  launch_tiles(call, p, {.tile = t, .pieces = pieces, .sums = sums.address()});
  sum_pieces(call, results_of(p), pieces.count, sums.address());
}
void run_pieces(const OpCall& call, const Problem& p, const Pieces& pieces) {
  run_tiles_in_pieces(call, p, small_tile(call), pieces);
}

// ---- Tiles of many sizes, which measuring or the model chooses

constexpr ParameterNames kTileParameters{"m", "n", "item_m", "item_n", "step", "pieces"};

// What sgemm.cl asks of a tile: runs of 32 items cover 4 * TM x 8 * TN, and every item loads the
// same number of vectors of four.
bool is_legal(const Tile& t) {
  for (const int64_t size : {t.item_m, t.item_n})
    if (size < 4 || size > 16 || size % 4 != 0) return false;
  if (t.m < 1 || t.m > 256 || t.m % (4 * t.item_m) != 0) return false;
  if (t.n < 1 || t.n > 256 || t.n % (8 * t.item_n) != 0) return false;
  if (t.step != 8 && t.step != 16) return false;
  for (const int64_t width : {t.m, t.n})
    if (width * t.step / 4 % t.items() != 0 || t.items() % (width / 4) != 0) return false;
  return true;
}

Planned<GpuTileChoice> plan_any_tiles(const OpCall& call, const Problem& p,
                                      const Configuration& c) {
  if (const char* reason = refuse_form(p)) return reason;
  if (c.empty()) {
    if (!call.caps().register_tiles()) return "the device keeps no tiles in registers";
    return choose_gpu_tile(call.caps(), p, allows_split(call, p.type()));
  }
  if (c.size() != 6) return "it has six sizes";
  const Tile tile{c[0], c[1], c[2], c[3], c[4]};
  if (!is_legal(tile)) return "no such tile";
  constexpr int64_t kFew = 16;  // results of a work-item
  if (!call.caps().register_tiles() && tile.item_m * tile.item_n > kFew)
    return "the device keeps no tiles in registers";
  if (const char* reason = refuse_size(call, tile)) return reason;
  if (c[5] == 1) return GpuTileChoice{tile, {}};
  if (!allows_split(call, p.type())) return "split-K is not allowed";
  if (c[5] < 1 || c[5] * tile.step > p.k) return "the sums are short";
  return GpuTileChoice{tile, cut(p, c[5], tile)};
}

void run_any_tiles(const OpCall& call, const Problem& p, const GpuTileChoice& plan) {
  if (plan.pieces.count == 1) return run_tiles(call, p, plan.tile);
  run_tiles_in_pieces(call, p, plan.tile, plan.pieces);
}

// Small tiles of the model take steps of 16, which are faster where many work-groups of a compute
// unit have room for them all the same.
const char* pass_over_any(const OpCall& call, const Problem&) {
  constexpr uint64_t kRoomy = 100 << 10;
  return call.caps().unit_local_memory >= kRoomy
             ? nullptr
             : "compute units have little local memory, or it is not known";
}

// The order in which tiles are measured, by an estimate in products: those of the last, partly
// filled round of work-groups count as a full one; an item reads its operands from local memory
// once for all of its results, a work-group from global memory.
double model_cost(const OpCall& call, const Problem& p, const Tile& t, int64_t pieces) {
  constexpr double kStart = 64, kPerRead = 1, kPerLoad = 16;
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const double rounds = real(divide_up(tiles(p, t) * pieces, call.caps().compute_units));
  const double terms = real(divide_up(p.k, pieces)) + kStart * (pieces > 1 ? 2 : 1);
  const double reads = kPerRead * (1 / real(t.item_m) + 1 / real(t.item_n));
  const double loads = kPerLoad * (1 / real(t.m) + 1 / real(t.n));
  return rounds * real(t.m * t.n) * terms * (1 + reads + loads);
}

Configurations tile_space(const OpCall& call, const Problem& p) {
  constexpr size_t kMost = 32;
  struct Item {
    int64_t m, n;
  };
  std::vector<std::pair<double, Configuration>> found;
  for (const int64_t m : {16, 32, 64, 128, 256})
    for (const int64_t n : {32, 64, 128, 256})
      for (const auto& [item_m, item_n] :
           {Item{4, 4}, Item{8, 4}, Item{4, 8}, Item{8, 8}, Item{16, 8}, Item{8, 16}})
        for (const int64_t step : {8, 16})
          for (const int64_t pieces : {1, 2, 4, 8, 16, 32, 64}) {
            const Tile tile{m, n, item_m, item_n, step};
            if (!is_legal(tile) || m >= 2 * std::max<int64_t>(p.m, 16) ||
                n >= 2 * std::max<int64_t>(p.n, 32) || (pieces > 1 && p.k < 128 * pieces))
              continue;
            found.emplace_back(model_cost(call, p, tile, pieces),
                               Configuration{m, n, item_m, item_n, step, pieces});
          }
  std::ranges::stable_sort(found, {}, [](const auto& f) { return f.first; });
  Configurations space;
  for (const auto& [cost, configuration] : found) {
    if (space.size() == kMost) break;
    if (plan_any_tiles(call, p, configuration).reason() == nullptr) space.push_back(configuration);
  }
  return space;
}

// ---- Groups: a tile of the size that an even share of the work would take, in one piece

Planned<Tile> plan_grouped(const OpCall& call, const GroupedProblem& p) {
  Problem share = p.even_share();
  share.k = std::max<int64_t>(share.k, 1);
  Planned<GpuTileChoice> choice = choose_gpu_tile(call.caps(), share, false);
  if (choice.reason() != nullptr) return choice.reason();
  const bool fits = choice.plan().tile.item_m * choice.plan().tile.item_n < 64;
  if (call.caps().large_register_tiles() || (call.caps().register_tiles() && fits))
    return choice.plan().tile;
  return call.caps().register_tiles() ? kNarrow : kTiny;
}
void run_grouped(const OpCall& call, const GroupedProblem& p, const Tile& tile) {
  launch_tiles(call, p.product, {.tile = tile, .grouped = &p});
}

void run_large(const OpCall& call, const Problem& p) { run_tiles(call, p, kLarge); }
void run_small(const OpCall& call, const Problem& p) { run_tiles(call, p, small_tile(call)); }
void run_tiny(const OpCall& call, const Problem& p) { run_tiles(call, p, kTiny); }

}  // namespace

void run_portable_tiles(const OpCall& call, const Problem& p, const Guard& guard) {
  const bool large = call.caps().large_register_tiles() && refuse_size(call, kLarge) == nullptr &&
                     pass_over_large(call, p) == nullptr;
  run_tiles(call, p, large ? kLarge : small_tile(call), guard);
}

void run_portable_groups(const OpCall& call, const GroupedProblem& p, const Guard& guard) {
  Planned<Tile> tile = plan_grouped(call, p);
  launch_tiles(
      call, p.product,
      {.tile = tile.reason() == nullptr ? tile.plan() : kTiny, .guard = guard, .grouped = &p});
}

constinit const AlgorithmFor<Problem> kTilesInPieces({.id = "matmul.tiles_in_pieces",
                                                      .description = "64 x 64, k in pieces",
                                                      .style = DeviceStyle::Gpu},
                                                     Steps<plan_pieces, run_pieces>(),
                                                     pass_over_pieces);
constinit const AlgorithmFor<Problem> kTiles(
    {.id = "matmul.tiles",
     .description = "tiles in local memory, of the sizes that measuring or a model chooses",
     .style = DeviceStyle::Gpu,
     .parameters = kTileParameters},
    Steps<plan_any_tiles, run_any_tiles, tile_space>(), pass_over_any);
constinit const AlgorithmFor<Problem> kLargeTiles({.id = "matmul.large_tiles",
                                                   .description = "128 x 128 in local memory",
                                                   .style = DeviceStyle::Gpu},
                                                  Steps<refuse_tiles<kLarge>, run_large>(),
                                                  pass_over_large);
constinit const AlgorithmFor<Problem> kTinyTiles({.id = "matmul.tiny_tiles",
                                                  .description = "32 x 64 in local memory",
                                                  .style = DeviceStyle::Gpu},
                                                 Steps<refuse_tiles<kTiny>, run_tiny>(),
                                                 pass_over_tiny);
constinit const AlgorithmFor<Problem> kSmallTiles({.id = "matmul.small_tiles",
                                                   .description = "64 x 64 in local memory",
                                                   .style = DeviceStyle::Gpu},
                                                  Steps<refuse_tiles<kSmall>, run_small>());
constinit const AlgorithmFor<GroupedProblem> kGroupedTiles({.id = "matmul_grouped.tiles",
                                                            .description = "tiles in local memory",
                                                            .style = DeviceStyle::Gpu,
                                                            .last_resort = true},
                                                           Steps<plan_grouped, run_grouped>());

}  // namespace ocltensor::opencl::matmul
