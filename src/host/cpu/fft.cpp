// Fourier transforms on the CPU backend: by the definition, in double, one dimension after the
// other.
#include <cmath>
#include <numbers>

#include "complex.h"

namespace ocltensor::cpu {
namespace {

using Numbers = std::vector<Number>;

// Row-major numbers of a shape.
struct Grid {
  Dims sizes;
  Numbers values;
};

Dims wrapped(const CpuCall& call) {
  Dims dims;
  for (const int64_t d : call.args.ints(Arg::dim))
    dims.push_back(wrap_dim(d, call.args.tensor(Arg::self).ndim()));
  return dims;
}

// A dimension with other numbers: row(before, after) fills `length` of them.
template <typename F>
Grid along(const Grid& in, int64_t dim, int64_t length, F&& row) {
  Grid out = in;
  const auto at = static_cast<size_t>(dim);
  const int64_t n = in.sizes[at];
  out.sizes[at] = length;
  out.values.assign(static_cast<size_t>(numel(out.sizes)), 0);
  int64_t inner = 1;
  for (size_t d = at + 1; d < in.sizes.size(); ++d) inner *= in.sizes[d];
  Numbers before(static_cast<size_t>(n)), after(static_cast<size_t>(length));
  for (int64_t o = 0; o < numel(in.sizes) / (n * inner); ++o)
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t k = 0; k < n; ++k)
        before[static_cast<size_t>(k)] = in.values[static_cast<size_t>((o * n + k) * inner + i)];
      row(before, after);
      for (int64_t k = 0; k < length; ++k)
        out.values[static_cast<size_t>((o * length + k) * inner + i)] =
            after[static_cast<size_t>(k)];
    }
  return out;
}

Grid transformed(const Grid& in, int64_t dim, bool forward) {
  const auto n = static_cast<size_t>(in.sizes[static_cast<size_t>(dim)]);
  Numbers roots;
  for (size_t k = 0; k < n; ++k)
    roots.push_back(std::polar(1.0, (forward ? -2 : 2) * std::numbers::pi * static_cast<double>(k) /
                                        static_cast<double>(n)));
  return along(in, dim, static_cast<int64_t>(n), [&](const Numbers& x, Numbers& y) {
    for (size_t k = 0; k < n; ++k) {
      y[k] = 0;
      for (size_t j = 0; j < n; ++j) y[k] += x[j] * roots[j * k % n];
    }
  });
}

void finish(const CpuCall& call, Grid grid, double points) {
  const int64_t normalization = call.args.integer(Arg::normalization);
  const double scale = normalization == 0   ? 1
                       : normalization == 1 ? 1 / std::sqrt(points)
                                            : 1 / points;
  for (Number& n : grid.values) n *= scale;
  write_numbers(call.out(0), grid.values);
}

double points_of(const Grid& grid, const Dims& dims) {
  double points = 1;
  for (const int64_t d : dims) points *= static_cast<double>(grid.sizes[static_cast<size_t>(d)]);
  return points;
}

Grid read_grid(const CpuCall& call) {
  return {Dims(call.args.tensor(Arg::self).sizes()),
          read_numbers(View(call.args.tensor(Arg::self)))};
}

void complex_to_complex(const CpuCall& call) {
  Grid grid = read_grid(call);
  if (grid.values.empty()) return;
  for (const int64_t d : wrapped(call))
    grid = transformed(grid, d, call.args.boolean(Arg::forward));
  const double points = points_of(grid, wrapped(call));
  finish(call, std::move(grid), points);
}

void real_to_complex(const CpuCall& call) {
  Grid grid = read_grid(call);
  if (grid.values.empty()) return;
  const Dims dims = wrapped(call);
  const double points = points_of(grid, dims);
  for (const int64_t d : dims) grid = transformed(grid, d, true);
  const int64_t kept = call.specs[0].sizes[static_cast<size_t>(dims.back())];
  finish(call,
         along(grid, dims.back(), kept,
               [](const Numbers& x, Numbers& y) { std::copy_n(x.begin(), y.size(), y.begin()); }),
         points);
}

// The omitted half of the spectrum mirrors the given one; imaginary parts of the results are 0.
void complex_to_real(const CpuCall& call) {
  Grid grid = read_grid(call);
  if (grid.values.empty()) return;
  const Dims dims = wrapped(call);
  const int64_t last = dims.back();
  for (const int64_t d : dims)
    if (d != last) grid = transformed(grid, d, false);
  grid = along(grid, last, call.args.integer(Arg::last_dim_size), [](const Numbers& x, Numbers& y) {
    for (size_t k = 0; k < y.size(); ++k) y[k] = k < x.size() ? x[k] : std::conj(x[y.size() - k]);
    y[0].imag(0);
    if (y.size() % 2 == 0) y[y.size() / 2].imag(0);
  });
  const double points = points_of(grid, dims);
  finish(call, transformed(grid, last, false), points);
}

constexpr CpuOperator kOperators[] = {{"_fft_c2c.out", complex_to_complex, complex_to_complex},
                                      {"_fft_r2c.out", real_to_complex, real_to_complex},
                                      {"_fft_c2r.out", complex_to_real, complex_to_real}};

}  // namespace

std::span<const CpuOperator> fft_operators() { return kOperators; }

}  // namespace ocltensor::cpu
