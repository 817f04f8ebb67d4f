// Reductions over any set of dimensions: the input is read as rows, one per output element.
#include <bit>
#include <cmath>

#include "base/infer/common.h"
#include "call.h"
#include "special.h"

namespace ocltensor::cpu {
namespace {

// Rows of `self`: the dimensions of `mask` are the columns. Row r gives element r of the output.
template <typename T>
struct Rows {
  std::vector<T> values;
  int64_t count;
  int64_t length;
  Rows(const View& self, DimMask mask) : values(read<T>(self.with_last(mask))) {
    count = length = 1;
    for (size_t d = 0; d < self.sizes.size(); ++d) (mask[d] ? length : count) *= self.sizes[d];
  }
  std::span<const T> operator[](int64_t r) const {
    return {values.data() + r * length, static_cast<size_t>(length)};
  }
};

// out[r] = f(row r) for every output element.
template <typename T, typename F>
void reduce_rows(const View& self, DimMask mask, const View& out, F&& f) {
  const Rows<T> rows(self, mask);
  using R = decltype(f(rows[0]));
  std::vector<R> results;
  for (int64_t r = 0; r < rows.count; ++r) results.push_back(f(rows[r]));
  write(out, results);
}

DimMask all_dims(const View& self) { return infer::dim_mask({}, self.ndim()); }
DimMask mask_of(const CpuCall& call) {
  return infer::dim_mask(call.args.ints(Arg::dim), call.args.tensor(Arg::self).ndim());
}

// Sums are kept in long double: float64 results are then good to the last bit or so.
double sum_of(std::span<const double> row) {
  long double sum = 0;
  for (double v : row) sum += v;
  return static_cast<double>(sum);
}
int64_t sum_of(std::span<const int64_t> row) {
  uint64_t sum = 0;
  for (int64_t v : row) sum += static_cast<uint64_t>(v);
  return static_cast<int64_t>(sum);
}
template <typename T>
T product_of(std::span<const T> row) {
  T product = 1;
  for (T v : row) product *= v;
  return product;
}
double nansum_of(std::span<const double> row) {
  long double sum = 0;
  for (double v : row) sum += v != v ? 0 : v;
  return static_cast<double>(sum);
}
int64_t nansum_of(std::span<const int64_t> row) { return sum_of(row); }

// The first NaN, else the first extreme element.
template <typename T>
int64_t arg_extreme(std::span<const T> row, bool largest) {
  size_t best = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] != row[i]) return static_cast<int64_t>(i);
    if (largest ? row[i] > row[best] : row[i] < row[best]) best = i;
  }
  return static_cast<int64_t>(best);
}

// Operators whose result type decides the arithmetic (a dtype argument converts the input first).
template <typename F>
void in_result_type(const CpuCall& call, DimMask mask, F&& f) {
  const View self = call.args.tensor(Arg::self);
  with_compute(call.specs[0].dtype,
               [&]<typename T>(T) { reduce_rows<T>(self, mask, call.out(0), f); });
}

void sum(const CpuCall& call) {
  in_result_type(call, mask_of(call), [](auto row) { return sum_of(row); });
}
void nansum(const CpuCall& call) {
  in_result_type(call, mask_of(call), [](auto row) { return nansum_of(row); });
}
void count_nonzero(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  with_compute(self.type, [&]<typename T>(T) {
    reduce_rows<T>(self, mask_of(call), call.out(0), [](std::span<const T> row) {
      return static_cast<int64_t>(row.size()) - std::ranges::count(row, T(0));
    });
  });
}
// Elements are widened to 64 bits.
void hash_tensor(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  with_compute(self.type, [&]<typename T>(T) {
    reduce_rows<T>(self, mask_of(call), call.out(0), [](std::span<const T> row) {
      int64_t bits = 0;
      for (T v : row) bits ^= std::bit_cast<int64_t>(v);
      return bits;
    });
  });
}
void prod_dim(const CpuCall& call) {
  in_result_type(call, mask_of(call), [](auto row) { return product_of(row); });
}
void prod(const CpuCall& call) {
  in_result_type(call, all_dims(call.args.tensor(Arg::self)),
                 [](auto row) { return product_of(row); });
}
void mean(const CpuCall& call) {
  reduce_rows<double>(call.args.tensor(Arg::self), mask_of(call), call.out(0),
                      [](auto row) { return sum_of(row) / static_cast<double>(row.size()); });
}

