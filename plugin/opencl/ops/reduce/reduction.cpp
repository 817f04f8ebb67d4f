// Planning and launching reductions: loop nests, form of the kernel, division of work, second pass.
#include "reduction.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/infer/common.h"
#include "base/iteration.h"
#include "base/promotion.h"
#include "call/divide_up.h"
#include "kernel_sources.h"
#include "reduce_params.h"

namespace ocltensor::opencl {
namespace {

constexpr size_t kOperands = 6;  // a, b, c, d, out0, out1
enum class Form : uint8_t { Rows, ShortRows, Columns, NarrowColumns };
bool is_columns(Form form) { return form >= Form::Columns; }

struct Plan {
  IterationSpace kept, reduced;  // strides by operand; `reduced` has inputs only
  Form form = Form::Rows;
  int64_t splits = 1;
};

// Strides of an output for the dimensions that are kept, 0 for the others.
Dims spread(TensorView out, const ReduceLaunch& what) {
  Dims strides;
  const bool keeps = out.sizes().size() == what.shape.size();
  size_t next = 0;
  for (size_t d = 0; d < what.shape.size(); ++d) {
    const bool reduced = (what.mask >> d & 1) != 0;
    strides.push_back(reduced ? 0 : out.strides()[keeps ? d : next]);
    next += !reduced;
  }
  return strides;
}

Plan make_plan(const ReduceLaunch& what) {
  std::vector<Dims> strides;
  for (const TensorView* in : what.inputs)
    strides.push_back(in == nullptr ? Dims(what.shape.size(), 0)
                                    : broadcast_strides(in->sizes(), in->strides(), what.shape));
  for (const TensorView* out : what.outs)
    strides.push_back(out == nullptr ? Dims(what.shape.size(), 0) : spread(*out, what));
  Dims sizes[2];
  std::vector<Dims> nests[2] = {std::vector<Dims>(kOperands), std::vector<Dims>(kOperands - 2)};
  for (size_t d = 0; d < what.shape.size(); ++d) {
    const size_t reduced = what.mask >> d & 1;
    sizes[reduced].push_back(what.shape[d]);
    for (size_t k = 0; k < nests[reduced].size(); ++k) nests[reduced][k].push_back(strides[k][d]);
  }
  Plan plan{make_iteration(sizes[0], nests[0]), make_iteration(sizes[1], nests[1])};
  const int64_t down = std::abs(plan.reduced.strides[0][0]);
  const int64_t along = std::abs(plan.kept.strides[0][0]);
  if (down != 1 && along == 1 && plan.kept.sizes[0] > 1) plan.form = Form::Columns;
  constexpr int64_t kShort = 128;  // longer rows keep their lanes apart for long enough
  if (plan.form == Form::Rows && plan.reduced.rank() == 1 && plan.reduced.numel >= 16 &&
      plan.reduced.numel <= kShort && plan.kept.numel >= 16)
    plan.form = Form::ShortRows;
  // Too short to reduce in vectors, but the outputs are neighbours.
  if (plan.reduced.numel < 4 && plan.reduced.rank() == 1 && plan.kept.sizes[0] >= 64)
    plan.form = Form::Columns;
  // What lies in the caches is cut along the columns, so that no second pass has to join anything;
  // otherwise lines of memory are read as long as they are.
  constexpr int64_t kCached = int64_t{1} << 21;
  if (plan.form == Form::Columns && plan.kept.sizes[0] >= 16 && plan.reduced.rank() == 1 &&
      plan.kept.numel * plan.reduced.numel <= kCached)
    plan.form = Form::NarrowColumns;
  return plan;
}

int64_t kind_of(const TensorView* in, int64_t stride) {
  return in == nullptr ? 3 : stride == 0 ? 0 : stride == 1 ? 1 : 2;
}

void fill_nests(ReduceParams& p, const Plan& plan) {
  p.kept_rank = static_cast<int32_t>(plan.kept.rank());
  p.rank = static_cast<int32_t>(plan.reduced.rank());
  for (size_t i = 0; i < plan.kept.rank(); ++i) {
    p.kept_sizes[i] = plan.kept.sizes[i];
    for (size_t k = 0; k < kOperands; ++k) p.kept_strides[k][i] = plan.kept.strides[k][i];
  }
  for (size_t i = 0; i < plan.reduced.rank(); ++i) {
    p.sizes[i] = plan.reduced.sizes[i];
    for (size_t k = 0; k < kOperands - 2; ++k) p.strides[k][i] = plan.reduced.strides[k][i];
  }
}

using Global = std::array<size_t, 3>;
constexpr int64_t kPieces = 64;      // work-items that a CPU driver should get
constexpr int64_t kSmallest = 8192;  // elements that are worth one

Global divide_rows(ReduceParams& p, Plan& plan) {
  const int64_t inner = plan.reduced.sizes[0];
  const int64_t outer = inner == 0 ? 0 : plan.reduced.numel / inner;
  p.kept = plan.kept.numel;
  p.count = outer;
  p.kept_per_item =
      std::max(divide_up(p.kept, kPieces), kSmallest / std::max<int64_t>(1, plan.reduced.numel));
  p.kept_per_item = std::clamp<int64_t>(p.kept_per_item, 1, p.kept);
  if (plan.form == Form::ShortRows) p.kept_per_item = divide_up(p.kept_per_item, 8) * 8;
  const int64_t wanted = p.kept > kPieces / 2 || plan.form == Form::ShortRows
                             ? 1
                             : std::min(kPieces / p.kept, divide_up(plan.reduced.numel, kSmallest));
  const int64_t outer_splits = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, outer));
  p.chunk = std::max<int64_t>(1, divide_up(outer, outer_splits));
  const int64_t inner_wanted = std::max<int64_t>(1, wanted / outer_splits);
  p.inner_chunk = std::max<int64_t>(16, divide_up(divide_up(inner, inner_wanted), 64) * 64);
  p.inner_splits = std::max<int64_t>(1, divide_up(inner, p.inner_chunk));
  plan.splits = p.inner_splits * std::max<int64_t>(1, divide_up(outer, p.chunk));
  return {static_cast<size_t>(divide_up(p.kept, p.kept_per_item)), static_cast<size_t>(plan.splits),
          1};
}

