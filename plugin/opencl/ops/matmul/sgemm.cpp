// Matrix products for GPUs: tiles through local memory.
#include "guard.h"
#include "kernels/matmul.h"
#include "matmul.h"

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

// The large tile reuses more of what it loads, but pays only if its tiles fill the device twice.
const char* pass_over_large(const OpCall& call, const Problem& p) {
  return tiles(p, kLarge) >= 2 * static_cast<int64_t>(call.caps().compute_units)
             ? nullptr
             : "too few large tiles to fill the device";
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

void run_tiles(const OpCall& call, const Problem& p, const Tile& t, const Guard& guard = {}) {
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::HAS_S, p.self.has_value())
      .set(define::EDGE, !is_even(p, t));
  d.set(define::BM, t.m).set(define::BN, t.n).set(define::TM, t.item_m).set(define::TN, t.item_n);
  d.set(define::A_ALONG_K, along_k(p.a.col, p.a.row))
      .set(define::B_ALONG_K, along_k(p.b.row, p.b.col));
  d.set(define::GUARDED, guard.word != 0);
  const int64_t groups = divide_up(p.m, t.m) * divide_up(p.n, t.n);
  call.launch(kernels::matmul::sgemm::sgemm, d,
              {.c = memory_of_c(p),
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .word = guard.given(guard.memory()),
               .wanted = guard.given<Number<uint32_t>>(guard.value),
               .p = matmul_params(p)})
      .run({groups * t.items(), p.batch, 1}, {t.items(), 1, 1});
}
void run_large(const OpCall& call, const Problem& p) { run_tiles(call, p, kLarge); }
void run_small(const OpCall& call, const Problem& p) { run_tiles(call, p, kSmall); }

}  // namespace

void run_portable_tiles(const OpCall& call, const Problem& p, const Guard& guard) {
  run_tiles(call, p, pass_over_large(call, p) == nullptr ? kLarge : kSmall, guard);
}

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
