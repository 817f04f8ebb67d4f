// Cumulative operators along one dimension of a contiguous [outer, n, inner].
#include "scan.h"

#include <algorithm>

#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "call/nest.h"
#include "kernels/scan.h"
#include "ops/copy/copy.h"
#include "ops/reduce/complex.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::scan {
namespace {

enum class Operation : uint8_t { Sum, Product, LogSumExp };

// The formulas that join two neighbouring results, and the neutral element.
void set_formula(Defines& d, Operation operation, DType compute) {
  if (operation == Operation::Sum) {
    d.set(define::COMBINE, "x + y").set(define::IDENTITY, "0");
  } else if (operation == Operation::Product) {
    d.set(define::COMBINE, "x * y").set(define::IDENTITY, "1");
  } else {  // no difference of equal numbers, as that of infinities is NaN
    constexpr const char* kWide =
        "(x == y) ? x + 0.693147180559945309 : fmax(x, y) + log1p(exp(-fabs(x - y)))";
    constexpr const char* kNarrow =
        "(x == y) ? x + 0.693147181f : fmax(x, y) + log1p(exp(-fabs(x - y)))";
    d.set(define::COMBINE, compute == DType::Float64 ? kWide : kNarrow)
        .set(define::IDENTITY, "-INFINITY");
  }
}

// ---- Two ways to divide rows: a work-item walks along whole rows, or a work-group sweeps a row in
// tiles.

// Why a work-group should not sweep a row, or nullptr.
const char* refuse_sweeping(const OpCall& call, const Nest& nest) {
  if (nest.inner >= 32) return "neighbouring work-items walk along neighbouring rows";
  return nest.n < reduce::group_size(call.caps()) ? "rows are shorter than a work-group" : nullptr;
}
Division divide_rows(const OpCall& call, const Nest& nest, bool walk) {
  const int64_t rows = nest.outer * nest.inner;
  if (walk) return divide(call.caps(), rows, std::max<int64_t>(1, 2048 / nest.n));
  const int64_t group = reduce::group_size(call.caps());
  return {{rows * group, 1, 1}, {group, 1, 1}, 1};
}

std::string text_of(const OpCall& call, DType type, const Nest& nest) {
  return fmt::format("{} {} {}x{}x{}", call.name(), name(type), nest.outer, nest.n, nest.inner);
}

// ---- cummax and cummin: values with their positions

struct Extremes {
  TensorView in, values, indices;
  Nest nest;
  const char* compare;  // the comparison by which a number replaces the extreme so far
};
const char* refuse_extremes_tiles(const OpCall& call, const Extremes& p) {
  return refuse_sweeping(call, p.nest);
}
template <bool walk>
void run_extremes(const OpCall& call, const Extremes& p) {
  Defines d;
  d.type(define::A, p.in.dtype());
  d.set(define::LOCAL, reduce::group_size(call.caps())).set(define::WALK, walk);
  d.set(define::FLOATING, is_floating(p.in.dtype()));
  d.set(define::COMPARE, p.compare);
  const Division division = divide_rows(call, p.nest, walk);
  call.launch(kernels::scan::scan_extremes::extremes, d,
              {.in = p.in,
               .value = p.values,
               .index = p.indices,
               .count = p.nest.outer * p.nest.inner,
               .n = p.nest.n,
               .inner = p.nest.inner,
               .per_item = division.per_item})
      .run(division.global, division.local);
}

constinit const AlgorithmFor<Extremes> kExtremesTiles(
    {.id = "scan_extremes.tiles",
     .description = "a work-group sweeps a row in tiles",
     .style = DeviceStyle::Gpu},
    Steps<refuse_extremes_tiles, run_extremes<false>>());
constinit const AlgorithmFor<Extremes> kExtremesWalk(
    {.id = "scan_extremes.walk",
     .description = "a work-item walks along rows",
     .last_resort = true},
    Steps<takes_all<Extremes>, run_extremes<true>>());

struct ExtremesTraits {
  static std::string describe(const OpCall& call, const Extremes& p) {
    return text_of(call, p.in.dtype(), p.nest);
  }
};
using ExtremesAlgorithms = AlgorithmList<Extremes, ExtremesTraits>;

ExtremesAlgorithms& extremes_algorithms() {
  static ExtremesAlgorithms& list = *new ExtremesAlgorithms(  // leaked, as all lists
      "scan_extremes", scan_operators(), {&kExtremesTiles, &kExtremesWalk});
  return list;
}

void extremes(OpCall& call, const char* compare) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  call.accept();
  if (self.numel() == 0) return;
  const Nest nest = nest_of(self, wrap_dim(call.args().integer(Arg::dim), self.ndim()));
  const Contiguous in(call, self);
  ContiguousOutput values(call, call.out(0));
  ContiguousOutput indices(call, call.out(1));
  extremes_algorithms().run(call, {in.view(), values.view(), indices.view(), nest, compare});
  values.finish();
  indices.finish();
}

