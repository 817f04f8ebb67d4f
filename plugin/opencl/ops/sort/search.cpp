// searchsorted: places of values in sorted rows.
#include "call/division.h"
#include "kernel_sources.h"
#include "sort.h"

namespace ocltensor::opencl {
namespace {

void searchsorted(OpCall& call) {
  check_outputs(call);
  const TensorView sequence = call.args().tensor(0);
  const TensorView self = call.args().tensor(1);
  const auto sorter = call.args().optional_tensor(5);
  const bool right =
      call.args().boolean(3) || (!call.args().is_none(4) && call.args().string(4) == "right");
  call.accept();
  if (self.numel() == 0) return;
  ContiguousOutput out(call, call.out(0));
  const Contiguous values(call, self);
  const Contiguous sorted(call, sequence);
  const Contiguous order(call, sorter.value_or(sequence));
  Defines d;
  d.type("A", self.dtype()).type("OUT", out.view().dtype());
  d.set("COMPARE", right ? ">" : ">=")
      .set("SORTER", sorter.has_value())
      .set("CPU_STYLE", is_cpu_style(call));
  Launch launch = call.launch(kernel_sources::sort_search, "search", d);
  bind(launch, sorted.view());
  bind(launch, order.view());
  bind(launch, values.view());
  bind(launch, out.view());
  const Division division = divide(call.caps(), self.numel(), 256);
  launch.value(self.numel()).value(sequence.size(-1));
  launch.value(sequence.ndim() == 1 ? int64_t{0} : self.size(-1)).value(division.per_item);
  launch.run(division.global, division.local);
  out.finish();
}

constexpr OpEntry kOperators[] = {{"searchsorted.Tensor_out", searchsorted}};

}  // namespace

std::span<const OpEntry> search_operators() { return kOperators; }

}  // namespace ocltensor::opencl
