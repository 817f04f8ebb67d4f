// kthvalue, median, nanmedian and mode along a dimension. All but mode select without sorting,
// unless a GPU has few long rows, each of which would be too much for one work-group.
#include <algorithm>

#include "call/division.h"
#include "call/order_with_last.h"
#include "kernels/sort.h"
#include "keys.h"
#include "ops/copy/copy.h"
#include "order_statistic_params.h"
#include "sort.h"

namespace ocltensor::opencl::sort {
namespace {

enum class Statistic : int64_t { Place = 0, Median = 1, NanMedian = 2, Mode = 3 };

// A reduced output as one column, with the reduced dimension inserted (size 1) if it was not kept.
LocalTensor as_column(TensorView out, const Dims& kept, int64_t dim) {
  if (out.sizes().size() == kept.size())
    return LocalTensor(out.address(), out.dtype(), kept, Dims(out.strides()));
  Dims strides(out.strides());
  strides.insert(static_cast<size_t>(std::min<int64_t>(dim, static_cast<int64_t>(strides.size()))),
                 1);
  return LocalTensor(out.address(), out.dtype(), kept, strides);
}

// Row-major [rows, length], and columns for the results.
struct StatisticProblem {
  Statistic what;
  int64_t wanted;
  TensorView rows, values, indices;

  OrderStatisticParams params(int64_t per_item) const {
    OrderStatisticParams p{};
    p.length = rows.size(1);
    p.pieces = rows.size(0);
    p.wanted = wanted;
    p.per_item = per_item;
    return p;
  }
};
using StatisticAlgorithm = AlgorithmFor<StatisticProblem>;

Defines defines_for(const StatisticProblem& p) {
  return key_defines(p.rows.dtype(), {}).set(define::MEDIAN, static_cast<int64_t>(p.what));
}

const char* refuse_sorting(const OpCall& call, const StatisticProblem& p) {
  constexpr int64_t kLong = 1 << 18;
  if (p.rows.size(1) <= kLong) return "rows are short enough to go through digit by digit";
  return p.rows.size(0) < call.caps().compute_units ? nullptr
                                                    : "there are rows enough for all processors";
}
void run_sorted(const OpCall& call, const StatisticProblem& p) {
  const auto count = static_cast<uint64_t>(p.rows.numel());
  const Scratch sorted(call.scratch(count * static_cast<uint64_t>(p.rows.itemsize())));
  const Scratch positions(call.scratch(count * 8));
  const LocalTensor in_order(sorted.address(), p.rows.dtype(), Dims(p.rows.sizes()));
  const LocalTensor from(positions.address(), DType::Int64, Dims(p.rows.sizes()));
  const TensorView view = in_order.view();
  sort_rows(call, p.rows, {}, &view, from);
  const Division division = divide(call.caps(), p.rows.size(0));
  call.launch(kernels::sort::order_statistic::pick, defines_for(p),
              {.value = p.values,
               .index = p.indices,
               .in = in_order,
               .position = from,
               .p = p.params(division.per_item)})
      .run(division.global, division.local);
}

void run_selection(const OpCall& call, const StatisticProblem& p) {
  const auto group = std::min<int64_t>(256, call.caps().max_work_group_size);
  const Division items = divide(call.caps(), p.rows.size(0));
  const Division groups{{p.rows.size(0) * group, 1, 1}, {group, 1, 1}};
  const Division division = by_style(call, items, groups);
  Defines d = defines_for(p);
  d.set(define::GROUP_SIZE, division.local[0]);
  call.launch(
          kernels::sort::order_statistic::select_one, d,
          {.value = p.values, .index = p.indices, .in = p.rows, .p = p.params(division.per_item)})
      .run(division.global, division.local);
}

constinit const StatisticAlgorithm kSorted({.id = "order_statistic.sorted",
                                            .description = "sorts, then picks",
                                            .style = DeviceStyle::Gpu},
                                           Steps<refuse_sorting, run_sorted>());
constinit const StatisticAlgorithm kSelected({.id = "order_statistic.selected",
                                              .description = "digit by digit, without sorting",
                                              .last_resort = true},
                                             Steps<takes_all<StatisticProblem>, run_selection>());

struct StatisticTraits {
  static std::string describe(const OpCall& call, const StatisticProblem& p) {
    return fmt::format("{} {} {} rows of {}", call.name(), name(p.rows.dtype()), p.rows.size(0),
                       p.rows.size(1));
  }
};
using Algorithms = AlgorithmList<StatisticProblem, StatisticTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "order_statistic", order_statistic_operators(), {&kSorted, &kSelected});
  return list;
}

// Finds the most frequent element of sorted rows.
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
  const auto group = std::min<int64_t>(64, call.caps().max_work_group_size);
  division = by_style(call, division, {{p.pieces * group, 1, 1}, {group, 1, 1}});
  Defines d = key_defines(rows.dtype(), {});
  d.set(define::GROUP_SIZE, division.local[0]);
  call.launch(kernels::sort::order_statistic_mode::mode, d,
              {.value = values, .index = indices, .in = in_order, .position = from, .p = p})
      .run(division.global, division.local);
}

void statistic(OpCall& call, Statistic what) {
  check_outputs(call);
  const LocalTensor self = copy::at_least_1d(call.args().tensor(Arg::self));
  const int64_t rank = self.view().ndim(), dim = wrap_dim(call.args().integer(Arg::dim), rank);
  if (self.view().size(dim) > INT32_MAX)
    unsupported(TB_REASON_SIZE, "{}: rows are limited to 2^31 elements", call.name());
  const int64_t wanted = what == Statistic::Place ? call.args().integer(Arg::k) - 1 : 0;
  call.accept();
  if (!call.wants(0)) return;
  const Dims order = order_with_last(rank, dim);
  Dims kept(self.view().sizes());
  kept[static_cast<size_t>(dim)] = 1;
  const Contiguous dense(call, copy::permuted(self, order));
  const LocalTensor value_column = as_column(call.out(0), kept, dim);
  const LocalTensor index_column = as_column(call.out(1), kept, dim);
  const LocalTensor value_target = copy::permuted(value_column, order);
  const LocalTensor index_target = copy::permuted(index_column, order);
  ContiguousOutput values(call, value_target), indices(call, index_target);
  const int64_t length = dense.view().size(-1);
  const LocalTensor rows(dense.view().address(), dense.view().dtype(),
                         Dims{dense.view().numel() / length, length});
  if (what == Statistic::Mode)
    run_mode(call, rows, values.view(), indices.view());
  else
    algorithms().run(call, {what, wanted, rows, values.view(), indices.view()});
  values.finish();
  indices.finish();
}

void kthvalue(OpCall& call) { statistic(call, Statistic::Place); }
void median(OpCall& call) { statistic(call, Statistic::Median); }
void nanmedian(OpCall& call) { statistic(call, Statistic::NanMedian); }
void mode(OpCall& call) { statistic(call, Statistic::Mode); }

constexpr OpEntry kOperators[] = {{"kthvalue.values", kthvalue, false, true},
                                  {"median.dim_values", median, false, true},
                                  {"nanmedian.dim_values", nanmedian, false, true},
                                  {"mode.values", mode}};

}  // namespace

const AlgorithmFamily& order_statistic_algorithms() { return algorithms().family(); }

std::span<const OpEntry> order_statistic_operators() { return kOperators; }

}  // namespace ocltensor::opencl::sort
