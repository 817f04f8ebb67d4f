// Gather, scatter, advanced indexing, embedding, selection by masks.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::index {

// ---- moving elements through an index (move.cpp)

enum class Move : int64_t {
  Take = 0,
  Put = 1,
  Keys = 2,
  AddKeys = 3
};  // the modes of index/move.cl

struct Indexed {
  TensorView direct;     // stepped through; its sizes are the loop nest's
  TensorView indexed;    // the memory that is pointed into (Keys, AddKeys: any tensor, unused)
  Dims base;             // what a step of the nest adds to the position in `indexed`
  TensorView index;      // int32, int64, or uint8
  Dims index_strides;    // for the nest
  int64_t size = 0;      // of the indexed dimension
  int64_t step = 1;      // its stride
  bool wrap = false;     // negative indices count from the end
  bool offsets = false;  // `index` holds offsets as Keys and AddKeys leave them
  int64_t dim = 0;       // the indexed dimension, for the error of an index outside of it
};
// An index outside of the dimension is reported (runtime/queue/faults.h), and moves nothing.
void move_indexed(const OpCall& call, const Indexed& what, Move mode);
void check_rank(const OpCall& call, int64_t rank);

// ---- combining sources into a target (accumulate.cpp)

enum class Combine { Replace, Sum, Product, Max, Min, Mean };

// sources [groups][length][block] go to blocks of a target; see accumulate_params.h.
struct Accumulation {
  TensorView target;  // row-major; types are those of Target below
  TensorView source;  // row-major; one element where one_source
  // int64: [groups][length], or [length] where shared_keys. The number of a block, or for a source
  // that goes nowhere the largest int64, whose low bits are above those of all blocks.
  TensorView keys;
  int64_t groups = 1, length = 0, block = 1;
  int64_t target_blocks = 0;  // per group where keys are relative to it; 0: keys are absolute
  bool shared_keys = false;
  bool one_source = false;
  Combine how = Combine::Sum;
  bool include_self = true;
  Scalar alpha = 1;
  // Of runs.h alone: factors of the target's type, `factors_each` in a row for the same
  // source; then `length` counts factors.
  const TensorView* factors = nullptr;
  int64_t factors_each = 1;
};
void accumulate(const OpCall& call, const Accumulation& what);

// Memory to accumulate in: the output itself, or scratch where it is not row-major in the given
// order of dimensions, or of a 16-bit float (which sums in float). Starts as a copy of `start`.
class Target {
 public:
  // `order` lists the dimensions of `out`, outermost first.
  Target(const OpCall& call, TensorView out, const Dims& order);
  TensorView view() const { return local_.view(); }       // in that order
  TensorView ordered() const { return ordered_.view(); }  // the output in that order
  void start_from(TensorView self, const Dims& order);
  void finish();

 private:
  const OpCall& call_;
  LocalTensor ordered_;
  std::vector<Scratch> memory_;
  LocalTensor local_;
};

std::span<const OpEntry> move_operators();  // move.cpp: gather, index_select, embedding
std::span<const OpEntry>
scatter_operators();  // scatter.cpp: scatter*, index_add, embedding_dense_backward
std::span<const OpEntry> advanced_operators();
const AlgorithmFamily& index_put_algorithms();  // advanced.cpp: index, index_put
const AlgorithmFamily& accumulation_algorithms();
const AlgorithmFamily& index_move_algorithms();
const AlgorithmFamily& selection_algorithms();
const AlgorithmFamily& histogram_algorithms();
extern const std::span<const OpEntry> kHistogramOperators;  // histogram.cpp
std::span<const OpEntry> select_operators();                // select.cpp: nonzero, masked_select

// The coordinates of a mask's true elements, [count][rank of the mask]; waits for the device.
struct Coordinates {
  std::vector<Scratch> memory;  // none where count is 0
  int64_t count = 0;
};
Coordinates coordinates_of(const OpCall& call, TensorView mask);

}  // namespace ocltensor::opencl::index
