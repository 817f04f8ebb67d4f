// Cumulative operators along one dimension of a contiguous [outer, n, inner].
#include "scan.h"

#include <algorithm>

#include "kernel_sources.h"
#include "ops/copy/copy.h"
#include "ops/division.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

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
  const bool rows = is_rows(call);
  const int64_t group = group_size(call.caps());
  const int64_t count = nest.outer * nest.inner;
  const bool walk = rows || nest.inner >= 32 || nest.n < group;
  Defines d;
  d.type("A", self.dtype()).set("ROWS", rows).set("LOCAL", group).set("WALK", walk);
  d.set("FLOATING", is_floating(self.dtype()));
  d.set("COMPARE", call.op().schema.name == "cummax" ? ">=" : "<=");
  Launch launch = call.launch(kernel_sources::scan_extremes, "extremes", d);
  bind(launch, in.view());
  bind(launch, values.view());
  bind(launch, indices.view());
  launch.value(count).value(nest.n).value(nest.inner);
  if (walk) {
    const Division division = divide(call.caps(), count, std::max<int64_t>(1, 2048 / nest.n));
    launch.value(division.per_item).run(division.global, division.local);
  } else {
    launch.value(int64_t{1});
    launch.run({static_cast<size_t>(count * group), 1, 1}, {static_cast<size_t>(group), 1, 1});
  }
  values.finish();
  indices.finish();
}

void scan(OpCall& call) {
  const DType result = checked_outputs(call)[0].dtype;
  const TensorView self = call.args().tensor(0);
  const int64_t at = wrap_dim(call.args().integer(1), self.ndim());
  if (result == DType::Bool) unsupported(TB_REASON_DTYPE, "{}: dtype bool", call.name());
  call.accept();
  if (self.numel() == 0) return;
  const auto [outer, n, inner] = nest_of(self, at);
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const bool elements = call.caps().style == KernelStyle::Elements;
  const DType compute = is_integral(result, true) ? DType::Int64 : compute_type(result);
  Defines d;
  d.type("COMPUTE", compute);
  d.type("A", self.dtype()).type("OUT", out.view().dtype());
  set_formula(d, call.op().schema.name, compute);
  const int64_t group = group_size(call.caps());
  const bool columns = elements && (inner >= 32 || n < group);
  if (elements) d.set("GROUP", group);
  if (columns) d.set("COLUMNS", 1);
  Launch launch =
      call.launch(elements ? kernel_sources::scan_elements : kernel_sources::scan_rows, "scan", d);
  bind(launch, in.view());
  bind(launch, out.view());
  launch.value(outer).value(n).value(inner);
  if (elements) {
    const int64_t groups = columns ? divide_up(outer * inner, group) : outer * inner;
    launch.run({static_cast<size_t>(groups * group), 1, 1}, {static_cast<size_t>(group), 1, 1});
  } else {
    const int64_t blocks = outer * divide_up(inner, 16);
    const int64_t per =
        std::max({divide_up(blocks, 64), 2048 / (n * std::min<int64_t>(inner, 16)), int64_t{1}});
    launch.value(per).run({static_cast<size_t>(divide_up(blocks, per)), 1, 1}, {1, 1, 1});
  }
  out.finish();
}

constexpr OpEntry kOperators[] = {{"cumsum.out", scan},
                                  {"cumprod.out", scan},
                                  {"logcumsumexp.out", scan},
                                  {"cummax.out", extremes},
                                  {"cummin.out", extremes}};

}  // namespace

std::span<const OpEntry> scan_operators() { return kOperators; }

}  // namespace ocltensor::opencl
