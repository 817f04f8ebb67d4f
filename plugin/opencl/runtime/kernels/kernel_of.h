// The C++ types of kernels' arguments. generate_launches.py writes a structure of them for each
// kernel; none has a default value, so that a missing argument does not compile.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "runtime/kernels/launch.h"
#include "runtime/program/source.h"

namespace ocltensor::opencl {

// A kernel with the type `A` of its arguments, whose bind(Launch&) sets them.
template <typename A>
struct KernelOf {
  const Source& source;
  const char* function;
};

// A number of exactly this type, or of an integer type all of whose values it can represent.
template <typename T>
struct Number {
  template <typename U>
  requires std::same_as<T, U> || std::same_as<U, bool> ||
      (std::integral<T>&& std::integral<U> &&
       (std::is_signed_v<T> == std::is_signed_v<U>
            ? sizeof(U) <= sizeof(T)
            : std::is_signed_v<T> && sizeof(U) < sizeof(T))) constexpr Number(U v)
      : value(static_cast<T>(v)) {}  // NOLINT: implicit on purpose
  T value;
};

// A `__local` array.
struct LocalBytes {
  explicit constexpr LocalBytes(size_t size) : bytes(size) {}
  size_t bytes;
};

// An argument that a kernel has only if a define says so; std::nullopt if it does not.
template <typename T>
class Optional {
 public:
  constexpr Optional(std::nullopt_t) {}                          // NOLINT: implicit on purpose
  constexpr Optional(std::optional<T> value) : value_(value) {}  // NOLINT: implicit on purpose
  template <typename U>
  requires std::convertible_to<U, T>
  constexpr Optional(U value) : value_(T(value)) {}  // NOLINT: implicit on purpose
  bool is_given() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
};

}  // namespace ocltensor::opencl
