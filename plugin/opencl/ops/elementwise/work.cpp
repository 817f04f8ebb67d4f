// Work division and parameters.
#include "work.h"

#include <algorithm>

#include "call/scalar_bits.h"
#include "kernels/elementwise.h"

namespace ocltensor::opencl::elementwise {

// Divides rows into about 64 pieces of work, none of which costs less than its launch.
void divide_rows(PointwiseParams& p, Work& work) {
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 4096;
  const int64_t total = p.sizes[0] * p.rows;
  const int64_t piece = std::max(kSmallest, (total + kPieces - 1) / kPieces);
  if (p.sizes[0] >= piece || p.rows == 1) {
    p.chunk = (std::min(piece, p.sizes[0]) + 15) / 16 * 16;
    p.rows_per_item = 1;
  } else {
    p.chunk = p.sizes[0];
    p.rows_per_item = std::max<int64_t>(1, piece / p.sizes[0]);
  }
  work.global[0] = (p.sizes[0] + p.chunk - 1) / p.chunk;
  work.global[1] = (p.rows + p.rows_per_item - 1) / p.rows_per_item;
}

namespace {

constexpr int64_t kShortestLine = 256;  // shorter ones are not worth a division of their own

// Whether all tensors that are contiguous along the inner dimension pass: `test` takes one, the
// type that kernels see it as, and its place in the nest. The others are repeated along it.
template <typename Test>
bool all_runs(TensorView out, const ElementwiseLaunch& what, const Nest& nest, Test test) {
  bool all = test(out, out.dtype(), size_t{0});
  for (size_t k = 0; k < what.inputs.size(); ++k) {
    const ElementwiseInput& input = what.inputs[k];
    if (input.tensor == nullptr || nest.space.strides[k + 1][0] == 0) continue;
    const DType type = input.is_condition ? DType::Bool : input.tensor->dtype();
    all = all && test(*input.tensor, type, k + 1);
  }
  return all;
}

// Whether kernels have vectors of `type`, computing in `compute`. Bools can only be loaded so.
bool has_vectors(DType type, DType compute) {
  switch (type) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::Bool: return compute == DType::Float32;
    case DType::Int16:
    case DType::Int32:
    case DType::Int64: return compute == type;
    default: return false;
  }
}

// The elements that a work-item loads and stores at once; 1: each by itself. 16 bytes of 16-bit
// types, because four such elements by a load each take more instructions than most formulas; in
// lines that are too short for a work-group, of wider types, too, as finding a line takes some
// divisions.
int64_t vector_width(TensorView out, const ElementwiseLaunch& what, const Nest& nest) {
  constexpr int64_t kBytes = 16;
  constexpr int64_t kHalves = kBytes / 2;
  const IterationSpace& space = nest.space;
  int64_t item = 1;
  const bool has = all_runs(out, what, nest, [&](TensorView, DType type, size_t) {
    item = std::max(item, size_of(type));
    return has_vectors(type, what.compute);
  });
  const bool flat = space.rank() == 1;
  const bool short_lines = !flat && space.sizes[0] < kShortestLine;
  int64_t width = has && out.dtype() != DType::Bool ? kBytes / item : 1;
  if (width < kHalves && !short_lines) return 1;
  const auto starts_at_multiples = [&](TensorView tensor, DType, size_t k) {
    const int64_t first = static_cast<int64_t>(tensor.address()) / tensor.itemsize();
    bool all = (first + nest.offsets[k]) % width == 0;
    for (size_t i = 1; i < space.rank(); ++i) all = all && space.strides[k][i] % width == 0;
    return all;
  };
  const auto fits = [&] {
    return (flat || space.sizes[0] % width == 0) && all_runs(out, what, nest, starts_at_multiples);
  };
  while (width > 1 && !fits()) width = short_lines ? width / 2 : 1;
  return width;
}

}  // namespace

// Divides the elements for GPUs. Where the whole nest or its lines are contiguous, a work-item
// takes several elements, and short lines get smaller work-groups. Otherwise a work-item takes one
// element.
void divide_elements(const Capabilities& caps, TensorView out, const ElementwiseLaunch& what,
                     const Nest& nest, const PointwiseParams& p, Defines& d, Work& work) {
  Grid& local = work.local;
  const int64_t total = p.sizes[0] * p.rows;
  bool runs = nest.space.strides[0][0] == 1;
  for (size_t k = 1; k < nest.space.strides.size(); ++k)
    runs = runs && (nest.space.strides[k][0] == 0 || nest.space.strides[k][0] == 1);
  const int64_t vector = runs ? vector_width(out, what, nest) : 1;
  const bool flat = runs && p.rank == 1;
  const bool lines = runs && p.rank > 1 && vector == 1 && p.sizes[0] >= kShortestLine;
  if (flat) d.set(define::FLAT, 1);
  if (vector > 1) d.set(define::VEC, vector);
  if (lines) d.set(define::LINES, 1);
  d.set(define::INDEX, total < (int64_t{1} << 31) ? "uint" : "ulong");
  local[0] = std::min<int64_t>(256, caps.max_work_group_size);
  while (lines && local[0] > 64 && local[0] * 4 > p.sizes[0]) local[0] /= 2;
  work.per_group = local[0] * (vector > 1 ? vector : flat || lines ? 4 : 1);
  const int64_t run = lines ? p.sizes[0] : total;
  work.global[0] = (run + work.per_group - 1) / work.per_group * local[0] * (total / run);
}

std::array<uint64_t, 8> number_bits(const ElementwiseLaunch& what) {
  std::array<uint64_t, 8> bits{};
  const DType type = real_type(what.compute);
  for (size_t k = 0; k < what.inputs.size(); ++k) bits[k] = scalar_bits(what.inputs[k].value, type);
  for (size_t k = 0; k < what.parameters.size(); ++k)
    bits[4 + k] = scalar_bits(what.parameters[k], type);
  return bits;
}

PointwiseParams params_of(const ElementwiseLaunch& what, const Nest& nest) {
  PointwiseParams p{};
  p.rank = static_cast<int32_t>(nest.space.rank());
  p.rows = 1;
  for (size_t i = 0; i < nest.space.rank(); ++i) {
    p.sizes[i] = nest.space.sizes[i];
    if (i > 0) p.rows *= p.sizes[i];
    for (size_t k = 0; k < nest.space.strides.size(); ++k)
      p.strides[k][i] = nest.space.strides[k][i];
  }
  std::ranges::copy(number_bits(what), p.numbers);
  return p;
}

ImaginaryParams imaginary_parts_of(const ElementwiseLaunch& what) {
  ImaginaryParams q{};
  const DType type = real_type(what.compute);
  for (size_t k = 0; k < what.inputs.size(); ++k)
    q.bits[k] = scalar_bits(what.inputs[k].value.imaginary(), type);
  for (size_t k = 0; k < what.parameters.size(); ++k)
    q.bits[4 + k] = scalar_bits(what.parameters[k].imaginary(), type);
  return q;
}

// The part of a tensor's memory that operand `k` of the nest accesses; 0 is the output.
MemoryRange reached(const Nest& nest, TensorView tensor, size_t k) {
  int64_t low = 0;
  int64_t high = 0;
  for (size_t i = 0; i < nest.space.rank(); ++i) {
    const int64_t reach = (nest.space.sizes[i] - 1) * nest.space.strides[k][i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t item = tensor.itemsize();
  return {tensor.address() + static_cast<uint64_t>(nest.offsets[k] * item), low * item,
          (high + 1) * item};
}
}  // namespace ocltensor::opencl::elementwise