// One extreme per row, its value in output `value_at` and its index in `index_at` (-1: not wanted).
void extreme(const CpuCall& call, DimMask mask, bool largest, int value_at, int index_at) {
  const View self = call.args.tensor(Arg::self);
  with_compute(self.type, [&]<typename T>(T) {
    const Rows<T> rows(self, mask);
    std::vector<T> values;
    std::vector<int64_t> indices;
    for (int64_t r = 0; r < rows.count; ++r) {
      indices.push_back(arg_extreme(rows[r], largest));
      values.push_back(rows[r][static_cast<size_t>(indices.back())]);
    }
    if (value_at >= 0) write(call.out(static_cast<size_t>(value_at)), values);
    if (index_at >= 0) write(call.out(static_cast<size_t>(index_at)), indices);
  });
}
void amax(const CpuCall& call) { extreme(call, mask_of(call), true, 0, -1); }
void amin(const CpuCall& call) { extreme(call, mask_of(call), false, 0, -1); }
void aminmax(const CpuCall& call) {
  extreme(call, mask_of(call), false, 0, -1);
  extreme(call, mask_of(call), true, 1, -1);
}
void argmax(const CpuCall& call) { extreme(call, mask_of(call), true, -1, 0); }
void argmin(const CpuCall& call) { extreme(call, mask_of(call), false, -1, 0); }
void max_dim(const CpuCall& call) { extreme(call, mask_of(call), true, 0, 1); }
void min_dim(const CpuCall& call) { extreme(call, mask_of(call), false, 0, 1); }
void max_all(const CpuCall& call) {
  extreme(call, all_dims(call.args.tensor(Arg::self)), true, 0, -1);
}
void min_all(const CpuCall& call) {
  extreme(call, all_dims(call.args.tensor(Arg::self)), false, 0, -1);
}

// any (wanted = true): whether an element is true; all (wanted = false): whether none is false.
void truth(const CpuCall& call, DimMask mask, bool wanted) {
  const View self = call.args.tensor(Arg::self);
  with_compute(self.type, [&]<typename T>(T) {
    reduce_rows<T>(self, mask, call.out(0), [&](std::span<const T> row) {
      bool found = false;
      for (T v : row) found |= (v != 0) == wanted;
      return static_cast<int64_t>(found == wanted);
    });
  });
}
DimMask truth_mask(const CpuCall& call) {  // an empty list reduces nothing
  return !call.args.is_none(Arg::dim) && call.args.ints(Arg::dim).empty() ? DimMask()
                                                                          : mask_of(call);
}
void any_dim(const CpuCall& call) { truth(call, truth_mask(call), true); }
void all_dim(const CpuCall& call) { truth(call, truth_mask(call), false); }
void any_all(const CpuCall& call) { truth(call, all_dims(call.args.tensor(Arg::self)), true); }
void all_all(const CpuCall& call) { truth(call, all_dims(call.args.tensor(Arg::self)), false); }