void cummax(OpCall& call) { extremes(call, ">="); }
void cummin(OpCall& call) { extremes(call, "<="); }

// ---- Scans

struct ScanProblem {
  TensorView in, out;
  Nest nest;
  Operation operation;
  DType result, compute;
};
using ScanAlgorithm = AlgorithmFor<ScanProblem>;

Defines scan_defines(const ScanProblem& p) {
  Defines d;
  d.type(define::COMPUTE, p.compute).type(define::A, p.in.dtype()).type(define::OUT, p.out.dtype());
  set_formula(d, p.operation, p.compute);
  return d;
}

void run_blocks(const OpCall& call, const ScanProblem& p) {
  const auto [outer, n, inner] = p.nest;
  Defines d = scan_defines(p);
  d.set(define::BLOCK, p.operation == Operation::Product ? INT64_MAX / 2 : 256);
  const int64_t blocks = outer * divide_up(inner, 16);
  const int64_t per =
      std::max({divide_up(blocks, 64), 2048 / (n * std::min<int64_t>(inner, 16)), int64_t{1}});
  call.launch(kernels::scan::scan_cpu::scan, d,
              {.a = p.in, .out = p.out, .outer = outer, .n = n, .inner = inner, .per = per})
      .run({divide_up(blocks, per), 1, 1}, {1, 1, 1});
}

const char* refuse_tiles(const OpCall& call, const ScanProblem& p) {
  return refuse_sweeping(call, p.nest);
}
template <bool columns>
void run_groups(const OpCall& call, const ScanProblem& p) {
  const int64_t group = reduce::group_size(call.caps());
  const int64_t rows = p.nest.outer * p.nest.inner;
  const int64_t groups = columns ? divide_up(rows, group) : rows;
  Defines d = scan_defines(p);
  d.set(define::GROUP, group);
  if (columns) d.set(define::COLUMNS, 1);
  call.launch(
          kernels::scan::scan_gpu::scan, d,
          {.a = p.in, .out = p.out, .outer = p.nest.outer, .n = p.nest.n, .inner = p.nest.inner})
      .run({groups * group, 1, 1}, {group, 1, 1});
}

constinit const ScanAlgorithm kTiles({.id = "scan.tiles",
                                      .description = "a work-group sweeps a row in tiles",
                                      .style = DeviceStyle::Gpu},
                                     Steps<refuse_tiles, run_groups<false>>());
constinit const ScanAlgorithm kColumns({.id = "scan.columns",
                                        .description = "a work-item walks along a row",
                                        .style = DeviceStyle::Gpu,
                                        .last_resort = true},
                                       Steps<takes_all<ScanProblem>, run_groups<true>>());
constinit const ScanAlgorithm kBlocks({.id = "scan.blocks",
                                       .description = "a work-item sweeps rows in blocks",
                                       .style = DeviceStyle::Cpu,
                                       .last_resort = true},
                                      Steps<takes_all<ScanProblem>, run_blocks>());

struct ScanTraits {
  static std::string describe(const OpCall& call, const ScanProblem& p) {
    return text_of(call, p.in.dtype(), p.nest);
  }
};
using Algorithms = AlgorithmList<ScanProblem, ScanTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "scan", scan_operators(), {&kTiles, &kColumns, &kBlocks});
  return list;
}

// ---- Products of floats can overflow and underflow, and where they do depends on how factors are
// grouped: results must be those of the running product in the accumulator's type, double for
// float32 and float64.

bool is_wide(const ScanProblem& p) { return size_of(p.result) > 2; }

const char* refuse_running(const OpCall& call, const ScanProblem& p) {
  return is_wide(p) && !call.caps().fp64 ? "the device has no float64" : nullptr;
}
void run_running(const OpCall& call, const ScanProblem& p) {
  ScanProblem running = p;
  running.compute = is_wide(p) ? DType::Float64 : DType::Float32;
  run_blocks(call, running);
}

template <bool walk>
void run_products(const OpCall& call, const ScanProblem& p) {
  const bool wide = is_wide(p);
  Defines d;
  d.type(define::COMPUTE, p.compute).type(define::A, p.in.dtype()).type(define::OUT, p.out.dtype());
  d.set(define::DOUBLE, p.compute == DType::Float64);
  d.set(define::HIGHEST, wide ? 1024 : 128).set(define::LOWEST, wide ? -1021 : -125);
  d.set(define::SMALLEST, wide ? -1074 : -149);
  d.set(define::WALK, walk).set(define::LOCAL, reduce::group_size(call.caps()));
  const Division division = divide_rows(call, p.nest, walk);
  call.launch(kernels::scan::scan_products::products, d,
              {.in = p.in,
               .out = p.out,
               .count = p.nest.outer * p.nest.inner,
               .n = p.nest.n,
               .inner = p.nest.inner,
               .per_item = division.per_item})
      .run(division.global, division.local);
}