Global divide_columns(ReduceParams& p, Plan& plan, const Capabilities& caps) {
  constexpr int64_t kNarrow = 64;  // columns of a work-item of reduction_narrow_columns.cl
  constexpr int64_t kWorthAPass = 32768;
  const bool narrow = plan.form == Form::NarrowColumns;
  const int64_t columns = plan.kept.sizes[0];
  const int64_t others = plan.kept.numel / columns;
  p.kept = others;
  p.count = plan.reduced.numel;
  p.inner_chunk = narrow ? kNarrow : 1024;  // long lines of memory first: rows are split as well
  p.inner_splits = divide_up(columns, p.inner_chunk);
  const int64_t pieces = p.inner_splits * others;
  const int64_t block = std::min(p.inner_chunk, columns) * p.count;
  const int64_t threads = static_cast<int64_t>(caps.compute_units);
  const int64_t wanted = narrow ? std::min(divide_up(threads, pieces), block / kWorthAPass + 1)
                         : pieces > kPieces / 2
                             ? 1
                             : std::min(kPieces / pieces, divide_up(block, kSmallest));
  p.chunk = std::max<int64_t>(1, divide_up(divide_up(p.count, wanted), 4) * 4);
  plan.splits = std::max<int64_t>(1, divide_up(p.count, p.chunk));
  return {static_cast<size_t>(pieces), static_cast<size_t>(plan.splits), 1};
}

// Work-groups for two full waves of a GPU with 2048 work-items in a compute unit, at least 16
// elements for each work-item. One wave leaves a tail, and a wave and a half idles: 256 MB sum on
// an H200 in 75, 79 and 71 us with 8, 12 and 16 groups a unit.
Global divide_elements(ReduceParams& p, Plan& plan, const Capabilities& caps) {
  const int64_t group = group_size(caps);
  p.kept = plan.kept.numel;
  p.count = plan.reduced.numel;
  const int64_t busy = static_cast<int64_t>(caps.compute_units) * 16;
  int64_t lanes = 1;
  if (!is_columns(plan.form)) {
    while (lanes < group && lanes * 8 < p.count) lanes *= 2;
  } else {  // whole lines of neighbouring outputs first
    while (lanes * 32 < group && lanes * 16 < p.count && p.kept * lanes < busy * group) lanes *= 2;
  }
  p.lanes = static_cast<int32_t>(lanes);
  const int64_t groups = divide_up(p.kept, group / lanes);
  const int64_t wanted = groups >= busy / 2 ? 1 : std::min(busy / groups, p.count / (lanes * 16));
  p.chunk = std::max<int64_t>(1, divide_up(p.count, std::max<int64_t>(1, wanted)));
  plan.splits = std::max<int64_t>(1, divide_up(p.count, p.chunk));
  return {static_cast<size_t>(groups * group), static_cast<size_t>(plan.splits), 1};
}

