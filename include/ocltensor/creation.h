// Making tensors: of given shapes and values, of lists, of host memory.
//
// Sizes must not be negative (TB_E_INVALID). Options are a dtype, a device, both, or nothing
// (options.h); without a dtype, the element type of values or float32, without a device the
// thread's default device.
#pragma once

#include "ocltensor/tensor.h"

namespace ocltensor {

// The content is undefined.
OCLTENSOR_API Tensor empty(const Dims& sizes, const Options& options = {});
// Strides are in elements and must not be negative.
OCLTENSOR_API Tensor empty_strided(const Dims& sizes, const Dims& strides,
                                   const Options& options = {});
OCLTENSOR_API Tensor full(const Dims& sizes, Scalar value, const Options& options = {});
inline Tensor zeros(const Dims& sizes, const Options& options = {}) {
  return full(sizes, 0, options);
}
inline Tensor ones(const Dims& sizes, const Options& options = {}) {
  return full(sizes, 1, options);
}

// Of the shape, dtype and device of `t`, unless the options say otherwise.
OCLTENSOR_API Tensor empty_like(const Tensor& t, const Options& options = {});
OCLTENSOR_API Tensor full_like(const Tensor& t, Scalar value, const Options& options = {});
inline Tensor zeros_like(const Tensor& t, const Options& options = {}) {
  return full_like(t, 0, options);
}
inline Tensor ones_like(const Tensor& t, const Options& options = {}) {
  return full_like(t, 1, options);
}

// A copy of host memory that holds as many elements as the sizes say, in row-major order.
OCLTENSOR_API Tensor from_host(const void* data, const Dims& sizes, DType dtype,
                               Device device = default_device());

// A CPU tensor on memory of the caller, without a copy. `strides` are in elements; none: row-major.
// When the last tensor on the memory is gone, `deleter` is called with `data`, by any thread;
// without one the caller keeps the memory alive. TB_E_INVALID for data that is not aligned to its
// elements.
OCLTENSOR_API Tensor from_blob(void* data, const Dims& sizes, DType dtype = DType::Float32,
                               std::function<void(void*)> deleter = {}, const Dims& strides = {});

namespace detail {

// A copy of host memory of element type T, converted if the options name another dtype.
template <typename T>
Tensor copy_of(const void* data, const Dims& sizes, const Options& options) {
  const Tensor made = from_host(data, sizes, dtype_of<T>(), options.device_or_default());
  return options.dtype ? made.to(*options.dtype) : made;
}

}  // namespace detail

// A tensor with these values, converted if the options name another dtype. TB_E_INVALID unless
// their number is the product of the sizes.
template <typename T>
Tensor tensor(std::span<const T> values, const Dims& sizes, const Options& options = {}) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  check(static_cast<int64_t>(values.size()) == count,
        "tensor(): {} values do not fill a shape of {} elements", values.size(), count);
  return detail::copy_of<T>(values.data(), sizes, options);
}
template <typename T>
Tensor tensor(const std::vector<T>& values, const Dims& sizes, const Options& options = {}) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no array: use uint8_t and to()");
  return tensor(std::span<const T>(values), sizes, options);
}
template <typename T>
Tensor tensor(const std::vector<T>& values, const Options& options = {}) {
  return tensor(values, Dims{static_cast<int64_t>(values.size())}, options);
}
// A number as a tensor without dimensions.
template <typename T>
requires std::is_arithmetic_v<T> Tensor tensor(T value, const Options& options = {}) {
  return tensor(std::span<const T>(&value, 1), Dims(), options);
}

namespace detail {

// A list of lists of ... of numbers, `rank` deep, as braces give them.
template <typename T, int rank>
struct NestedList {
  using type = std::initializer_list<typename NestedList<T, rank - 1>::type>;
};
template <typename T>
struct NestedList<T, 0> {
  using type = T;
};

// Appends the values in row-major order. TB_E_INVALID unless every list of a level has the size
// that `sizes` names.
// `at`: the list's own position.
template <typename T, int rank, typename Kept>
void flatten_list(const typename NestedList<T, rank>::type& list, const int64_t* sizes, Dims& at,
                  std::vector<Kept>& values) {
  if constexpr (rank == 0) {
    values.push_back(list);
  } else {
    check(static_cast<int64_t>(list.size()) == *sizes,
          "tensor(): the list at position {} has {} entries, the first of its level {}",
          to_string(at), list.size(), *sizes);
    at.push_back(0);
    for (const auto& entry : list) {
      flatten_list<T, rank - 1>(entry, sizes + 1, at, values);
      ++at[at.size() - 1];
    }
    at.pop_back();
  }
}
template <typename T, int rank>
void measure_list(const typename NestedList<T, rank>::type& list, Dims& sizes) {
  if constexpr (rank > 0) {
    sizes.push_back(static_cast<int64_t>(list.size()));
    if (list.size() != 0)
      measure_list<T, rank - 1>(*list.begin(), sizes);
    else
      for (int r = 1; r < rank; ++r) sizes.push_back(0);
  }
}
template <typename T, int rank>
Tensor tensor_of_list(const typename NestedList<T, rank>::type& list, const Options& options) {
  using Kept = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  Dims sizes;
  measure_list<T, rank>(list, sizes);
  std::vector<Kept> values;
  Dims at;
  flatten_list<T, rank>(list, sizes.data(), at, values);
  return copy_of<T>(values.data(), sizes, options);
}

}  // namespace detail

// Lists, up to four levels deep: tensor({{1, 2}, {3, 4}}, "ocl"). All numbers have one C++ type,
// which gives the dtype.
template <typename T>
Tensor tensor(std::initializer_list<T> values, const Options& options = {}) {
  return detail::tensor_of_list<T, 1>(values, options);
}
template <typename T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> values, const Options& options = {}) {
  return detail::tensor_of_list<T, 2>(values, options);
}
template <typename T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
              const Options& options = {}) {
  return detail::tensor_of_list<T, 3>(values, options);
}
template <typename T>
Tensor tensor(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
        values,
    const Options& options = {}) {
  return detail::tensor_of_list<T, 4>(values, options);
}

}  // namespace ocltensor