constinit const ScanAlgorithm kRunning({.id = "scan_products.running",
                                        .description = "the running product itself",
                                        .style = DeviceStyle::Cpu},
                                       Steps<refuse_running, run_running>());
constinit const ScanAlgorithm kProductsTiles(
    {.id = "scan_products.tiles",
     .description = "a work-group sweeps a row in tiles; exponents apart",
     .style = DeviceStyle::Gpu},
    Steps<refuse_tiles, run_products<false>>());
constinit const ScanAlgorithm kProductsWalk(
    {.id = "scan_products.walk",
     .description = "a work-item walks along rows; exponents apart",
     .last_resort = true},
    Steps<takes_all<ScanProblem>, run_products<true>>());

Algorithms& products_algorithms() {
  static Algorithms& list = *new Algorithms(
      "scan_products", scan_operators(), {&kRunning, &kProductsTiles, &kProductsWalk});  // leaked
  return list;
}

// Sums are computed on the parts; products in log2(n) steps, each of which doubles the range that a
// product covers.
void scan_complex(const OpCall& call, TensorView self, Nest nest, Operation operation) {
  const TensorView given = call.out(0);
  const DType type = given.dtype();
  const reduce::Converted numbers(call, self, type);
  const Contiguous in(call, numbers.view());
  ContiguousOutput out(call, given);
  const Dims sizes{nest.outer, nest.n, nest.inner};
  const LocalTensor from = copy::view_of(in.view(), sizes, contiguous_strides(sizes), 0);
  const LocalTensor to = copy::view_of(out.view(), sizes, contiguous_strides(sizes), 0);
  if (operation == Operation::LogSumExp) {
    const int64_t count = nest.outer * nest.inner;
    const Division division = divide(call.caps(), count, std::max<int64_t>(1, 256 / nest.n));
    Defines d;
    d.type(define::TYPE, type).type(define::PART, real_type(compute_type(type)));
    call.launch(kernels::scan::scan_complex::scan, d,
                {.in = from,
                 .out = to,
                 .count = count,
                 .n = nest.n,
                 .inner = nest.inner,
                 .per_item = division.per_item})
        .run(division.global, division.local);
    return out.finish();
  }
  if (operation == Operation::Sum) {
    nest.inner *= 2;
    const LocalTensor from_parts = copy::as_real(from), to_parts = copy::as_real(to);
    algorithms().run(call, {from_parts, to_parts, nest, operation, real_type(type),
                            compute_type(real_type(type))});
    return out.finish();
  }
  copy_tensor(call, to, from);
  const Scratch memory = call.scratch(static_cast<uint64_t>(numel(sizes) * size_of(type)));
  const LocalTensor before(memory.address(), type, sizes);
  for (int64_t step = 1; step < nest.n; step *= 2) {
    copy_tensor(call, before, to);
    reduce::multiply_in_place(call, copy::narrow(to, 1, step, nest.n - step),
                              copy::narrow(before, 1, 0, nest.n - step));
  }
  out.finish();
}

void scan(OpCall& call, Operation operation) {
  const DType result = check_outputs(call, OutputTypes::Castable)[0].dtype;
  const TensorView self = call.args().tensor(Arg::self);
  const int64_t at = wrap_dim(call.args().integer(Arg::dim), self.ndim());
  if (result == DType::Bool) unsupported(TB_REASON_DTYPE, "{}: dtype bool", call.name());
  const bool complex = is_complex(result);
  if (complex != is_complex(call.out(0).dtype()) || (is_complex(self.dtype()) && !complex))
    unsupported(TB_REASON_DTYPE, "{}: {} to {}", call.name(), name(self.dtype()),
                name(call.out(0).dtype()));
  call.accept();
  if (self.numel() == 0) return;
  const Nest nest = nest_of(self, at);
  if (complex) return scan_complex(call, self, nest, operation);
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const DType compute = is_integral(result, true) ? DType::Int64 : compute_type(result);
  const bool products = operation == Operation::Product && is_floating(result);
  (products ? products_algorithms : algorithms)().run(
      call, {in.view(), out.view(), nest, operation, result, compute});
  out.finish();
}

void cumsum(OpCall& call) { scan(call, Operation::Sum); }
void cumprod(OpCall& call) { scan(call, Operation::Product); }
void logcumsumexp(OpCall& call) { scan(call, Operation::LogSumExp); }

constexpr OpEntry kOperators[] = {{"cumsum.out", cumsum, true, false, true},
                                  {"cumprod.out", cumprod, true, false, true},
                                  {"logcumsumexp.out", logcumsumexp, true},
                                  {"cummax.out", cummax},
                                  {"cummin.out", cummin}};

}  // namespace

const AlgorithmFamily& scan_algorithms() { return algorithms().family(); }
const AlgorithmFamily& scan_products_algorithms() { return products_algorithms().family(); }
const AlgorithmFamily& scan_extremes_algorithms() { return extremes_algorithms().family(); }

std::span<const OpEntry> scan_operators() { return kOperators; }

}  // namespace ocltensor::opencl::scan
