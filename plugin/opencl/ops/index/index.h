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
  TensorView direct;     // the tensor that the loop nest walks through; its sizes are the nest's
  TensorView indexed;    // the tensor that indices point into (Keys, AddKeys: any, unused)
  Dims base;             // strides of `indexed` for the nest's dimensions
  TensorView index;      // int32, int64, or uint8
  Dims index_strides;    // for the nest's dimensions
  int64_t size = 0;      // of the indexed dimension
  int64_t step = 1;      // its stride
  bool wrap = false;     // negative indices count from the end
  bool offsets = false;  // `index` holds offsets that Keys and AddKeys made
  int64_t dim = 0;       // number of the indexed dimension, for the error text
};
// An index that is out of range is reported (runtime/queue/faults.h), and its element is not moved.
void move_indexed(const OpCall& call, const Indexed& what, Move mode);

// ---- combining sources into a target (accumulate.cpp)

enum class Combine { Replace, Sum, Product, Max, Min, Mean };

// Sources [groups][length][block] are combined into blocks of a target; see accumulate_params.h.
struct Accumulation {
  TensorView target;  // row-major; its type is that of Target below
  TensorView source;  // row-major; one element where one_source
  // int64: [groups][length], or [length] where shared_keys. Each is the number of a target block;
  // for a source that goes nowhere it is the largest int64, whose low bits are above those of all
  // blocks.
  TensorView keys;
  int64_t groups = 1, length = 0, block = 1;
  int64_t target_blocks = 0;  // per group where keys are relative to it; 0: keys are absolute
  bool shared_keys = false;
  bool one_source = false;
  Combine how = Combine::Sum;
  bool include_self = true;
  Scalar alpha = 1;
  // For runs.h only: factors of the target's type, `factors_each` consecutive ones for the same
  // source; `length` then counts factors.
  const TensorView* factors = nullptr;
  int64_t factors_each = 1;
};
void accumulate(const OpCall& call, const Accumulation& what);

// Memory to accumulate in: the output itself, or scratch memory where the output is not row-major
// in the given order of dimensions, or is of a 16-bit float type (sums are then float32).
// start_from() fills it.
class Target {
 public:
  // `order` lists the dimensions of `out`, outermost first.
  Target(const OpCall& call, TensorView out, const Dims& order);
  TensorView view() const { return local_.view(); }       // in the given order
  TensorView ordered() const { return ordered_.view(); }  // the output, in the given order
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
std::span<const OpEntry> select_operators();                // select.cpp: nonzero*, masked_select

// The coordinates of a mask's true elements, [count][rank of the mask]. Waits for the device.
struct Coordinates {
  std::vector<Scratch> memory;  // none where count is 0
  int64_t count = 0;
};
Coordinates coordinates_of(const OpCall& call, TensorView mask);

}  // namespace ocltensor::opencl::index
