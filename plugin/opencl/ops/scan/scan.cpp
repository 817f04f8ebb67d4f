// cumsum and cumprod along one dimension of a contiguous [outer, n, inner].
#include "scan.h"

#include <algorithm>

#include "kernel_sources.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

void scan(OpCall& call) {
  const DType result = checked_outputs(call)[0].dtype;
  const TensorView self = call.args().tensor(0);
  const int64_t at = wrap_dim(call.args().integer(1), self.ndim());
  if (result == DType::Bool) unsupported(TB_REASON_DTYPE, "{}: dtype bool", call.name());
  call.accept();
  if (self.numel() == 0) return;
  int64_t outer = 1, n = 1, inner = 1;
  for (int64_t d = 0; d < self.ndim(); ++d) (d < at ? outer : d == at ? n : inner) *= self.size(d);
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const bool elements = call.caps().style == KernelStyle::Elements;
  const bool sums = call.op().schema.name == "cumsum";
  Defines d;
  d.type("COMPUTE", is_integral(result, true) ? DType::Int64 : compute_type(result));
  d.type("A", self.dtype()).type("OUT", out.view().dtype());
  d.set("COMBINE", sums ? "x + y" : "x * y").set("IDENTITY", sums ? "0" : "1");
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

constexpr OpEntry kOperators[] = {{"cumsum.out", scan}, {"cumprod.out", scan}};

}  // namespace

std::span<const OpEntry> scan_operators() { return kOperators; }

}  // namespace ocltensor::opencl
