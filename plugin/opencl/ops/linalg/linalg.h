// Dense linear algebra: batches of matrices, and the blocked algorithms that the operators use.
// Panels of 32 columns are factored by kernels; everything else is matrix products.
#pragma once

#include <functional>

#include "kernels/defines.h"
#include "linalg_params.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl::linalg {

constexpr int64_t kPanel = 32;  // PANEL of linalg.h

// Matrices of one shape in memory, or their complex conjugates: a view, cheap to cut into blocks.
struct Stack {
  DType dtype;
  int64_t count, rows, columns;
  matmul::Matrix at;
  bool conjugate = false;  // heeded by multiply() and the solves, for complex numbers alone

  Stack block(int64_t row, int64_t column, int64_t row_count, int64_t column_count) const;
  Stack transposed() const { return {dtype, count, columns, rows, turned(), conjugate}; }
  Stack conjugated() const {
    return {dtype, count, rows, columns, at, is_complex(dtype) != conjugate};
  }
  Stack adjoint() const { return transposed().conjugated(); }
  // The view with the orders of rows and columns reversed: an upper triangular matrix becomes a
  // lower one.
  Stack reversed() const;
  Stack rows_reversed() const;
  operator MemoryRange() const;  // NOLINT: implicit on purpose

 private:
  matmul::Matrix turned() const { return {at.address, at.batch, at.col, at.row}; }
};

// The last two dimensions swapped.
LocalTensor transposed(TensorView tensor);
// Operands and solutions as A X = B has them: themselves, or without `left`, for X A = B,
// transposed.
LocalTensor on_left(TensorView tensor, bool left);
// The dimensions before the last two.
Dims batch_of(TensorView tensor);

// Matrices in scratch memory, row by row; rows are padded to whole panels, with zeros.
class Packed {
 public:
  Packed(const OpCall& call, DType dtype, const Dims& batch, int64_t rows, int64_t columns);
  // Copies a tensor to the first rows and columns; its batch dimensions broadcast.
  void load(TensorView source);
  void set_identity();
  void store(TensorView target) const;
  void store_part(TensorView target) const;  // the first rows and columns, up to its sizes
  const Stack& stack() const { return stack_; }

 private:
  LocalTensor view(int64_t rows, int64_t columns) const;
  const OpCall& call_;
  Dims batch_;
  Scratch memory_;
  Stack stack_;
};

// A tensor as matrices for `batch` (to which its own batch dimensions broadcast): the tensor itself
// if one stride leads from each matrix to the next, else a copy.
class Operand {
 public:
  Operand(const OpCall& call, TensorView tensor, const Dims& batch);
  const Stack& stack() const { return stack_; }

 private:
  std::vector<Scratch> memory_;
  Stack stack_;
};

// The tensor itself as matrices for `batch`, if one stride leads from each to the next.
std::optional<Stack> view_of(TensorView tensor, const Dims& batch);

// Vectors (int32, or tau), contiguous and broadcast to `batch`.
class Vectors {
 public:
  Vectors(const OpCall& call, TensorView tensor, const Dims& batch);
  TensorView view() const { return local_; }

 private:
  std::vector<Scratch> memory_;
  LocalTensor local_;
};

// Adds the defines of a type of numbers: TYPE, and PART for complex ones.
inline Defines with_numbers(Defines d, DType type) {
  d.type(define::TYPE, type);
  if (is_complex(type)) d.type(define::PART, real_type(type));
  return d;
}

// A launch of a kernel whose only defines are those of its numbers.
template <typename Arguments>
Launch launch_typed(const OpCall& call, DType type, const KernelOf<Arguments>& kernel,
                    const std::type_identity_t<Arguments>& arguments) {
  return call.launch(kernel, with_numbers({}, type), arguments);
}

// ---- blocks.cpp
LinalgParams params_of(const Stack& a, const Stack& b);
// Runs with one work-item per row on CPU drivers, 32 on GPUs.
void run_rows(const OpCall& call, Launch launch, int64_t rows);
// Runs with one work-item for each of `items`.
void run_items(const OpCall& call, Launch launch, int64_t items);
// c = a b, or c -= a b
void multiply(const OpCall& call, const Stack& c, const Stack& a, const Stack& b, bool subtract);
// b = the upper triangle of a, or its lower one with a diagonal of ones.
void copy_triangle(const OpCall& call, const Stack& a, const Stack& b, bool unit_lower);
enum class Triangle : uint8_t { Lower, UnitLower, Upper, UnitUpper };
// b = t^-1 b; b is packed, t may have any strides and be conjugated.
void solve_triangle(const OpCall& call, const Stack& t, const Stack& b, Triangle kind);
// The same for a triangle of at most a panel's columns.
void solve_block(const OpCall& call, const Stack& t, const Stack& b, Triangle kind);

