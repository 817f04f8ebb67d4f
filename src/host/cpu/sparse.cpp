// A matrix in compressed rows times a dense matrix.
#include <cmath>
#include <limits>

#include "complex.h"

namespace ocltensor::cpu {
namespace {

template <typename T>
void join(T& so_far, T product, std::string_view reduce, bool first) {
  if constexpr (std::is_same_v<T, double>) {
    if (reduce == "amax" || reduce == "amin") {
      const bool beyond = reduce == "amax" ? product > so_far : product < so_far;
      if (first || beyond || std::isnan(product)) so_far = product;
      return;
    }
  }
  so_far += product;
}

// `load` reads a tensor's elements, `store` writes those of the result.
template <typename T>
void multiply(const CpuCall& call, std::vector<T> (*load)(const View&),
              void (*store)(const View&, const std::vector<T>&)) {
  const View mat = call.args.tensor(Arg::mat2);
  const auto values = load(call.args.tensor(Arg::self)), factor = load(mat);
  const auto start = read<int64_t>(call.args.tensor(Arg::start)),
             index = read<int64_t>(call.args.tensor(Arg::index));
  const std::string_view reduce = call.args.string(Arg::reduce);
  const auto entries = static_cast<int64_t>(values.size()), columns = mat.sizes[1];
  check(start.front() == 0 && start.back() == entries,
        "{}: rows have the entries {} .. {}, and there are {}", call.args.schema().full_name(),
        start.front(), start.back(), entries);
  std::vector<T> result((start.size() - 1) * static_cast<size_t>(columns));
  for (size_t row = 0; row + 1 < start.size(); ++row) {
    T* const out = result.data() + row * static_cast<size_t>(columns);
    check(0 <= start[row] && start[row] <= start[row + 1] && start[row + 1] <= entries,
          "{}: the entries {} .. {} of row {} are not among {}", call.args.schema().full_name(),
          start[row], start[row + 1], row, entries);
    for (int64_t e = start[row]; e < start[row + 1]; ++e) {
      const int64_t at = index[static_cast<size_t>(e)];
      check(at >= 0 && at < mat.sizes[0], "{}: index {} is out of range for size {}",
            call.args.schema().full_name(), at, mat.sizes[0]);
      for (int64_t c = 0; c < columns; ++c)
        join(out[c], values[static_cast<size_t>(e)] * factor[static_cast<size_t>(at * columns + c)],
             reduce, e == start[row]);
    }
    if (reduce == "mean" && start[row + 1] > start[row])
      for (int64_t c = 0; c < columns; ++c) out[c] /= static_cast<T>(start[row + 1] - start[row]);
  }
  store(call.out(0), result);
}

template <typename T>
void store_real(const View& to, const std::vector<T>& from) {
  write(to, from.data());
}

void csr_mm(const CpuCall& call) {
  const DType type = call.args.tensor(Arg::self).dtype();
  if (is_complex(type)) return multiply<Number>(call, read_numbers, write_numbers);
  if (is_integral(type, true)) return multiply<int64_t>(call, read<int64_t>, store_real<int64_t>);
  multiply<double>(call, read<double>, store_real<double>);
}

constexpr CpuOperator kOperators[] = {{"_ocl_csr_mm.out", csr_mm, csr_mm}};

}  // namespace

std::span<const CpuOperator> sparse_operators() { return kOperators; }

}  // namespace ocltensor::cpu
