// What the drivers' callers share: dense matrices in scratch memory, column by column as LAPACK has
// them.
#pragma once

#include <cmath>
#include <limits>

#include "host_work.h"
#include "routines.h"

namespace ocltensor::opencl::lapack {

// Parts of one scratch memory, each aligned to 64 bytes.
class Layout {
 public:
  uint64_t add(int64_t elements, DType type) {
    const uint64_t at = bytes_;
    bytes_ += (static_cast<uint64_t>(elements * size_of(type)) + 63) / 64 * 64;
    return at;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

// The strides of dense matrices that are column-major; of other tensors, row-major ones.
inline Dims column_major(const Dims& sizes) {
  Dims turned = sizes;
  std::swap(turned[sizes.size() - 1], turned[sizes.size() - 2]);
  Dims strides = contiguous_strides(turned);
  std::swap(strides[sizes.size() - 1], strides[sizes.size() - 2]);
  return strides;
}
inline LocalTensor matrices_at(const Scratch& scratch, uint64_t offset, DType type,
                               const Dims& sizes) {
  return LocalTensor(scratch.address() + offset, type, sizes, column_major(sizes));
}

template <typename T>
bool is_finite(T x) {
  return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
}
template <typename T>
bool all_finite(const T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!is_finite(values[i])) return false;
  return true;
}
template <typename T>
constexpr Part<T> kNan = std::numeric_limits<Part<T>>::quiet_NaN();

// LAPACK counts in int; its workspaces have a few times n^2 elements.
constexpr int64_t kMostRows = 16384;
constexpr const char* kTooLarge = "LAPACK's 32-bit sizes may overflow";
constexpr const char* kLacksRoutine = "the LAPACK library lacks the routine";

// Below so many operations, waiting for the device costs more than LAPACK gains.
constexpr double kSmall = 2e5;
constexpr const char* kIsSmall = "small: a wait for the device costs more";

}  // namespace ocltensor::opencl::lapack
