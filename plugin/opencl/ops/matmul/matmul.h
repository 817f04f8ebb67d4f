// Matrix products: the problem, and the ordered list of algorithms that solve it. Other
// families (convolution) state a problem and call run_matmul.
#pragma once

#include <optional>

#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/op_call.h"
#include "epilogue.h"
#include "matmul_params.h"

namespace ocltensor::opencl::matmul {

// c = a b with an end, for each matrix of the batch. Only for complex numbers: the conjugate of a
// or of b instead.
struct Problem {
  Types types;
  int64_t batch, m, n, k;
  Matrix a, b, c;
  Epilogue end{};
  bool conjugate_a = false;
  bool conjugate_b = false;

  DType type() const { return types.of_sums(); }  // of all matrices, where they are alike
  // int8, with sums of int32.
  bool is_of_bytes() const { return types.a == DType::Int8 && types.b == DType::Int8; }
};
// Whether a product of these types exists: all alike, with a float32 result of 16-bit types, of a
// floating-point factor with one of int8, or int32 sums of int8.
bool is_product_of(const Types& types);

// A product for each group, which takes its part of one dimension: of the rows, of the columns, or
// of the terms. `ends` are on the device, an int32 for each group; the host never reads them. The
// product's batch are the groups; an operand that they share, and a result in parts, has a stride
// of 0 there. Rows (columns) behind the last end become zeros.
enum class Parts : uint8_t { Of1, OfM, OfN, OfK };  // GROUPED of kernels/include/grouped.h
struct GroupedProblem {
  Problem product;
  Parts parts = Parts::Of1;
  tb_address ends = 0;

  MemoryRange memory_of_ends() const { return {ends, 0, product.batch * 4}; }
  FaultSite faults(const OpCall& call) const { return call.fault(FaultKind::PartEnd); }
  // How many tiles of a size there are at most, along the rows and the columns, and matrices.
  int64_t tiles_of_m(int64_t rows) const { return tiles(Parts::OfM, product.m, rows); }
  int64_t tiles_of_n(int64_t columns) const { return tiles(Parts::OfN, product.n, columns); }
  int64_t matrices() const { return parts == Parts::OfK ? product.batch : 1; }
  // Of a tile's point of view: a product for each group, with an even share of what is in parts.
  Problem even_share() const;

 private:
  int64_t tiles(Parts in, int64_t size, int64_t width) const {
    return parts == in ? size / width + product.batch + 1 : divide_up(size, width);
  }
};

// Runs one of the algorithms: see call/algorithms.h. To be called after call.accept().
void run_matmul(const OpCall& call, const Problem& problem);
const AlgorithmFamily& matmul_algorithms();
const AlgorithmFamily& matmul_grouped_algorithms();  // grouped.cpp

// complex.cpp: a problem of complex numbers as a real one.
void run_complex_matmul(const OpCall& call, const Problem& problem);

extern const AlgorithmFor<Problem> kSplitKCpu, kSplitKGpu;  // split_k.cpp: long sums
extern const AlgorithmFor<Problem> kSkinny, kInPlace,
    kPacked;                                         // cpu.cpp: CPU drivers
extern const AlgorithmFor<Problem> kDots, kColumns;  // skinny.cpp: GPUs
extern const AlgorithmFor<Problem> kTilesInPieces, kLargeTiles, kTinyTiles, kSmallTiles,
    kTiles;                                                   // sgemm.cpp: GPUs
extern const AlgorithmFor<Problem> kGeneralCpu, kGeneralGpu;  // general.cpp: anything
extern const AlgorithmFor<Problem> kInt8Dots;                 // int8_dots.cpp: GPUs, int8
extern const AlgorithmFor<Problem> kInt8Floats;               // int8_floats.cpp: int8
extern const AlgorithmFor<Problem> kEndApart;                 // end_apart.cpp: ends with more
extern const AlgorithmFor<GroupedProblem> kGroupedTiles;      // sgemm.cpp: GPUs
extern const AlgorithmFor<GroupedProblem> kGroupedInPlace;    // grouped_cpu.cpp: CPU drivers

// The problem in the form that algorithms expect: the columns of the result are contiguous, and a
// result of one row or column lies along them.
Problem normalised(Problem problem);

// skinny.cpp: products of up to this many rows (columns) read their other operand once, on GPUs.
int64_t most_skinny_rows(DType type);
bool skinny_beats_matrix_units(const Problem& p);

// float_parts.cpp: why a float32 product on matrix units, by parts of its numbers, would be no
// faster; or nullptr.
const char* refuse_float_parts(const Problem& p);

// Whether the rule gives the problem to a provider, which has matrix units.
bool has_units_for(const OpCall& call, const Problem& problem);

// For the algorithms: why one does not take a problem's types or end; or nullptr.
const char* refuse_other_types(const Problem& problem);  // that are not alike
const char* refuse_more(const Problem& problem);         // of an end than alpha and self
const char* refuse_non_floats(const Problem& problem);   // sums that are not of float32
// For matrix units, whose kernels index with 32 bits, by work-groups whose tiles have so many rows
// and 64 columns at least, of so many pieces of k: an end or a layout that they do not know, too.
const char* refuse_for_units(const Problem& problem, int64_t least_rows, int64_t most_pieces);

// For the algorithms: the parameters, defines and memory ranges that the kernels of a problem take.
// The range of `self` is empty where there is none.
MatmulParams matmul_params(const Problem& problem);
// B_TYPE, RESULT, and those of epilogue.h; of kernels that sum floats alone.
Defines float_defines(const Problem& problem);
// The same, A_TYPE, and those of accumulator.h.
Defines matmul_defines(const Problem& problem);
// Those alone of accumulator.h and epilogue.h, for kernels that read sums.
Defines sum_defines(const Problem& problem);
// Empty where there are none; and as the argument of a kernel that has one only if there are.
MemoryRange memory_of_scales(const Problem& problem);
std::optional<MemoryRange> given_scales(const Problem& problem);
MemoryRange memory_of_a(const Problem& problem);
MemoryRange memory_of_b(const Problem& problem);
MemoryRange memory_of_c(const Problem& problem);
MemoryRange memory_of_self(const Problem& problem);

std::span<const OpEntry> matmul_operators();
std::span<const OpEntry> matmul_grouped_operators();

}  // namespace ocltensor::opencl::matmul
