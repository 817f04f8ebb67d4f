// Stable sort, topk, searchsorted and rows that offsets say. NaN is larger than any number, as in
// ATen.
#include <algorithm>
#include <numeric>

#include "rows.h"

namespace ocltensor::cpu {
namespace {

// The positions of a row's elements in sorted order.
template <typename T>
std::vector<int64_t> order_of(std::span<const T> row, bool descending) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto less = [](T a, T b) { return a == a && (b != b || a < b); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const T a = row[static_cast<size_t>(i)];
    const T b = row[static_cast<size_t>(j)];
    return descending ? less(b, a) : less(a, b);
  });
  return order;
}

struct Places {
  size_t first, count;
};

// Writes selected elements of each sorted row and their positions in the unsorted row.
// places(row, positions in order) selects a range of the order.
template <typename F>
void take_in_order(const CpuCall& call, int64_t dim, bool descending, View values_out,
                   View indices_out, F&& places) {
  const View self = call.args.tensor(Arg::self);
  with_compute(self.type, [&]<typename T>(T) {
    DimRows<T> rows(self, dim);
    std::vector<T> values;
    std::vector<int64_t> indices;
    for (int64_t r = 0; r < rows.count; ++r) {
      const std::span<const T> row = rows[r];
      const auto order = order_of<T>(row, descending);
      const Places taken = places(row, std::span<const int64_t>(order));
      for (const int64_t at : std::span(order).subspan(taken.first, taken.count)) {
        indices.push_back(at);
        values.push_back(row[static_cast<size_t>(at)]);
      }
    }
    write(values_out, values);
    write(indices_out, indices);
  });
}

// The first elements, as many as the outputs have.
void first_in_order(const CpuCall& call) {
  const int64_t dim = call.args.integer(Arg::dim);
  const View values = call.out(0).with_last_dim(dim);
  const Places all{0, static_cast<size_t>(values.sizes.back())};
  const Arg down = call.args.has(Arg::descending) ? Arg::descending : Arg::largest;
  take_in_order(call, dim, call.args.boolean(down), values, call.out(1).with_last_dim(dim),
                [&](auto, auto) { return all; });
}

template <typename F>
void one_in_order(const CpuCall& call, int64_t dim, F&& place) {
  take_in_order(call, dim, false, call.out(0), call.out(1), [&](auto row, auto order) {
    return Places{place(row, order), 1};
  });
}
template <typename Row>
size_t numbers_in(Row row) {
  return static_cast<size_t>(std::count_if(row.begin(), row.end(), [](auto v) { return v == v; }));
}
void kthvalue(const CpuCall& call) {
  one_in_order(call, call.args.integer(Arg::dim),
               [&](auto, auto) { return static_cast<size_t>(call.args.integer(Arg::k) - 1); });
}
void median(const CpuCall& call) {
  one_in_order(call, call.args.integer(Arg::dim), [](auto row, auto) {
    const size_t numbers = numbers_in(row);
    return numbers < row.size() ? numbers : (row.size() - 1) / 2;
  });
}
void nanmedian(const CpuCall& call) {
  one_in_order(call, call.args.integer(Arg::dim),
               [](auto row, auto) { return (std::max<size_t>(1, numbers_in(row)) - 1) / 2; });
}

// The smallest of the most frequent elements, and its last position. A NaN equals no other.
void mode(const CpuCall& call) {
  one_in_order(call, call.args.integer(Arg::dim), [](auto row, auto order) {
    const auto value = [&](size_t place) { return row[static_cast<size_t>(order[place])]; };
    size_t longest = 0, best = 0;
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      for (end = begin + 1; end < order.size() && value(end) == value(begin);) ++end;
      if (end - begin <= longest) continue;
      longest = end - begin;
      best = end - 1;
    }
    return best;
  });
}

// The position of a NaN is the end, because comparisons with it are false.
void searchsorted(const CpuCall& call) {
  const View sequence = call.args.tensor(Arg::sorted_sequence);
  const bool right = call.args.boolean(Arg::right) ||
                     (!call.args.is_none(Arg::side) && call.args.string(Arg::side) == "right");
  const bool shared = call.args.tensor(Arg::sorted_sequence).ndim() == 1;
  const auto sorter = call.args.optional_tensor(Arg::sorter);
  const std::vector<int64_t> order = sorter ? read<int64_t>(View(*sorter)) : std::vector<int64_t>();
  with_compute(sequence.type, [&]<typename T>(T) {
    const std::vector<T> sorted = read<T>(sequence);
    const std::vector<T> wanted = read<T>(View(call.args.tensor(Arg::self)));
    const auto n = static_cast<size_t>(sequence.sizes.back());
    const View out = call.out(0);
    const size_t per_row = shared ? 0 : static_cast<size_t>(out.sizes.back());
    std::vector<int64_t> places;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const size_t row = shared ? 0 : i / per_row * n;
      size_t low = 0;
      for (size_t high = n; low < high;) {
        const size_t middle = (low + high) / 2;
        const size_t place = order.empty() ? middle : static_cast<size_t>(order[row + middle]);
        const T v = sorted[row + place];
        if (right ? v > wanted[i] : v >= wanted[i])
          high = middle;
        else
          low = middle + 1;
      }
      places.push_back(static_cast<int64_t>(low));
    }
    write(out, places);
  });
}

