// float32 products on Hopper's matrix units: each operand is written as three matrices of bfloat16
// whose sum it is (bf16 parts); six products of parts are as accurate as float32.
#include "bf16_parts.h"

#include <algorithm>
#include <vector>

#include "bf16_parts_params.h"
#include "kernels/nvidia_hopper/matmul.h"
#include "nvidia_hopper/provider.h"
#include "product.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using Operand = HopperOperand;
using Variant = HopperProduct;

// The parts keep the orientation of the matrix: lines along k, or across it.
Bf16PartsOperand split_operand(const matmul::Problem& p, const Operand& o, int64_t lines,
                               bool along_k) {
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
Operand bf16_part_operand(const Bf16PartsOperand& s, tb_address address, int64_t batch,
                          bool along_k) {
  const auto line = static_cast<int64_t>(s.padded);
  const auto matrix = batch == 0 ? 0 : static_cast<int64_t>(s.lines) * line;
  return {DType::BFloat16,
          address,
          matrix,
          along_k ? line : 1,
          along_k ? 1 : line,
          std::max<int64_t>(1, batch)};
}
int64_t bytes_of_bf16_parts(const Bf16PartsOperand& s) {
  return static_cast<int64_t>(s.bf16_part) * 3 * 2;
}

void run_split(Launch launch, const Bf16PartsParams& params) {
  constexpr int64_t kSplitItems = 256;
  const auto pieces = static_cast<int64_t>(params.a.pieces + params.b.pieces);
  const int64_t items = divide_up(pieces, kSplitItems) * kSplitItems;
  launch.run({items, 1, 1}, {kSplitItems, 1, 1});
}

Variant variant_of(const OpCall& call, const matmul::Problem& p) {
  Variant v{HopperKind::Bf16x3, 64, operand_a(p).along_k(), operand_b(p).along_k(),
            p.end.self.has_value()};
  choose_tiles(call, p, v);
  return v;
}

constexpr int64_t kMostBf16Parts = int64_t{4} << 30;  // bytes

int64_t bf16_parts_bytes(const matmul::Problem& p) { return p.batch * p.k * (p.m + p.n) * 6; }

// Slices of the problem, along its longer side or its batch, whose bf16 parts take no more than
// kMostBf16Parts. Empty if the parts of the other side leave no room for a slice that is worth it.
std::vector<matmul::Problem> slices_of(const matmul::Problem& p) {
  if (bf16_parts_bytes(p) <= kMostBf16Parts) return {p};
  constexpr int64_t kLeast = 1024;
  const int64_t line = p.k * 6;
  const bool batches = p.batch > 1, rows = p.m >= p.n;
  const int64_t room =
      batches ? kMostBf16Parts / (line * (p.m + p.n)) : kMostBf16Parts / line - std::min(p.m, p.n);
  const int64_t whole = batches ? p.batch : std::max(p.m, p.n);
  if (room < (batches ? 1 : kLeast)) return {};
  const int64_t length = batches ? room : room / kHopperRows * kHopperRows;
  const auto moved = [&](matmul::Matrix m, int64_t elements) {
    m.address += static_cast<uint64_t>(elements * size_of(p.type()));
    return m;
  };
  std::vector<matmul::Problem> slices;
  for (int64_t at = 0; at < whole; at += length) {
    matmul::Problem q = p;
    (batches ? q.batch : rows ? q.m : q.n) = std::min(length, whole - at);
    if (batches || rows) q.a = moved(p.a, at * (batches ? p.a.batch : p.a.row));
    if (batches || !rows) q.b = moved(p.b, at * (batches ? p.b.batch : p.b.col));
    const auto result = [&](const matmul::Matrix& m) {
      return moved(m, at * (batches ? m.batch : rows ? m.row : m.col));
    };
    q.c = result(p.c);
    if (p.end.self) q.end.self = result(*p.end.self);
    slices.push_back(q);
  }
  return slices;
}

// A plan: one product, or slices, each with its own tiles.
struct Bf16x6Plan {
  struct Slice {
    matmul::Problem problem;
    Variant variant;
  };
  Variant whole;              // of the product, if there are no slices
  std::vector<Slice> slices;  // used if the parts would take too much memory otherwise
};

Planned<Bf16x6Plan> plan_bf16x6(const OpCall& call, const matmul::Problem& p) {
  if (p.type() != DType::Float32) return "not float32";
  if (const char* reason = refuse_product(p)) return reason;
  if (p.m <= 4) return "a few rows";
  for (const Operand& o : {operand_a(p), operand_b(p)})  // required by the plain kernel
    if (!o.along_k() && !o.along_lines()) return "an operand has no neighbouring elements";
  Bf16x6Plan plan{variant_of(call, p), {}};
  if (bf16_parts_bytes(p) <= kMostBf16Parts) {
    if (!is_product_proven(call, plan.whole)) return kNotProven;
    return plan;
  }
  for (const matmul::Problem& slice : slices_of(p))
    plan.slices.push_back({slice, variant_of(call, slice)});
  if (plan.slices.empty()) return "bf16 parts would take more than 4 GiB";
  for (const auto* slice : {&plan.slices.front(), &plan.slices.back()})  // those between are equal
    if (!is_product_proven(call, slice->variant)) return kNotProven;
  return plan;
}

const char* pass_over_bf16x6(const OpCall&, const matmul::Problem& p) {
  return matmul::refuse_float_parts(p);
}

void run_bf16x6(const OpCall& call, const matmul::Problem& p, const Bf16x6Plan& plan) {
  if (plan.slices.empty()) return run_bf16x6_product(call, p, plan.whole);
  for (const Bf16x6Plan::Slice& slice : plan.slices)
    run_bf16x6_product(call, slice.problem, slice.variant);
}

}  // namespace