Defines defines_for(const OpCall& call, const ReduceLaunch& what, const Plan& plan, bool last) {
  static constexpr const char* kTypes[] = {"A", "B", "C", "D"};
  static constexpr const char* kKinds[] = {"KIND_A", "KIND_B", "KIND_C", "KIND_D"};
  static constexpr const char* kTexts[][4] = {{"LIFT0", "COMBINE0", "IDENTITY0", "FINISH0"},
                                              {"LIFT1", "COMBINE1", "IDENTITY1", "FINISH1"}};
  static constexpr const char* kResults[] = {"x", "y"};
  static constexpr const char* kOuts[] = {"OUT0", "OUT1"};
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  Defines d;
  d.type("COMPUTE", what.compute).set("COMPONENTS", what.formula->components);
  d.set("FLOATING", is_floating(what.compute));
  for (size_t k = 0; k < 4; ++k) {
    const TensorView* in = what.inputs[k];
    const auto& nest = is_columns(plan.form) ? plan.kept : plan.reduced;
    d.type(kTypes[k], in == nullptr ? what.compute : in->dtype());
    d.set(kKinds[k], gpu_style ? (in == nullptr ? 3 : 1) : kind_of(in, nest.strides[k][0]));
  }
  for (size_t k = 0; k < 2; ++k) {
    d.type(kOuts[k], last && what.outs[k] != nullptr ? what.outs[k]->dtype() : what.compute);
    if (k >= static_cast<size_t>(what.formula->components)) continue;
    const Component& c = what.formula->part[k];
    const char* identity = c.identity != nullptr   ? c.identity
                           : c.combine == kMaximum ? lowest(what.compute)
                                                   : highest(what.compute);
    d.set(kTexts[k][0], c.lift).set(kTexts[k][1], c.combine).set(kTexts[k][2], identity);
    d.set(kTexts[k][3], last ? c.finish : kResults[k]);
  }
  if (gpu_style) {
    d.set("GROUP", group_size(call.caps()))
        .set("INDEX", plan.reduced.numel < (int64_t{1} << 31) ? "uint" : "ulong");
    if (is_columns(plan.form)) d.set("COLUMNS", 1);
    if (plan.reduced.rank() == 1) d.set("FLAT", 1);
    if (plan.reduced.rank() == 1 && what.inputs[1] == nullptr && plan.reduced.strides[0][0] == 1)
      d.set("UNIT", 1);
  }
  return d;
}

void bind_input(Launch& launch, const TensorView* in, const Dims& shape) {
  if (in == nullptr || in->numel() == 0 || numel(shape) == 0) return (void)launch.memory(0, 0, 0);
  bind(launch, *in);
}

const Source& source_for(const OpCall& call, Form form) {
  if (call.caps().style == KernelStyle::Gpu) return kernel_sources::reduce_reduction_gpu;
  switch (form) {
    case Form::Rows: return kernel_sources::reduce_reduction_cpu;
    case Form::ShortRows: return kernel_sources::reduce_reduction_short_rows;
    case Form::Columns: return kernel_sources::reduce_reduction_columns;
    case Form::NarrowColumns: break;
  }
  return kernel_sources::reduce_reduction_narrow_columns;
}

// The partial results of `splits`, reduced in their turn: dimension 0 over the kept nest, outermost
// dimension first.
void second_pass(const OpCall& call, const ReduceLaunch& what, const Plan& plan,
                 const std::vector<Scratch>& partial) {
  Reduction again = *what.formula;
  again.part[0].lift = "a";
  again.part[1].lift = "b";
  Dims shape{plan.splits};
  Dims out_strides[2];
  for (size_t i = plan.kept.rank(); i-- > 0;) {
    shape.push_back(plan.kept.sizes[i]);
    for (size_t k = 0; k < 2; ++k) out_strides[k].push_back(plan.kept.strides[4 + k][i]);
  }
  const Dims kept(std::span<const int64_t>(shape).subspan(1));
  ReduceLaunch next{&again, what.compute, shape, 1, {}, {}, what.numbers};
  std::vector<LocalTensor> tensors;
  std::vector<TensorView> views;
  tensors.reserve(4);
  views.reserve(4);
  for (size_t k = 0; k < partial.size(); ++k) {
    tensors.emplace_back(partial[k].address(), what.compute, shape);
    views.push_back(tensors.back().view());
    next.inputs[k] = &views.back();
    tensors.emplace_back(what.outs[k]->address(), what.outs[k]->dtype(), kept, out_strides[k]);
    views.push_back(tensors.back().view());
    next.outs[k] = &views.back();
  }
  launch_reduce(call, next);
}