// ---- panels.cpp
// A kernel in both styles.
template <typename Arguments>
struct PanelKernel {
  const KernelOf<Arguments>& cpu;
  const KernelOf<Arguments>& gpu;
};
template <typename Arguments>
PanelKernel(const KernelOf<Arguments>&, const KernelOf<Arguments>&) -> PanelKernel<Arguments>;
// A panel of each matrix, and how it is cut into pieces of work.
struct PanelWork {
  const Stack& panel;
  int64_t columns = 0;  // independent columns; 0: each matrix is `pieces` of work
  int64_t pieces = 1;
};
struct PanelProblem {
  const char* function;
  const PanelWork& work;
  const Defines& defines;
  std::function<Launch(const OpCall&, DeviceStyle, const Defines&)> launch;
};
void run_panels(const OpCall& call, const PanelProblem& problem);
// Runs the kernel of the device's style.
template <typename Arguments>
void run_panels(const OpCall& call, const PanelKernel<Arguments>& kernel, const PanelWork& work,
                const Defines& defines, const std::type_identity_t<Arguments>& arguments) {
  const auto launch = [&kernel, &arguments](const OpCall& on, DeviceStyle style, const Defines& d) {
    return on.launch(style == DeviceStyle::Cpu ? kernel.cpu : kernel.gpu, d, arguments);
  };
  run_panels(call, {kernel.cpu.function, work, defines, launch});
}
const AlgorithmFamily& linalg_algorithms();

// ---- lu_operators.cpp
const AlgorithmFamily& lu_algorithms();

// ---- lu.cpp
// a = P L U in place; pivots [count, k] and info [count] are contiguous int32.
void factor_lu(const OpCall& call, const Stack& a, TensorView pivots, TensorView info, bool pivot);
// b = A^-1 b, or A^-T b, of A = P L U; lu may be conjugated.
void solve_lu(const OpCall& call, const Stack& lu, TensorView pivots, const Stack& b,
              bool transposed);

// ---- qr.cpp
// a = Q R in place: R, and the reflectors below the diagonal. tau [count, k] is contiguous.
void factor_qr(const OpCall& call, const Stack& a, const Dims& batch, TensorView tau);
// What Q is applied to: an identity needs less work, as most of its columns are still unit vectors.
enum class Right : uint8_t { Identity, Any };
// b = Q b, with Q from the k reflectors below the diagonal of a; b is packed.
void apply_q(const OpCall& call, const Stack& a, const Stack& b, const Dims& batch, TensorView tau,
             Right right);

// ---- svd.cpp
// A contiguous tensor in scratch memory.
class Numbers {
 public:
  Numbers(const OpCall& call, DType dtype, const Dims& sizes)
      : memory_(call.scratch(static_cast<uint64_t>(numel(sizes) * size_of(dtype)))),
        local_(memory_.address(), dtype, sizes) {}
  TensorView view() const { return local_; }
  operator MemoryRange() const { return local_; }  // NOLINT: implicit on purpose

 private:
  Scratch memory_;
  LocalTensor local_;
};

constexpr int64_t kSweeps = 30;  // SWEEPS of svd.h; usually ten are enough

// The largest part of an element and the length of each column, [count, columns], real numbers; NaN
// where one is NaN.
void measure_columns(const OpCall& call, const Stack& a, const Numbers& largest,
                     const Numbers& lengths);
// Rotates the rows of square, packed matrices until all are orthogonal. state [count, kSweeps],
// int32: the last number is not 0 where they are not.
void make_rows_orthogonal(const OpCall& call, const Stack& a, const Numbers& state);
// Column places[c] of b = column c of a, divided by divisors[c] (0 counts as 1); a may be
// conjugated. Or, with `back`, column c of b = column places[c] of a.
void arrange_columns(const OpCall& call, const Stack& a, const Stack& b, const Numbers& places,
                     const Numbers& divisors, bool back);

const AlgorithmFamily& svd_algorithms();

// ---- eigh.cpp
const AlgorithmFamily& eigh_algorithms();

// ---- eig.cpp
const AlgorithmFamily& eig_algorithms();
// The work-items that share a matrix of this size: one on CPU drivers, a work-group on GPUs.
int64_t team_of(const OpCall& call, int64_t n);

std::span<const OpEntry> cholesky_operators();
std::span<const OpEntry> eig_operators();
std::span<const OpEntry> eigh_operators();
std::span<const OpEntry> ldl_operators();
std::span<const OpEntry> lu_operators();
std::span<const OpEntry> qr_operators();
std::span<const OpEntry> svd_operators();

}  // namespace ocltensor::opencl::linalg
