// Matrix products for GPUs: tiles through local memory.
#include "call/scalar_bits.h"
#include "guard.h"
#include "kernels/matmul.h"
#include "matmul.h"
#include "split_k_sum.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kStep = 8;  // BK of sgemm.cl

struct Tile {
  int64_t m, n, item_m, item_n;
  int64_t items() const { return (m / item_m) * (n / item_n); }
};
constexpr Tile kLarge{128, 128, 16, 8};
constexpr Tile kSmall{64, 64, 8, 8};
// Both buffers of both operands, whose rows may be padded.
constexpr uint64_t kLocalMemory = 2 * kStep * (kLarge.m + 4 + kLarge.n + 4) * sizeof(float);

int64_t tiles(const Problem& p, const Tile& t) {
  return p.batch * divide_up(p.m, t.m) * divide_up(p.n, t.n);
}

// The large tile reuses more of what it loads, but pays only if its tiles fill the device twice,
// and if they are not much emptier than small ones.
const char* pass_over_large(const OpCall& call, const Problem& p) {
  const auto area = [&p](const Tile& t) { return tiles(p, t) * t.m * t.n; };
  if (tiles(p, kLarge) < 2 * static_cast<int64_t>(call.caps().compute_units))
    return "too few large tiles to fill the device";
  return 4 * area(kLarge) > 5 * area(kSmall) ? "large tiles would be empty in part" : nullptr;
}

// Whether vectors of four may be loaded: every row begins at a multiple of four elements.
bool aligned(const Problem& p, const Matrix& m, int64_t line) {
  const auto bytes = static_cast<uint64_t>(4 * size_of(p.dtype));
  return m.address % bytes == 0 && line % 4 == 0 && (p.batch == 1 || m.batch % 4 == 0);
}

bool along_k(int64_t k_stride, int64_t other_stride) { return k_stride == 1 || other_stride != 1; }

bool is_even(const Problem& p, const Tile& t) {
  // Edge tiles overlap their neighbours: where `self` is the result itself, they would read
  // elements that a neighbour has already changed.
  const bool full_self = p.self && p.self->row != 0 && p.self->col != 0;
  if (full_self && (p.m % t.m != 0 || p.n % t.n != 0)) return false;
  const bool a_along_k = along_k(p.a.col, p.a.row);
  const bool b_along_k = along_k(p.b.row, p.b.col);
  return p.m >= t.m && p.n >= t.n && p.k % kStep == 0 && p.n % 4 == 0 &&
         (a_along_k || p.m % 4 == 0) && aligned(p, p.a, a_along_k ? p.a.row : p.a.col) &&
         aligned(p, p.b, b_along_k ? p.b.col : p.b.row) && aligned(p, p.c, p.c.row);
}

const char* refuse_tiles(const OpCall& call, const Problem& p) {
  if (!call.caps().register_tiles) return "the device keeps no tiles in registers";
  if (compute_type(p.dtype) != DType::Float32) return "not computed in float32";
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  if (p.a.col != 1 && p.a.row != 1) return "A has no neighbouring elements";
  if (p.b.col != 1 && p.b.row != 1) return "B has no neighbouring elements";
  if (p.m <= 4) return "a few rows";
  if (call.caps().max_work_group_size < kLarge.items()) return "work-groups are too small";
  if (call.caps().local_memory < kLocalMemory) return "too little local memory";
  return nullptr;
}

// Long sums in pieces of `length` terms.
struct Pieces {
  int64_t count = 1;
  int64_t length = 0;
};

struct TileRun {
  const Tile& tile;
  Pieces pieces;
  tb_address sums = 0;  // with pieces: where their sums go, see split_k_sum.h
  Guard guard;
};

