// kthvalue, median, nanmedian and mode along a dimension. But for mode they are selected without
// sorting, unless there are few long rows on GPUs, where a work-group has too much to go through.
#include <algorithm>

#include "call/division.h"
#include "kernel_sources.h"
#include "keys.h"
#include "ops/copy/copy.h"
#include "order_statistic_params.h"
#include "sort.h"

namespace ocltensor::opencl {
namespace {

enum class Statistic : int64_t { Place = 0, Median = 1, NanMedian = 2, Mode = 3 };

// A reduced output as one column: the dimension comes back where it was not kept.
LocalTensor as_column(TensorView out, const Dims& kept, int64_t dim) {
  if (out.sizes().size() == kept.size())
    return LocalTensor(out.address(), out.dtype(), kept, Dims(out.strides()));
  Dims strides(out.strides());
  strides.insert(static_cast<size_t>(std::min<int64_t>(dim, static_cast<int64_t>(strides.size()))),
                 1);
  return LocalTensor(out.address(), out.dtype(), kept, strides);
}

Dims with_last(int64_t rank, int64_t dim) {
  Dims order;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  return order;
}

void run(const OpCall& call, Statistic what, int64_t wanted, TensorView rows, TensorView values,
         TensorView indices) {
  OrderStatisticParams p{};
  p.length = rows.size(1);
  p.pieces = rows.size(0);
  p.wanted = wanted;
  constexpr int64_t kLong = 1 << 18;
  const bool gpu_style = !is_cpu_style(call);
  Defines d = key_defines(rows.dtype(), {});
  d.set("CPU_STYLE", !gpu_style).set("MEDIAN", static_cast<int64_t>(what));
  Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  if (gpu_style && p.length > kLong && p.pieces < call.caps().compute_units) {
    const auto count = static_cast<uint64_t>(rows.numel());
    const Scratch sorted(call.scratch(count * static_cast<uint64_t>(size_of(rows.dtype()))));
    const Scratch positions(call.scratch(count * 8));
    const LocalTensor in_order(sorted.address(), rows.dtype(), Dims(rows.sizes()));
    const LocalTensor from(positions.address(), DType::Int64, Dims(rows.sizes()));
    const TensorView view = in_order.view();
    sort_rows(call, rows, {}, &view, from);
    Launch launch = call.launch(kernel_sources::sort_order_statistic, "pick", d);
    bind(launch, values);
    bind(launch, indices);
    bind(launch, in_order);
    bind(launch, from);
    launch.value(p).run(division.global, division.local);
    return;
  }
  if (gpu_style) {
    division.local[0] = std::min<size_t>(256, call.caps().max_work_group_size);
    division.global[0] = static_cast<size_t>(p.pieces) * division.local[0];
  }
  Launch launch = call.launch(kernel_sources::sort_order_statistic, "select_one", d);
  bind(launch, values);
  bind(launch, indices);
  bind(launch, rows);
  launch.value(p).run(division.global, division.local);
}

// The most frequent element, of sorted rows.
void run_mode(const OpCall& call, TensorView rows, TensorView values, TensorView indices) {
  OrderStatisticParams p{};
  p.length = rows.size(1);
  p.pieces = rows.size(0);
  const Scratch sorted(call.scratch(static_cast<uint64_t>(rows.numel() * rows.itemsize())));
  const Scratch positions(call.scratch(static_cast<uint64_t>(rows.numel()) * 8));
  const LocalTensor in_order(sorted.address(), rows.dtype(), Dims(rows.sizes()));
  const LocalTensor from(positions.address(), DType::Int64, Dims(rows.sizes()));
  const TensorView view = in_order.view();
  sort_rows(call, rows, {}, &view, from);
  Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  if (!is_cpu_style(call)) {
    division.local[0] = std::min<size_t>(64, call.caps().max_work_group_size);
    division.global[0] = static_cast<size_t>(p.pieces) * division.local[0];
  }
  Defines d = key_defines(rows.dtype(), {});
  d.set("CPU_STYLE", is_cpu_style(call)).set("GROUP_SIZE", static_cast<int64_t>(division.local[0]));
  Launch launch = call.launch(kernel_sources::sort_order_statistic_mode, "mode", d);
  bind(launch, values);
  bind(launch, indices);
  bind(launch, in_order);
  bind(launch, from);
  launch.value(p).run(division.global, division.local);
}

// `dim_at` is the position of the dimension among the arguments.
void statistic(OpCall& call, Statistic what, size_t dim_at) {
  check_outputs(call);
  const LocalTensor self = at_least_1d(call.args().tensor(0));
  const int64_t rank = self.view().ndim(), dim = wrap_dim(call.args().integer(dim_at), rank);
  if (self.view().size(dim) > INT32_MAX)
    unsupported(TB_REASON_SIZE, "{}: rows are limited to 2^31 elements", call.name());
  const int64_t wanted = what == Statistic::Place ? call.args().integer(1) - 1 : 0;
  call.accept();
  if (!call.wants(0)) return;
  const Dims order = with_last(rank, dim);
  Dims kept(self.view().sizes());
  kept[static_cast<size_t>(dim)] = 1;
  const Contiguous dense(call, permuted(self, order));
  const LocalTensor value_column = as_column(call.out(0), kept, dim);
  const LocalTensor index_column = as_column(call.out(1), kept, dim);
  const LocalTensor value_target = permuted(value_column, order);
  const LocalTensor index_target = permuted(index_column, order);
  ContiguousOutput values(call, value_target), indices(call, index_target);
  const int64_t length = dense.view().size(-1);
  const LocalTensor rows(dense.view().address(), dense.view().dtype(),
                         Dims{dense.view().numel() / length, length});
  if (what == Statistic::Mode)
    run_mode(call, rows, values.view(), indices.view());
  else
    run(call, what, wanted, rows, values.view(), indices.view());
  values.finish();
  indices.finish();
}

void kthvalue(OpCall& call) { statistic(call, Statistic::Place, 2); }
void median(OpCall& call) { statistic(call, Statistic::Median, 1); }
void nanmedian(OpCall& call) { statistic(call, Statistic::NanMedian, 1); }
void mode(OpCall& call) { statistic(call, Statistic::Mode, 1); }

constexpr OpEntry kOperators[] = {{"kthvalue.values", kthvalue, false, true},
                                  {"median.dim_values", median, false, true},
                                  {"nanmedian.dim_values", nanmedian, false, true},
                                  {"mode.values", mode}};

}  // namespace

std::span<const OpEntry> order_statistic_operators() { return kOperators; }

}  // namespace ocltensor::opencl
