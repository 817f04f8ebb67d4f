// A contiguous tensor in host memory whose elements are read and written as double or int64.
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

#include "ocltensor/dims.h"
#include "ocltensor/dtype.h"

namespace ocltensor::testing {

struct HostTensor {
  HostTensor() = default;
  HostTensor(DType type, const Dims& shape)
      : dtype(type),
        sizes(shape),
        bytes(static_cast<size_t>(ocltensor::numel(shape) * size_of(type))) {}

  DType dtype = DType::Float32;
  Dims sizes;
  std::vector<std::byte> bytes;

  int64_t numel() const { return ocltensor::numel(sizes); }
  const std::byte* element(int64_t i) const { return bytes.data() + i * size_of(dtype); }
  std::byte* element(int64_t i) { return bytes.data() + i * size_of(dtype); }
  // Integers beyond 2^53 lose digits as real numbers: use integer() for them.
  double real(int64_t i) const;
  int64_t integer(int64_t i) const;
  std::complex<double> complex(int64_t i) const;  // of a complex type
  double magnitude(int64_t i) const;              // |x| of any type
  void set(int64_t i, double value);
  void set_integer(int64_t i, int64_t value);
  void set_complex(int64_t i, std::complex<double> value);
  // Rounds to nearest even; floating to integral truncates.
  HostTensor to(DType type) const;
  // Element by element |x|; unsigned and bool stay, complex numbers become float64.
  HostTensor absolute() const;
};

// The nearest value of a floating type, as a double (overflow gives infinity).
double round_to(DType type, double value);
double largest_finite(DType type);
double smallest_normal(DType type);
double smallest_denormal(DType type);
int64_t lowest_integer(DType type);
int64_t highest_integer(DType type);

}  // namespace ocltensor::testing
