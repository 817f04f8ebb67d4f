// Matrix products on Hopper's matrix units: 16-bit types and TF32 as they lie in memory, float32 as
// three planes of bfloat16 (six products, as accurate as float32).
#include "hopper.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernel_sources.h"
#include "matrix_units.h"
#include "planes.h"
#include "split_k.h"
#include "split_params.h"

namespace ocltensor::opencl {
namespace {

using Kind = HopperKind;
using Variant = HopperProduct;

constexpr size_t kItems = 288;          // ITEMS of hopper.cl
constexpr int64_t kMapBytes = 2 * 128;  // of a work-group
constexpr int64_t kLineBytes = 16;      // what lines of an operand are multiples of

// A as a matrix of rows, B as a matrix of columns: lines along k, or across it.
struct Operand {
  tb_address address;
  int64_t batch, line, step;  // strides of the batch, of rows (columns), along k
  int64_t matrices = 1;       // of the batch's stride between two planes
  bool along_k() const { return step == 1; }
  bool along_lines() const { return line == 1; }
};
Operand operand_a(const MatmulProblem& p) { return {p.a.address, p.a.batch, p.a.row, p.a.col}; }
Operand operand_b(const MatmulProblem& p) { return {p.b.address, p.b.batch, p.b.col, p.b.row}; }

// Can the copy engine read it as it lies?
bool is_readable(const MatmulProblem& p, const Operand& o, int64_t item, bool needs_k) {
  if (!(o.along_k() || (o.along_lines() && !needs_k))) return false;
  const int64_t stride = o.along_k() ? o.line : o.step;
  const auto fits = [item](int64_t elements) {
    return elements > 0 && elements * item % kLineBytes == 0;
  };
  return o.address % kLineBytes == 0 && fits(stride) &&
         (p.batch == 1 || o.batch == 0 || fits(o.batch));
}

void choose_tiles(const OpCall& call, const MatmulProblem& p, Variant& v) {
  const HopperTiles tiles =
      choose_hopper_tiles({p.batch, p.m, p.n, v.steps(p.k), call.caps().compute_units, v.planes()});
  v.columns = tiles.columns;
  v.pieces = tiles.pieces;
}

Kind kind_of(DType type) {
  return type == DType::Float16 ? Kind::Half : type == DType::BFloat16 ? Kind::BFloat : Kind::Tf32;
}

// Of 16-bit types and TF32: operands that cannot be read as they lie are copied along k first.
Variant direct_variant(const OpCall& call, const MatmulProblem& p) {
  Variant v{kind_of(p.dtype), 64, true, true, p.self.has_value()};
  const bool needs_k = v.kind == Kind::Tf32;
  const Operand a = operand_a(p), b = operand_b(p);
  v.a_along_k = !is_readable(p, a, v.item(), needs_k) || a.along_k();
  v.b_along_k = !is_readable(p, b, v.item(), needs_k) || b.along_k();
  choose_tiles(call, p, v);
  return v;
}
Variant split_variant(const OpCall& call, const MatmulProblem& p) {
  Variant v{Kind::Split, 64, operand_a(p).along_k(), operand_b(p).along_k(), p.self.has_value()};
  choose_tiles(call, p, v);
  return v;
}

void enqueue(const OpCall& call, const MatmulProblem& p, const Variant& v, const Operand& a,
             const Operand& b, const Guard& guard) {
  const int64_t tiles =
      v.pieces * p.batch * divide_up(p.m, kHopperRows) * divide_up(p.n, v.columns);
  const int64_t groups = std::min<int64_t>(tiles, call.caps().compute_units);
  const Scratch maps = call.scratch(static_cast<uint64_t>(groups * kMapBytes));
  const int64_t sums_bytes = v.pieces == 1 ? 1 : v.pieces * p.batch * p.m * p.n * 4;
  const Scratch sums = call.scratch(static_cast<uint64_t>(sums_bytes));
  MatmulProblem q = p;
  q.a = {a.address, a.batch, a.line, a.step};
  q.b = {b.address, b.batch, b.step, b.line};
  if (v.pieces > 1) q.c = {sums.address(), p.m * p.n, p.n, 1};
  Launch launch = call.launch(kernel_sources::matmul_hopper, "matmul_hopper", v.defines());
  if (v.pieces > 1)
    launch.memory(sums.address(), 0, sums_bytes);
  else
    bind_matrix(launch, p, p.c, p.m, p.n);
  launch.memory(a.address, 0, 1).memory(b.address, 0, 1);
  p.self ? bind_matrix(launch, p, *p.self, p.m, p.n) : (void)launch.memory(0, 0, 0);
  launch.memory(guard.word, 0, guard.word == 0 ? 0 : 4).value(guard.value);
  launch.memory(maps.address(), 0, groups * kMapBytes).value(static_cast<int32_t>(p.batch));
  launch.value(static_cast<int32_t>(v.pieces)).value(static_cast<int32_t>(v.piece_steps(p.k)));
  launch.value(static_cast<int32_t>(a.matrices)).value(static_cast<int32_t>(b.matrices));
  const MatmulParams params = matmul_params(q);
  launch.bytes(&params, sizeof params);
  launch.run({static_cast<size_t>(groups) * kItems, 1, 1}, {kItems, 1, 1});
  if (v.pieces > 1) sum_pieces(call, p, v.pieces, sums.address(), guard);
}

// ---- 16-bit types and TF32

// An operand that the engine can read: itself, or a copy along k with lines of full vectors.
class Readable {
 public:
  Readable(const OpCall& call, const MatmulProblem& p, const Operand& o, int64_t lines,
           const Variant& v)
      : operand_(o) {
    if (is_readable(p, o, v.item(), v.kind == Kind::Tf32)) return;
    const int64_t vector = kLineBytes / v.item();
    const int64_t line = divide_up(p.k, vector) * vector;
    const int64_t batch = o.batch == 0 ? 1 : p.batch;
    memory_.push_back(call.scratch(static_cast<uint64_t>(batch * lines * line * v.item())));
    operand_ = {memory_.back().address(), o.batch == 0 ? 0 : lines * line, line, 1};
    const Dims sizes{batch, lines, p.k};
    copy_tensor(call, LocalTensor(operand_.address, p.dtype, sizes, Dims{lines * line, line, 1}),
                LocalTensor(o.address, p.dtype, sizes, Dims{o.batch, o.line, o.step}));
  }
  const Operand& operand() const { return operand_; }

