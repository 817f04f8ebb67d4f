// Stable sort, topk and searchsorted. NaN is larger than any number, as in ATen.
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

// Elements of each sorted row and where they lay: places(numbers that are no NaN, length) says
// which of its order.
template <typename F>
void take_in_order(const CpuCall& call, int64_t dim, bool descending, View values_out,
                   View indices_out, F&& places) {
  const View self = call.args.tensor(0);
  with_compute(self.type, [&]<typename T>(T) {
    DimRows<T> rows(self, dim);
    std::vector<T> values;
    std::vector<int64_t> indices;
    for (int64_t r = 0; r < rows.count; ++r) {
      const std::span<T> row = rows[r];
      const auto numbers = std::count_if(row.begin(), row.end(), [](T v) { return v == v; });
      const auto order = order_of<T>(row, descending);
      const Places taken = places(numbers, rows.length);
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
  const int64_t dim = call.args.integer(2);
  const View values = call.out(0).with_last_dim(dim);
  const Places all{0, static_cast<size_t>(values.sizes.back())};
  take_in_order(call, dim, call.args.boolean(3), values, call.out(1).with_last_dim(dim),
                [&](int64_t, int64_t) { return all; });
}

template <typename F>
void one_in_order(const CpuCall& call, int64_t dim, F&& place) {
  take_in_order(call, dim, false, call.out(0), call.out(1), [&](int64_t numbers, int64_t length) {
    return Places{static_cast<size_t>(place(numbers, length)), 1};
  });
}
void kthvalue(const CpuCall& call) {
  one_in_order(call, call.args.integer(2),
               [&](int64_t, int64_t) { return call.args.integer(1) - 1; });
}
void median(const CpuCall& call) {
  one_in_order(call, call.args.integer(1), [](int64_t numbers, int64_t length) {
    return numbers < length ? numbers : (length - 1) / 2;
  });
}
void nanmedian(const CpuCall& call) {
  one_in_order(call, call.args.integer(1),
               [](int64_t numbers, int64_t) { return std::max<int64_t>(0, numbers - 1) / 2; });
}

// NaN is found after everything, and before nothing: comparisons with it are false.
void searchsorted(const CpuCall& call) {
  const View sequence = call.args.tensor(0);
  const bool right =
      call.args.boolean(3) || (!call.args.is_none(4) && call.args.string(4) == "right");
  const bool shared = call.args.tensor(0).ndim() == 1;
  const auto sorter = call.args.optional_tensor(5);
  const std::vector<int64_t> order = sorter ? read<int64_t>(View(*sorter)) : std::vector<int64_t>();
  with_compute(sequence.type, [&]<typename T>(T) {
    const std::vector<T> sorted = read<T>(sequence);
    const std::vector<T> wanted = read<T>(View(call.args.tensor(1)));
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

constexpr CpuOperator kOperators[] = {{"sort.values_stable", first_in_order},
                                      {"topk.values", first_in_order},
                                      {"searchsorted.Tensor_out", searchsorted},
                                      {"kthvalue.values", kthvalue},
                                      {"median.dim_values", median},
                                      {"nanmedian.dim_values", nanmedian}};

}  // namespace

std::span<const CpuOperator> sort_operators() { return kOperators; }

}  // namespace ocltensor::cpu
