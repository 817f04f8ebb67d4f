// What generators of cases draw from: random shapes, layouts, values and special values.
#pragma once

#include <optional>

#include "case.h"
#include "rng.h"

namespace ocltensor::testing {

// Values of a tensor: reals uniform in [low, high], rounded to multiples of `grid` when it is not
// 0; integers uniform in the same range where the type can hold it.
struct Domain {
  double low = -4;
  double high = 4;
  double grid = 0;
  bool specials = false;  // also NaN, infinities, -0.0, denormals
  bool extremes = false;  // also the largest and smallest integers
  bool infinite = true;   // infinities are among the special values
  bool tiny = true;       // zeros, denormals and the smallest normal number are, too
  bool denormals = true;  // of `tiny`, those that are not zero
};

enum class LayoutMode : uint8_t { Contiguous, Strided, Any };
enum class SizeMode : uint8_t {
  Small,   // up to a few hundred elements
  Edge,    // ranks 0, 6 and to 20, sizes 0, 1 and around vector widths
  Medium,  // to about 5000 elements
  Large,   // to about 300,000
};

class Draw {
 public:
  Draw(uint64_t seed, LayoutMode layout, SizeMode size, bool specials)
      : rng(seed), specials(specials), layout_(layout), size_(size) {}

  Rng rng;
  bool specials;  // special values are wanted in this case
  SizeMode size_mode() const { return size_; }

  // A random shape of the mode, with at least `min_rank` dimensions. A `max_rank` of 5 and more
  // limits most of them, but now and then there are up to 20.
  Dims shape(int64_t min_rank = 0, int64_t max_rank = 6);
  // A size in [1, limit], often near a multiple of a vector width; 0 only in Edge mode and where
  // `may_be_zero`.
  int64_t extent(int64_t limit, bool may_be_zero = false);
  // A shape that broadcasts to `shape`: leading dimensions dropped, others set to 1.
  Dims broadcastable(const Dims& shape);

  HostTensor values(DType dtype, const Dims& sizes, Domain domain);
  // A tensor with random values in a random layout of the mode (expanded ones included).
  TensorPtr tensor(DType dtype, const Dims& sizes, Domain domain = {});
  // Given values in a random layout of the mode.
  TensorPtr place(HostTensor value);
  TensorPtr contiguous(HostTensor value);
  // Integers in [low, high] of an index type.
  TensorPtr indices(const Dims& sizes, int64_t low, int64_t high, DType dtype = DType::Int64);
  // A layout without overlap for an output.
  Layout output_layout(const Dims& sizes);

 private:
  bool strided();
  Dims many_axes();
  Layout layout(const Dims& sizes);
  void scatter_specials(HostTensor& t, const Domain& domain);
  LayoutMode layout_;
  SizeMode size_;
};

}  // namespace ocltensor::testing