 private:
  std::vector<Scratch> memory_;  // none, or the copy's
  Operand operand_;
};

void run_variant(const OpCall& call, const MatmulProblem& p, const Variant& v) {
  const Readable a(call, p, operand_a(p), p.m, v);
  const Readable b(call, p, operand_b(p), p.n, v);
  enqueue(call, p, v, a.operand(), b.operand(), {});
}

// ---- float32 by planes

// Planes have a matrix's own orientation.
SplitOperand split_operand(const MatmulProblem& p, const Operand& o, int64_t lines, bool along_k) {
  const int64_t length = along_k ? p.k : lines;
  const int64_t count = along_k ? lines : p.k;
  const int64_t padded = divide_up(length, 8) * 8;
  const int64_t batch = o.batch == 0 ? 1 : p.batch;
  return {o.batch,
          along_k ? o.line : o.step,
          along_k ? o.step : o.line,
          static_cast<uint64_t>(batch * count * padded / 8),
          static_cast<uint64_t>(batch * count * padded),
          static_cast<uint64_t>(count),
          static_cast<uint64_t>(length),
          static_cast<uint64_t>(padded)};
}
Operand plane_operand(const SplitOperand& s, tb_address address, int64_t batch, bool along_k) {
  const auto line = static_cast<int64_t>(s.padded);
  const auto matrix = batch == 0 ? 0 : static_cast<int64_t>(s.lines) * line;
  return {address, matrix, along_k ? line : 1, along_k ? 1 : line, std::max<int64_t>(1, batch)};
}
int64_t bytes_of_planes(const SplitOperand& s) { return static_cast<int64_t>(s.plane) * 3 * 2; }

// Of a kernel that has its operands: the rest.
void split(Launch& launch, const SplitParams& params, const Guard& guard) {
  constexpr size_t kSplitItems = 256;
  launch.memory(guard.word, 0, sizeof(uint32_t)).value(guard.value);
  launch.bytes(&params, sizeof params);
  const auto pieces = static_cast<int64_t>(params.a.pieces + params.b.pieces);
  const auto items = static_cast<size_t>(divide_up(pieces, kSplitItems)) * kSplitItems;
  launch.run({items, 1, 1}, {kSplitItems, 1, 1});
}

// Products by planes, and what the split refused in plain float32: both are enqueued, and a word in
// memory decides which of them works, so that nothing waits for the device.
void run_split_variant(const OpCall& call, const MatmulProblem& p, const Variant& v) {
  const Operand a = operand_a(p), b = operand_b(p);
  const SplitParams params{split_operand(p, a, p.m, v.a_along_k),
                           split_operand(p, b, p.n, v.b_along_k)};
  const Scratch a_planes = call.scratch(static_cast<uint64_t>(bytes_of_planes(params.a)));
  const Scratch b_planes = call.scratch(static_cast<uint64_t>(bytes_of_planes(params.b)));
  const Scratch word = call.scratch(sizeof(uint32_t));
  const Guard guard{word.address(), next_guard_value()};

  Launch launch = call.launch(kernel_sources::matmul_hopper_split, "split_operands", Defines());
  launch.memory(a_planes.address(), 0, bytes_of_planes(params.a));
  launch.memory(b_planes.address(), 0, bytes_of_planes(params.b));
  bind_matrix(launch, p, p.a, p.m, p.k);
  bind_matrix(launch, p, p.b, p.k, p.n);
  split(launch, params, guard);

  enqueue(call, p, v,
          plane_operand(params.a, a_planes.address(), a.batch == 0 ? 0 : p.batch, v.a_along_k),
          plane_operand(params.b, b_planes.address(), b.batch == 0 ? 0 : p.batch, v.b_along_k),
          guard);
  run_portable_tiles(call, p, guard);
}

bool is_variant_proven(const OpCall& call, const Variant& v) {
  static auto& proofs =
      *new Proofs<kHopperProducts>;  // leaked: streams may end after static objects
  return proofs.hold(
      call, v.index(), kernel_sources::matmul_hopper, [&] { return v.defines(); },
      wrong_hopper_product, &v);
}

// ---- The algorithms

const char* refuse_common(const OpCall& call, const MatmulProblem& p) {
  if (const char* reason = refuse_matrix_units(call)) return reason;
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({p.m, p.n, p.k}) > kMost - 256 ||
      divide_up(p.m, kHopperRows) * divide_up(p.n, 64) > kMost / (kMostPieces * p.batch))
    return "the sizes need 64 bits";
  return nullptr;
}

constexpr const char* kNotProven = "the kernel failed its test on this driver";

const char* refuse_direct(const OpCall& call, const MatmulProblem& p) {
  if (const char* reason = refuse_common(call, p)) return reason;
  const bool half = p.dtype == DType::Float16 || p.dtype == DType::BFloat16;
  if (!half && p.dtype != DType::Float32) return "not a type of the matrix units";
  if (!half && !call.policy().allow_tf32) return "TF32 is not allowed";
  return is_variant_proven(call, direct_variant(call, p)) ? nullptr : kNotProven;
}
// A few rows are bound by memory, which many small work-groups read faster.
const char* pass_over_direct(const OpCall&, const MatmulProblem& p) {
  if (p.m <= 4) return "a few rows";
  return p.k < 16 || p.n < 16 ? "too little to multiply" : nullptr;
}

void run_direct(const OpCall& call, const MatmulProblem& p) {
  run_hopper_product(call, p, direct_variant(call, p));
}

constexpr int64_t kMostPlanes = int64_t{4} << 30;  // bytes

int64_t planes_bytes(const MatmulProblem& p) { return p.batch * p.k * (p.m + p.n) * 6; }

// Where planes would take more than that, the longer side, or the batch, in parts; none: the other
// side's planes leave no room for a part that is worth it.
std::vector<MatmulProblem> parts_of(const MatmulProblem& p) {
  if (planes_bytes(p) <= kMostPlanes) return {p};
  constexpr int64_t kLeast = 1024;
  const int64_t line = p.k * 6;
  const bool batches = p.batch > 1, rows = p.m >= p.n;
  const int64_t room =
      batches ? kMostPlanes / (line * (p.m + p.n)) : kMostPlanes / line - std::min(p.m, p.n);
  const int64_t whole = batches ? p.batch : std::max(p.m, p.n);
  if (room < (batches ? 1 : kLeast)) return {};
  const int64_t length = batches ? room : room / kHopperRows * kHopperRows;
  const auto moved = [&](Matrix m, int64_t elements) {
    m.address += static_cast<uint64_t>(elements * size_of(p.dtype));
    return m;
  };
  std::vector<MatmulProblem> parts;
  for (int64_t at = 0; at < whole; at += length) {
    MatmulProblem q = p;
    (batches ? q.batch : rows ? q.m : q.n) = std::min(length, whole - at);
    if (batches || rows) q.a = moved(p.a, at * (batches ? p.a.batch : p.a.row));
    if (batches || !rows) q.b = moved(p.b, at * (batches ? p.b.batch : p.b.col));
    const auto result = [&](const Matrix& m) {
      return moved(m, at * (batches ? m.batch : rows ? m.row : m.col));
    };
    q.c = result(p.c);
    if (p.self) q.self = result(*p.self);
    parts.push_back(q);
  }
  return parts;
}

const char* refuse_split(const OpCall& call, const MatmulProblem& p) {
  if (p.dtype != DType::Float32) return "not float32";
  if (const char* reason = refuse_common(call, p)) return reason;
  if (p.m <= 4) return "a few rows";
  for (const Operand& o : {operand_a(p), operand_b(p)})  // for the plain kernel
    if (!o.along_k() && !o.along_lines()) return "an operand has no neighbouring elements";
  if (planes_bytes(p) <= kMostPlanes)
    return is_variant_proven(call, split_variant(call, p)) ? nullptr : kNotProven;
  const std::vector<MatmulProblem> parts = parts_of(p);
  if (parts.empty()) return "planes would take more than 4 GiB";
  for (const MatmulProblem* part : {&parts.front(), &parts.back()})
    if (!is_variant_proven(call, split_variant(call, *part))) return kNotProven;
  return nullptr;
}
const char* pass_over_split(const OpCall&, const MatmulProblem& p) {
  if (skinny_beats_matrix_units(p) || p.k < 128) return "splitting would take longer than it saves";
  const auto products = static_cast<double>(p.batch * p.m) * static_cast<double>(p.n * p.k);
  return products < 0x1p25 ? "splitting would take longer than it saves" : nullptr;
}

void run_split(const OpCall& call, const MatmulProblem& p) {
  if (planes_bytes(p) <= kMostPlanes) return run_split_variant(call, p, split_variant(call, p));
  for (const MatmulProblem& part : parts_of(p))
    run_split_variant(call, part, split_variant(call, part));
}

}  // namespace