void launch_tiles(const OpCall& call, const Problem& p, const TileRun& run) {
  using Count = std::optional<Number<int64_t>>;
  const Tile& t = run.tile;
  const bool in_pieces = run.sums != 0;
  const int64_t batches = p.batch * run.pieces.count;
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::HAS_S, p.self.has_value() && !in_pieces)
      .set(define::EDGE, !is_even(p, t))
      .set(define::PIECES, in_pieces);
  d.set(define::BM, t.m).set(define::BN, t.n).set(define::TM, t.item_m).set(define::TN, t.item_n);
  d.set(define::A_ALONG_K, along_k(p.a.col, p.a.row))
      .set(define::B_ALONG_K, along_k(p.b.row, p.b.col));
  d.set(define::GUARDED, run.guard.word != 0);
  MatmulParams params = matmul_params(p);
  MemoryRange c = memory_of_c(p);
  if (in_pieces) {
    params.k = run.pieces.length;
    params.c_batch = p.m * p.n;
    params.c_row = p.n;
    params.alpha = scalar_bits(1, p.dtype);
    c = MemoryRange(run.sums, 0, batches * p.m * p.n * sum_bytes(p.dtype));
  }
  const int64_t groups = divide_up(p.m, t.m) * divide_up(p.n, t.n);
  call.launch(kernels::matmul::sgemm::sgemm, d,
              {.c = c,
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = in_pieces ? MemoryRange(nullptr) : memory_of_self(p),
               .word = run.guard.given(run.guard.memory()),
               .wanted = run.guard.given<Number<uint32_t>>(run.guard.value),
               .k_all = in_pieces ? Count(p.k) : std::nullopt,
               .batch = in_pieces ? Count(p.batch) : std::nullopt,
               .p = params})
      .run({groups * t.items(), batches, 1}, {t.items(), 1, 1});
}
void run_tiles(const OpCall& call, const Problem& p, const Tile& t, const Guard& guard = {}) {
  launch_tiles(call, p, {.tile = t, .guard = guard});
}

bool allows_split(const OpCall& call, DType type) {
  if (type == DType::Float32) return true;
  return type == DType::BFloat16 ? call.policy().bf16.split : call.policy().fp16.split;
}

// Partial sums are float32: they round nothing, whatever the type of the result.
Planned<Pieces> plan_pieces(const OpCall& call, const Problem& p) {
  constexpr int64_t kShortest = 256;  // terms of a piece
  constexpr int64_t kMost = 256;
  if (const char* reason = refuse_tiles(call, p)) return reason;
  if (!allows_split(call, p.dtype)) return "split-K is not allowed";
  const int64_t units = call.caps().compute_units, work = tiles(p, kSmall);
  if (2 * work > units) return "enough results to work on";
  const int64_t most = std::min<int64_t>({4 * units / work, kMost, p.k / kShortest});
  if (most < 2) return "the sums are short";
  const int64_t length = divide_up(divide_up(p.k, most), kStep) * kStep;
  return Pieces{divide_up(p.k, length), length};
}
void run_pieces(const OpCall& call, const Problem& p, const Pieces& pieces) {
  const int64_t bytes = pieces.count * p.batch * p.m * p.n * sum_bytes(p.dtype);
  const Scratch sums = call.scratch(static_cast<uint64_t>(bytes));
  launch_tiles(call, p, {.tile = kSmall, .pieces = pieces, .sums = sums.address()});
  sum_pieces(call, p, pieces.count, sums.address());
}

void run_large(const OpCall& call, const Problem& p) { run_tiles(call, p, kLarge); }
void run_small(const OpCall& call, const Problem& p) { run_tiles(call, p, kSmall); }

}  // namespace

void run_portable_tiles(const OpCall& call, const Problem& p, const Guard& guard) {
  run_tiles(call, p, pass_over_large(call, p) == nullptr ? kLarge : kSmall, guard);
}

constinit const AlgorithmFor<Problem> kTilesInPieces({.id = "matmul.tiles_in_pieces",
                                                      .description = "64 x 64, k in pieces",
                                                      .style = DeviceStyle::Gpu},
                                                     Steps<plan_pieces, run_pieces>());
constinit const AlgorithmFor<Problem> kLargeTiles({.id = "matmul.large_tiles",
                                                   .description = "128 x 128 in local memory",
                                                   .style = DeviceStyle::Gpu},
                                                  Steps<refuse_tiles, run_large>(),
                                                  pass_over_large);
constinit const AlgorithmFor<Problem> kSmallTiles({.id = "matmul.small_tiles",
                                                   .description = "64 x 64 in local memory",
                                                   .style = DeviceStyle::Gpu},
                                                  Steps<refuse_tiles, run_small>());

}  // namespace ocltensor::opencl::matmul