// Two passes over differences from the first element (from 0 if that is not finite), so that equal
// elements have a variance of exactly 0; the divisor is max(0, n - correction), as in ATen.
struct Moments {
  double mean, variance;
};
Moments moments(std::span<const double> row, double correction) {
  const auto n = static_cast<double>(row.size());
  const long double pivot = row.empty() || !std::isfinite(row[0]) ? 0 : row[0];
  long double sum = 0, squares = 0;
  for (double v : row) sum += v - pivot;
  const long double offset = sum / n;
  for (double v : row) squares += (v - pivot - offset) * (v - pivot - offset);
  return {static_cast<double>(pivot + offset),
          static_cast<double>(squares) / std::max(0.0, n - correction)};
}
void deviation(const CpuCall& call, bool root) {
  const auto given = call.args.optional_scalar(Arg::correction);
  const double correction = given ? given->as_double() : 1;
  reduce_rows<double>(call.args.tensor(Arg::self), mask_of(call), call.out(0),
                      [&](std::span<const double> row) {
                        const double v = moments(row, correction).variance;
                        return root ? std::sqrt(v) : v;
                      });
}
void var(const CpuCall& call) { deviation(call, false); }
void std_deviation(const CpuCall& call) { deviation(call, true); }
void var_mean(const CpuCall& call) {
  const Rows<double> rows(call.args.tensor(Arg::self), mask_of(call));
  const auto given = call.args.optional_scalar(Arg::correction);
  std::vector<double> variances, means;
  for (int64_t r = 0; r < rows.count; ++r) {
    const Moments m = moments(rows[r], given ? given->as_double() : 1);
    variances.push_back(m.variance);
    means.push_back(m.mean);
  }
  write(call.out(0), variances);
  write(call.out(1), means);
}

double norm_of(std::span<const double> row, double order) {
  if (std::isinf(order)) {
    double best = order > 0 ? 0 : kInfinity;
    for (double v : row)
      best =
          order > 0 ? special::maximum(best, std::fabs(v)) : special::minimum(best, std::fabs(v));
    return best;
  }
  long double sum = 0;
  for (double v : row) {
    const double a = std::fabs(v);
    sum += order == 0   ? (v == 0 ? 0 : 1)
           : order == 1 ? a
           : order == 2 ? static_cast<long double>(a) * a
                        : static_cast<long double>(std::pow(a, order));
  }
  const auto total = static_cast<double>(order == 2 ? std::sqrt(sum) : sum);
  return order == 0 || order == 1 || order == 2 ? total : std::pow(total, 1 / order);
}
void vector_norm(const CpuCall& call) {
  const double order = call.args.real(Arg::ord);
  reduce_rows<double>(call.args.tensor(Arg::self), mask_of(call), call.out(0),
                      [&](std::span<const double> row) { return norm_of(row, order); });
}

void logsumexp(const CpuCall& call) {
  reduce_rows<double>(call.args.tensor(Arg::self), mask_of(call), call.out(0),
                      [](std::span<const double> row) {
                        double top = -kInfinity;
                        for (double v : row) top = special::maximum(top, v);
                        if (std::isinf(top)) top = 0;
                        long double sum = 0;
                        for (double v : row) sum += std::exp(v - top);
                        return std::log(static_cast<double>(sum)) + top;
                      });
}

constexpr CpuOperator kOperators[] = {
    {"sum.IntList_out", sum},
    {"mean.out", mean},
    {"prod.int_out", prod_dim},
    {"prod.out", prod},
    {"amax.out", amax},
    {"amin.out", amin},
    {"aminmax.out", aminmax},
    {"argmax.out", argmax},
    {"argmin.out", argmin},
    {"max.dim_max", max_dim},
    {"min.dim_min", min_dim},
    {"max.unary_out", max_all},
    {"min.unary_out", min_all},
    {"any.out", any_dim},
    {"any.all_out", any_all},
    {"any.dims_out", any_dim},
    {"all.out", all_dim},
    {"all.all_out", all_all},
    {"all.dims_out", all_dim},
    {"var.correction_out", var},
    {"std.correction_out", std_deviation},
    {"var_mean.correction_out", var_mean},
    {"linalg_vector_norm.out", vector_norm},
    {"logsumexp.out", logsumexp},
    {"nansum.out", nansum},
    {"count_nonzero.dim_IntList_out", count_nonzero},
    {"hash_tensor.out", hash_tensor},
};

}  // namespace

std::span<const CpuOperator> reduce_operators() { return kOperators; }

}  // namespace ocltensor::cpu