// Nests of more dimensions than the kernels take: a contiguous copy always merges to few enough.
void reduce_copy(const OpCall& call, const ReduceLaunch& what) {
  if (what.inputs[1] != nullptr || what.inputs[0]->is_contiguous())
    unsupported(TB_REASON_RANK, "{}: operands with {} dimensions that do not merge", call.name(),
                what.shape.size());
  const Contiguous copy(call, *what.inputs[0]);
  const TensorView view = copy.view();
  ReduceLaunch next = what;
  next.inputs[0] = &view;
  launch_reduce(call, next);
}

}  // namespace

int64_t group_size(const Capabilities& caps) {
  return static_cast<int64_t>(std::bit_floor(std::min<uint32_t>(256, caps.max_work_group_size)));
}

const char* lowest(DType type) {
  switch (type) {
    case DType::Bool:
    case DType::UInt8: return "0";
    case DType::Int8: return "SCHAR_MIN";
    case DType::Int16: return "SHRT_MIN";
    case DType::Int32: return "INT_MIN";
    case DType::Int64: return "LONG_MIN";
    default: return "-INFINITY";
  }
}
const char* highest(DType type) {
  switch (type) {
    case DType::Bool: return "1";
    case DType::UInt8: return "UCHAR_MAX";
    case DType::Int8: return "SCHAR_MAX";
    case DType::Int16: return "SHRT_MAX";
    case DType::Int32: return "INT_MAX";
    case DType::Int64: return "LONG_MAX";
    default: return "INFINITY";
  }
}

uint64_t number_bits(Scalar value, DType compute) {
  uint64_t bits = 0;
  if (compute == DType::Float64) {
    const double d = value.as_double();
    std::memcpy(&bits, &d, sizeof d);
  } else if (is_floating(compute)) {
    const auto f = static_cast<float>(value.as_double());
    std::memcpy(&bits, &f, sizeof f);
  } else {
    bits = static_cast<uint64_t>(value.as_int());
  }
  return bits;
}

std::vector<TensorSpec> checked_outputs(const OpCall& call) {
  auto specs = call.op().infer(call.args());
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorView out = call.out(i);
    check(Dims(out.sizes()) == specs[i].sizes, "{}: output {} has shape {}, expected {}",
          call.name(), i, to_string(out.sizes()), to_string(specs[i].sizes));
    check(can_cast(specs[i].dtype, out.dtype()), "{}: a result of type {} cannot be cast to {}",
          call.name(), name(specs[i].dtype), name(out.dtype()));
  }
  return specs;
}

void launch_reduce(const OpCall& call, const ReduceLaunch& what) {
  Plan plan = make_plan(what);
  if (plan.kept.numel == 0) return;
  if (plan.kept.rank() > REDUCE_RANK || plan.reduced.rank() > REDUCE_RANK)
    return reduce_copy(call, what);
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  if (plan.reduced.numel == 0) plan.form = Form::Rows;
  ReduceParams p{};
  fill_nests(p, plan);
  const Global global = gpu_style               ? divide_elements(p, plan, call.caps())
                        : is_columns(plan.form) ? divide_columns(p, plan, call.caps())
                                                : divide_rows(p, plan);
  for (size_t k = 0; k < 4; ++k) p.numbers[k] = number_bits(what.numbers[k], what.compute);

  std::vector<Scratch> partial;
  if (plan.splits > 1) {
    p.split_step = plan.kept.numel;
    for (size_t k = 4; k < 4 + static_cast<size_t>(what.formula->components); ++k) {
      int64_t step = 1;
      for (size_t i = 0; i < plan.kept.rank(); step *= plan.kept.sizes[i++])
        p.kept_strides[k][i] = step;
      partial.push_back(call.scratch(
          static_cast<uint64_t>(plan.splits * plan.kept.numel * size_of(what.compute))));
    }
  }
  Launch launch = call.launch(source_for(call, plan.form), "reduce",
                              defines_for(call, what, plan, partial.empty()));
  for (const TensorView* in : what.inputs) bind_input(launch, in, what.shape);
  for (size_t k = 0; k < 2; ++k) {
    if (k < partial.size())
      launch.memory(partial[k].address(), 0, static_cast<int64_t>(partial[k].bytes()));
    else if (partial.empty() && what.outs[k] != nullptr)
      bind(launch, *what.outs[k]);
    else
      launch.memory(0, 0, 0);
  }
  const auto local = gpu_style ? static_cast<size_t>(group_size(call.caps())) : 1;
  launch.value(p).run(global, {local, 1, 1});
  if (!partial.empty()) second_pass(call, what, plan, partial);
}

}  // namespace ocltensor::opencl
