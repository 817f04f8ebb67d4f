// What the routines' callers share: matrices between the device and memory of the host, column by
// column as LAPACK has them.
#pragma once

#include <cmath>
#include <limits>
#include <memory>

#include "host_work.h"
#include "routines.h"

namespace ocltensor::opencl::lapack {

// The strides of dense matrices that are column-major; of other tensors, row-major ones.
inline Dims column_major(const Dims& sizes) {
  Dims turned = sizes;
  std::swap(turned[sizes.size() - 1], turned[sizes.size() - 2]);
  Dims strides = contiguous_strides(turned);
  std::swap(strides[sizes.size() - 1], strides[sizes.size() - 2]);
  return strides;
}
inline LocalTensor matrices_in(const Scratch& scratch, TensorView like) {
  const Dims sizes(like.sizes());
  return LocalTensor(scratch.address(), like.dtype(), sizes, column_major(sizes));
}

// Whether the elements lie as these strides say; those of dimensions of one do not matter.
inline bool is_dense(TensorView tensor, const Dims& strides) {
  for (size_t d = 0; d < strides.size(); ++d)
    if (tensor.sizes()[d] > 1 && tensor.strides()[d] != strides[d]) return false;
  return true;
}

// to [n, m] = from [m, n] transposed; in tiles, which stay in the cache.
template <typename T>
void transpose(const T* from, int64_t m, int64_t n, T* to) {
  constexpr int64_t kTile = 16;
  for (int64_t i = 0; i < m; i += kTile)
    for (int64_t j = 0; j < n; j += kTile)
      for (int64_t k = i; k < std::min(i + kTile, m); ++k)
        for (int64_t l = j; l < std::min(j + kTile, n); ++l) to[l * m + k] = from[k * n + l];
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
constexpr const char* kLacksRoutine = "the LAPACK library lacks the routine";

// Why the host cannot take part in the call whose matrices have so many rows or columns, if so.
inline const char* host_refusal(const OpCall& call, int64_t rows) {
  if (rows > kMostRows) return "LAPACK's 32-bit sizes may overflow";
  return call.stream().is_recording() ? "a graph being recorded has no work of the host" : nullptr;
}

// Why a call of so many operations is better left to kernels, if it is.
inline const char* small(const OpCall& call, double operations) {
  // Below so many, waiting for the device costs more than LAPACK gains: where that takes commands,
  // and where the host uses the memory itself.
  constexpr double kSmall = 2e5, kSmallAtHand = 1e4;
  return operations < (call.caps().host_addresses ? kSmallAtHand : kSmall)
             ? "small: a wait for the device costs more"
             : nullptr;
}

// Memory of the host that is not initialised.
template <typename T>
std::unique_ptr<T[]> host_memory(int64_t elements) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(elements));
}

// Matrices of a tensor in the host's memory, column by column; waits for the stream's commands.
template <typename T>
std::unique_ptr<T[]> read_matrices(const OpCall& call, TensorView tensor) {
  const int64_t count = tensor.numel();
  auto values = host_memory<T>(count);
  if (is_dense(tensor, column_major(Dims(tensor.sizes())))) {
    read_bytes(call, tensor.address(), values.get(), count * sizeof(T));
  } else if (tensor.is_contiguous()) {
    auto rows = host_memory<T>(count);
    read_bytes(call, tensor.address(), rows.get(), count * sizeof(T));
    const int64_t m = tensor.size(-2), n = tensor.size(-1);
    for (int64_t i = 0; i < count; i += m * n) transpose(rows.get() + i, m, n, values.get() + i);
  } else {
    const Scratch packed = call.scratch(static_cast<uint64_t>(count * tensor.itemsize()));
    copy_tensor(call, matrices_in(packed, tensor), tensor);
    read_bytes(call, packed.address(), values.get(), count * sizeof(T));
  }
  return values;
}

// Enqueues a copy of such matrices to a tensor; they may change after it.
template <typename T>
void write_matrices(const OpCall& call, TensorView tensor, const T* values) {
  const auto bytes = static_cast<uint64_t>(tensor.numel()) * sizeof(T);
  if (is_dense(tensor, column_major(Dims(tensor.sizes()))))
    return write_bytes(call, tensor.address(), values, bytes);
  const Scratch packed = call.scratch(bytes);
  write_bytes(call, packed.address(), values, bytes);
  copy_tensor(call, tensor, matrices_in(packed, tensor));
}

// The same for a row-major tensor and numbers in its order.
template <typename T>
void write_values(const OpCall& call, TensorView tensor, const T* values) {
  write_bytes(call, tensor.address(), values, static_cast<uint64_t>(tensor.numel()) * sizeof(T));
}

}  // namespace ocltensor::opencl::lapack