// Runs a product by bf16 parts. A plain float32 product is enqueued as well, for numbers that
// cannot be split: a word in device memory decides which of them does the work, so that the host
// does not wait for the device.
void run_bf16x6_product(const OpCall& call, const matmul::Problem& p, const Variant& v) {
  const Operand a = operand_a(p), b = operand_b(p);
  const Bf16PartsParams params{split_operand(p, a, p.m, v.a_along_k),
                               split_operand(p, b, p.n, v.b_along_k)};
  const Scratch a_bf16_parts = call.scratch(static_cast<uint64_t>(bytes_of_bf16_parts(params.a)));
  const Scratch b_bf16_parts = call.scratch(static_cast<uint64_t>(bytes_of_bf16_parts(params.b)));
  const Scratch word = call.scratch(sizeof(uint32_t));
  const matmul::Guard guard{word.address(), matmul::next_guard_value()};

  run_split(call.launch(kernels::nvidia_hopper::matmul::bf16_parts::split_operands, Defines(),
                        {.a_bf16_parts = a_bf16_parts,
                         .b_bf16_parts = b_bf16_parts,
                         .a = matmul::memory_of_a(p),
                         .b = matmul::memory_of_b(p),
                         .word = guard.memory(),
                         .stop = guard.value,
                         .p = params}),
            params);
  enqueue_product(
      call, p, v,
      bf16_part_operand(params.a, a_bf16_parts.address(), a.batch == 0 ? 0 : p.batch, v.a_along_k),
      bf16_part_operand(params.b, b_bf16_parts.address(), b.batch == 0 ? 0 : p.batch, v.b_along_k),
      guard);
  matmul::run_portable_tiles(call, p, guard);
}

void split_to_bf16_parts(const OpCall& call, const Bf16PartTensor& a, const Bf16PartTensor& b,
                         const matmul::Guard& guard) {
  const auto operand = [](const Bf16PartTensor& t) {
    const auto elements = static_cast<uint64_t>(t.elements);
    return Bf16PartsOperand{0, t.elements, 1, elements / 8, elements, 1, elements, elements};
  };
  const Bf16PartsParams params{operand(a), operand(b)};
  run_split(call.launch(kernels::nvidia_hopper::matmul::bf16_parts::split_operands, Defines(),
                        {.a_bf16_parts = MemoryRange(a.bf16_parts, 0, a.elements * 6),
                         .b_bf16_parts = MemoryRange(b.bf16_parts, 0, b.elements * 6),
                         .a = MemoryRange(a.floats, 0, a.elements * 4),
                         .b = MemoryRange(b.floats, 0, b.elements * 4),
                         .word = guard.memory(),
                         .stop = guard.value,
                         .p = params}),
            params);
}

const char* refuse_bf16_part_product(const OpCall& call, const matmul::Problem& p) {
  if (const char* reason = refuse_product(p)) return reason;
  return is_product_proven(call, variant_of(call, p)) ? nullptr : kNotProven;
}

void run_bf16_part_product(const OpCall& call, const matmul::Problem& p, const Bf16PartMatrix& a,
                           const Bf16PartMatrix& b, const matmul::Guard& guard) {
  const DType part = DType::BFloat16;
  enqueue_product(call, p, variant_of(call, p),
                  {part, a.address, a.batch, a.row, a.col, a.matrices},
                  {part, b.address, b.batch, b.col, b.row, b.matrices}, guard);
  matmul::run_portable_tiles(call, p, guard);
}

constinit const AlgorithmFor<matmul::Problem> kBf16x6Product(
    {.id = "matmul.hopper_bf16x6",
     .description = "float32 as three bfloat16 on Hopper's matrix units",
     .provider = &kNvidiaHopper},
    Steps<plan_bf16x6, run_bf16x6>(), pass_over_bf16x6);

}  // namespace ocltensor::opencl::nvidia_hopper