// Offsets that do not make sense are errors, as they are for kernels.
void rows_of(const CpuCall& call) {
  const View offsets = call.args.tensor(Arg::offsets);
  const auto start = read<int64_t>(offsets);
  const int64_t count = call.args.integer(Arg::count);
  const auto n = static_cast<size_t>(offsets.sizes.back());
  const std::string& name = call.args.schema().full_name();
  std::vector<int64_t> rows;
  for (size_t at = 0; at < start.size(); at += n) {
    const std::span<const int64_t> own = std::span(start).subspan(at, n);
    for (size_t k = 0; k < n; ++k) {
      if (k > 0 && own[k] < own[k - 1])
        fail(TB_E_INDEX, "{}: offsets descend: {} follows {}", name, own[k], own[k - 1]);
      if (own[k] < 0 || own[k] > count)
        fail(TB_E_INDEX, "{}: offset {} is out of range: there are {} elements", name, own[k],
             count);
    }
    if (call.args.boolean(Arg::from_start) && own.front() != 0)
      fail(TB_E_INDEX, "{}: the offset {} at the start or end must be 0", name, own.front());
    if (call.args.boolean(Arg::to_end) && own.back() != count)
      fail(TB_E_INDEX, "{}: the offset {} at the start or end must be {}", name, own.back(), count);
    for (int64_t i = 0; i < count; ++i)
      rows.push_back(std::upper_bound(own.begin(), own.end(), i) - own.begin() - 1);
  }
  write(call.out(0), rows);
}

// A bin includes its left edge, the last bin both edges. Points outside all bins are not counted.
void histogramdd(const CpuCall& call) {
  const auto points = read<double>(View(call.args.tensor(Arg::self)));
  const auto given = call.args.optional_tensor(Arg::weight);
  const std::vector<double> weights = given ? read<double>(View(*given)) : std::vector<double>();
  std::vector<std::vector<double>> edges;
  for (const TensorView edge : call.args.whole_list(Arg::bins))
    edges.push_back(read<double>(View(edge)));
  std::vector<double> sums(static_cast<size_t>(numel(call.specs[0].sizes)));
  for (size_t i = 0; i < points.size() / edges.size(); ++i) {
    size_t place = 0;
    bool inside = true;
    for (size_t d = 0; d < edges.size(); ++d) {
      const double x = points[i * edges.size() + d];
      const auto& edge = edges[d];
      inside = inside && x >= edge.front() && x <= edge.back();
      if (!inside) break;
      const auto above = std::upper_bound(edge.begin(), edge.end(), x) - edge.begin();
      place = place * (edge.size() - 1) + std::min(static_cast<size_t>(above) - 1, edge.size() - 2);
    }
    if (inside) sums[place] += weights.empty() ? 1 : weights[i];
  }
  if (call.args.boolean(Arg::density)) {
    const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
    for (size_t i = 0; i < sums.size(); ++i) {
      double volume = 1;
      size_t rest = i;
      for (size_t d = edges.size(); d-- > 0;) {
        const size_t bins = edges[d].size() - 1, bin = rest % bins;
        volume *= edges[d][bin + 1] - edges[d][bin];
        rest /= bins;
      }
      sums[i] = sums[i] / total / volume;
    }
  }
  write(call.out(0), sums);
}

constexpr CpuOperator kOperators[] = {{"sort.values_stable", first_in_order},
                                      {"topk.values", first_in_order},
                                      {"searchsorted.Tensor_out", searchsorted},
                                      {"_ocl_rows_of.out", rows_of},
                                      {"kthvalue.values", kthvalue},
                                      {"median.dim_values", median},
                                      {"nanmedian.dim_values", nanmedian},
                                      {"mode.values", mode},
                                      {"_histogramdd_from_bin_tensors.out", histogramdd}};

}  // namespace

std::span<const CpuOperator> sort_operators() { return kOperators; }

}  // namespace ocltensor::cpu
