// Extreme values with their positions: argmax, argmin, max.dim, min.dim.
#include <algorithm>
#include <deque>

#include "base/infer/common.h"
#include "kernel_sources.h"
#include "ops/copy/copy.h"
#include "reduction.h"

namespace ocltensor::opencl {
namespace {

// A contiguous input as [outer, length, inner].
struct Block {
  int64_t outer = 1, length = 1, inner = 1;
};
Block block_of(TensorView self, std::optional<int64_t> dim) {
  if (!dim) return {1, self.numel(), 1};
  Block b;
  const int64_t at = wrap_dim(*dim, self.ndim());
  for (int64_t d = 0; d < self.ndim(); ++d)
    (d < at ? b.outer : d == at ? b.length : b.inner) *= self.size(d);
  return b;
}

// Every narrow type is exact in float32; positions are as wide as the values so that vectors of
// both agree.
DType arithmetic(DType type) {
  return type == DType::Int64 || type == DType::Float64 || type == DType::Int32 ? type
                                                                                : DType::Float32;
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Division {
  std::array<size_t, 3> global, local;
  int64_t chunk, splits, block;
  int64_t lanes;
};

// Work-items for a CPU driver: a run of outputs (or a block of neighbouring ones) and a part of
// their elements each.
Division divide_rows(const Block& b) {
  Division d{};
  const int64_t outputs = b.outer * b.inner;
  d.block = b.inner == 1 ? std::max(divide_up(outputs, 64),
                                    std::min(outputs, 8192 / std::max<int64_t>(1, b.length)))
                         : std::min<int64_t>(1024, b.inner);
  d.block = std::max<int64_t>(1, d.block);
  const int64_t pieces =
      b.inner == 1 ? divide_up(outputs, d.block) : b.outer * divide_up(b.inner, d.block);
  const int64_t wanted =
      pieces > 32 ? 1 : std::min(64 / pieces, divide_up(b.length * d.block, 8192));
  d.chunk = divide_up(divide_up(b.length, wanted), 64) * 64;
  d.splits = divide_up(b.length, d.chunk);
  d.global = {static_cast<size_t>(pieces), static_cast<size_t>(d.splits), 1};
  d.local = {1, 1, 1};
  return d;
}

Division divide_elements(const Block& b, const Capabilities& caps) {
  Division d{};
  const int64_t group = group_size(caps);
  const int64_t outputs = b.outer * b.inner;
  const int64_t busy = static_cast<int64_t>(caps.compute_units) * 8;
  d.lanes = 1;
  const int64_t widest = b.inner == 1 ? group : std::max<int64_t>(1, group / 32);
  while (d.lanes < widest && d.lanes * 8 < b.length) d.lanes *= 2;
  const int64_t groups = divide_up(outputs, group / d.lanes);
  const int64_t wanted =
      groups >= busy / 2 ? 1 : std::min(busy / groups, b.length / (d.lanes * 16));
  d.chunk = std::max<int64_t>(1, divide_up(b.length, std::max<int64_t>(1, wanted)));
  d.splits = divide_up(b.length, d.chunk);
  d.global = {static_cast<size_t>(groups * group), static_cast<size_t>(d.splits), 1};
  d.local = {static_cast<size_t>(group), 1, 1};
  return d;
}

void bind_optional(Launch& launch, const TensorView* tensor) {
  if (tensor == nullptr)
    launch.memory(0, 0, 0);
  else
    bind(launch, *tensor);
}

void launch_arg(const OpCall& call, TensorView self, const Block& b, bool largest,
                const TensorView* values, const TensorView* indices) {
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  const Division div = gpu_style ? divide_elements(b, call.caps()) : divide_rows(b);
  const DType compute = arithmetic(self.dtype());
  const bool narrow = size_of(compute) == 4;
  if (narrow && div.chunk >= (int64_t{1} << 31))
    unsupported(TB_REASON_SIZE, "{}: {} elements in one split", call.name(), div.chunk);
  const int64_t outputs = b.outer * b.inner;
  Defines d;
  d.type("COMPUTE", compute)
      .type("POSITION", narrow ? DType::Int32 : DType::Int64)
      .type("A", self.dtype());
  d.set("COMPARE", largest ? ">" : "<");
  if (gpu_style) d.set("GROUP", group_size(call.caps()));
  if (gpu_style && b.inner == 1) d.set("UNIT", 1);
  Defines last = d;
  last.type("VALUE", values != nullptr ? values->dtype() : compute);
  last.set("VALUES", values != nullptr).set("INDICES", indices != nullptr);
  std::vector<Scratch> partial;
  if (div.splits > 1) {
    d.type("VALUE", compute).set("VALUES", 1).set("INDICES", 1);
    partial.push_back(call.scratch(static_cast<uint64_t>(outputs * div.splits * size_of(compute))));
    partial.push_back(call.scratch(static_cast<uint64_t>(outputs * div.splits * 8)));
  }
  Launch launch =
      call.launch(gpu_style ? kernel_sources::reduce_arg_gpu : kernel_sources::reduce_arg_cpu,
                  "arg", partial.empty() ? last : d);
  bind(launch, self);
  if (partial.empty()) {
    bind_optional(launch, values);
    bind_optional(launch, indices);
  } else {
    for (const Scratch& s : partial) launch.memory(s.address(), 0, static_cast<int64_t>(s.bytes()));
  }
  launch.value(b.outer).value(b.length).value(b.inner).value(div.chunk).value(
      gpu_style ? div.lanes : div.block);
  launch.run(div.global, div.local);
  if (partial.empty()) return;
  Launch merge = call.launch(kernel_sources::reduce_arg_merge, "merge", last);
  for (const Scratch& s : partial) merge.memory(s.address(), 0, static_cast<int64_t>(s.bytes()));
  bind_optional(merge, values);
  bind_optional(merge, indices);
  const size_t local = gpu_style ? 64 : 1;
  merge.value(outputs).value(div.splits);
  merge.run({(static_cast<size_t>(outputs) + local - 1) / local * local, 1, 1}, {local, 1, 1});
}

// Output `value_at` takes values, `index_at` positions (-1: not wanted).
void extreme(OpCall& call, bool largest, int value_at, int index_at) {
  const auto specs = checked_outputs(call);
  const TensorView self = call.args().tensor(0);
  const auto dim = call.args().optional_integer(1);
  if (index_at >= 0)
    check(call.out(static_cast<size_t>(index_at)).dtype() == DType::Int64,
          "{}: positions are int64", call.name());
  call.accept();
  const Block b = block_of(self, dim);
  if (b.outer * b.inner == 0) return;
  const Contiguous in(call, self);
  std::deque<ContiguousOutput> outs;
  std::vector<TensorView> views;
  views.reserve(2);
  const TensorView* targets[2] = {};
  for (int k = 0; k < 2; ++k) {
    const int at = k == 0 ? value_at : index_at;
    if (at < 0) continue;
    outs.emplace_back(call, call.out(static_cast<size_t>(at)));
    views.push_back(outs.back().view());
    targets[k] = &views.back();
  }
  launch_arg(call, in.view(), b, largest, targets[0], targets[1]);
  for (ContiguousOutput& out : outs) out.finish();
}

constexpr OpEntry kOperators[] = {
    {"argmax.out", [](OpCall& call) { extreme(call, true, -1, 0); }},
    {"argmin.out", [](OpCall& call) { extreme(call, false, -1, 0); }},
    {"max.dim_max", [](OpCall& call) { extreme(call, true, 0, 1); }},
    {"min.dim_min", [](OpCall& call) { extreme(call, false, 0, 1); }}};

}  // namespace

const std::span<const OpEntry> kArgOperators = kOperators;

}  // namespace ocltensor::opencl