// Far from each other and from small numbers, which memory often holds.
uint32_t next_guard_value() {
  static std::atomic<uint32_t> next{0x85ebca6bu};
  return next.fetch_add(0x9e3779b9u, std::memory_order_relaxed);
}

void run_hopper_product(const OpCall& call, const MatmulProblem& p, const HopperProduct& v) {
  v.planes() ? run_split_variant(call, p, v) : run_variant(call, p, v);
}

void split_to_planes(const OpCall& call, const PlaneTensor& a, const PlaneTensor& b,
                     const Guard& guard) {
  const auto operand = [](const PlaneTensor& t) {
    const auto elements = static_cast<uint64_t>(t.elements);
    return SplitOperand{0, t.elements, 1, elements / 8, elements, 1, elements, elements};
  };
  const SplitParams params{operand(a), operand(b)};
  Launch launch = call.launch(kernel_sources::matmul_hopper_split, "split_operands", Defines());
  for (const PlaneTensor* t : {&a, &b}) launch.memory(t->planes, 0, t->elements * 6);
  for (const PlaneTensor* t : {&a, &b}) launch.memory(t->floats, 0, t->elements * 4);
  split(launch, params, guard);
}

const char* refuse_plane_product(const OpCall& call, const MatmulProblem& p) {
  if (const char* reason = refuse_common(call, p)) return reason;
  return is_variant_proven(call, split_variant(call, p)) ? nullptr : kNotProven;
}

void run_plane_product(const OpCall& call, const MatmulProblem& p, const PlaneMatrix& a,
                       const PlaneMatrix& b, const Guard& guard) {
  enqueue(call, p, split_variant(call, p), {a.address, a.batch, a.row, a.col, a.matrices},
          {b.address, b.batch, b.col, b.row, b.matrices}, guard);
  run_portable_tiles(call, p, guard);
}

const MatmulImplementation kMatmulHopper{
    {"matmul.hopper", "Hopper's matrix units"}, refuse_direct, run_direct, pass_over_direct};
const MatmulImplementation kMatmulHopperSplit{
    {"matmul.hopper_bf16x6", "float32 as three bfloat16 on Hopper's matrix units"},
    refuse_split,
    run_split,
    pass_over_split};

}  // namespace ocltensor::opencl
