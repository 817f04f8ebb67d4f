// Cumulative operators along one dimension of a contiguous [outer, n, inner].
#include "scan.h"

#include <algorithm>

#include "call/divide_up.h"
#include "call/division.h"
#include "kernel_sources.h"
#include "ops/copy/copy.h"
#include "ops/reduce/complex.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl {
namespace {

struct Nest {
  int64_t outer = 1, n = 1, inner = 1;
};
Nest nest_of(TensorView self, int64_t dim) {
  Nest nest;
  for (int64_t d = 0; d < self.ndim(); ++d)
    (d < dim ? nest.outer : d == dim ? nest.n : nest.inner) *= self.size(d);
  return nest;
}

// How two neighbouring results become one, and what changes nothing.
void set_formula(Defines& d, const std::string& name, DType compute) {
  if (name == "cumsum") {
    d.set("COMBINE", "x + y").set("IDENTITY", "0");
  } else if (name == "cumprod") {
    d.set("COMBINE", "x * y").set("IDENTITY", "1");
  } else {  // of equal numbers, and of equal infinities, the difference is not taken
    const bool wide = compute == DType::Float64;
    d.set("LN2", wide ? "0.693147180559945309" : "0.693147181f").set("IDENTITY", "-INFINITY");
    d.set("COMBINE", "(x == y) ? x + LN2 : fmax(x, y) + log1p(exp(-fabs(x - y)))");
  }
}

// How rows are shared out: a work-item walks along some, or a work-group sweeps one in tiles.
struct RowWork {
  int64_t count, group;
  bool walk;
};
RowWork row_work(const OpCall& call, const Nest& nest) {
  const int64_t group = group_size(call.caps());
  return {nest.outer * nest.inner, group, is_cpu_style(call) || nest.inner >= 32 || nest.n < group};
}
void run_rows(const OpCall& call, Launch& launch, const Nest& nest, const RowWork& rows) {
  launch.value(rows.count).value(nest.n).value(nest.inner);
  if (rows.walk) {
    const Division division = divide(call.caps(), rows.count, std::max<int64_t>(1, 2048 / nest.n));
    launch.value(division.per_item).run(division.global, division.local);
    return;
  }
  const auto group = static_cast<size_t>(rows.group);
  launch.value(int64_t{1}).run({static_cast<size_t>(rows.count) * group, 1, 1}, {group, 1, 1});
}

// cummax and cummin: values with their positions.
void extremes(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(0);
  call.accept();
  if (self.numel() == 0) return;
  const Nest nest = nest_of(self, wrap_dim(call.args().integer(1), self.ndim()));
  const Contiguous in(call, self);
  ContiguousOutput values(call, call.out(0));
  ContiguousOutput indices(call, call.out(1));
  const RowWork rows = row_work(call, nest);
  Defines d;
  d.type("A", self.dtype()).set("CPU_STYLE", is_cpu_style(call));
  d.set("LOCAL", rows.group).set("WALK", rows.walk);
  d.set("FLOATING", is_floating(self.dtype()));
  d.set("COMPARE", call.op().schema.name == "cummax" ? ">=" : "<=");
  Launch launch = call.launch(kernel_sources::scan_scan_extremes, "extremes", d);
  bind(launch, in.view());
  bind(launch, values.view());
  bind(launch, indices.view());
  run_rows(call, launch, nest, rows);
  values.finish();
  indices.finish();
}

void scan_nest(const OpCall& call, TensorView in, TensorView out, const Nest& nest,
               const std::string& name, DType compute) {
  const auto [outer, n, inner] = nest;
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  Defines d;
  d.type("COMPUTE", compute);
  d.type("A", in.dtype()).type("OUT", out.dtype());
  set_formula(d, name, compute);
  if (!gpu_style) d.set("BLOCK", name == "cumprod" ? INT64_MAX / 2 : 256);
  const int64_t group = group_size(call.caps());
  const bool columns = gpu_style && (inner >= 32 || n < group);
  if (gpu_style) d.set("GROUP", group);
  if (columns) d.set("COLUMNS", 1);
  Launch launch = call.launch(
      gpu_style ? kernel_sources::scan_scan_gpu : kernel_sources::scan_scan_cpu, "scan", d);
  bind(launch, in);
  bind(launch, out);
  launch.value(outer).value(n).value(inner);
  if (gpu_style) {
    const int64_t groups = columns ? divide_up(outer * inner, group) : outer * inner;
    launch.run({static_cast<size_t>(groups * group), 1, 1}, {static_cast<size_t>(group), 1, 1});
  } else {
    const int64_t blocks = outer * divide_up(inner, 16);
    const int64_t per =
        std::max({divide_up(blocks, 64), 2048 / (n * std::min<int64_t>(inner, 16)), int64_t{1}});
    launch.value(per).run({static_cast<size_t>(divide_up(blocks, per)), 1, 1}, {1, 1, 1});
  }
}

// Products of floats leave the range of numbers, and where they do depends on how they are grouped:
// the accumulator's running product is meant, a double for float32 and float64.
void scan_products(const OpCall& call, TensorView in, TensorView out, const Nest& nest,
                   DType result) {
  const bool wide = size_of(result) > 2;
  if (is_cpu_style(call) && (!wide || call.caps().fp64))
    return scan_nest(call, in, out, nest, "cumprod", wide ? DType::Float64 : DType::Float32);
  const RowWork rows = row_work(call, nest);
  Defines d;
  d.type("COMPUTE", compute_type(result)).type("A", in.dtype()).type("OUT", out.dtype());
  d.set("DOUBLE", compute_type(result) == DType::Float64);
  d.set("HIGHEST", wide ? 1024 : 128).set("LOWEST", wide ? -1021 : -125);
  d.set("SMALLEST", wide ? -1074 : -149);
  d.set("CPU_STYLE", is_cpu_style(call)).set("WALK", rows.walk).set("LOCAL", rows.group);
  Launch launch = call.launch(kernel_sources::scan_scan_products, "products", d);
  bind(launch, in);
  bind(launch, out);
  run_rows(call, launch, nest, rows);
}

// Sums are those of the parts; products double their reach log2(n) times.
void scan_complex(const OpCall& call, TensorView self, Nest nest, const std::string& name) {
  const TensorView given = call.out(0);
  const Converted numbers(call, self, DType::Complex64);
  const Contiguous in(call, numbers.view());
  ContiguousOutput out(call, given);
  const Dims sizes{nest.outer, nest.n, nest.inner};
  const LocalTensor from = view_of(in.view(), sizes, contiguous_strides(sizes), 0);
  const LocalTensor to = view_of(out.view(), sizes, contiguous_strides(sizes), 0);
  if (name == "logcumsumexp") {
    const int64_t count = nest.outer * nest.inner;
    const Division division = divide(call.caps(), count, std::max<int64_t>(1, 256 / nest.n));
    Defines d;
    d.set("CPU_STYLE", is_cpu_style(call));
    Launch launch = call.launch(kernel_sources::scan_scan_complex, "scan", d);
    bind(launch, from);
    bind(launch, to);
    launch.value(count).value(nest.n).value(nest.inner).value(division.per_item);
    launch.run(division.global, division.local);
    return out.finish();
  }
  if (name == "cumsum") {
    nest.inner *= 2;
    scan_nest(call, as_real(from), as_real(to), nest, "cumsum", DType::Float32);
    return out.finish();
  }
  copy_tensor(call, to, from);
  const Scratch memory = call.scratch(static_cast<uint64_t>(numel(sizes)) * 8);
  const LocalTensor before(memory.address(), DType::Complex64, sizes);
  for (int64_t step = 1; step < nest.n; step *= 2) {
    copy_tensor(call, before, to);
    multiply_in_place(call, narrow(to, 1, step, nest.n - step),
                      narrow(before, 1, 0, nest.n - step));
  }
  out.finish();
}

void scan(OpCall& call) {
  const DType result = checked_outputs(call)[0].dtype;
  const TensorView self = call.args().tensor(0);
  const int64_t at = wrap_dim(call.args().integer(1), self.ndim());
  if (result == DType::Bool) unsupported(TB_REASON_DTYPE, "{}: dtype bool", call.name());
  const bool complex = is_complex(result);
  if (complex != is_complex(call.out(0).dtype()) || (is_complex(self.dtype()) && !complex))
    unsupported(TB_REASON_DTYPE, "{}: {} to {}", call.name(), name(self.dtype()),
                name(call.out(0).dtype()));
  call.accept();
  if (self.numel() == 0) return;
  const Nest nest = nest_of(self, at);
  if (complex) return scan_complex(call, self, nest, call.op().schema.name);
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  if (call.op().schema.name == "cumprod" && is_floating(result)) {
    scan_products(call, in.view(), out.view(), nest, result);
    return out.finish();
  }
  scan_nest(call, in.view(), out.view(), nest, call.op().schema.name,
            is_integral(result, true) ? DType::Int64 : compute_type(result));
  out.finish();
}

constexpr OpEntry kOperators[] = {{"cumsum.out", scan, true},
                                  {"cumprod.out", scan, true},
                                  {"logcumsumexp.out", scan, true},
                                  {"cummax.out", extremes},
                                  {"cummin.out", extremes}};

}  // namespace

std::span<const OpEntry> scan_operators() { return kOperators; }

}  // namespace ocltensor::opencl
