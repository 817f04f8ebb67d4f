// c10d's reductions, made of an engine's: averages, scaled sums, numbers that are rounded once.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "numbers.h"

namespace torch_ocl::distributed {

// As c10d writes it.
const char* name_of(const c10d::ReduceOp& op);

class Reduction {
 public:
  // Refuses types and operations that have no result, by name.
  Reduction(const c10d::ReduceOp& op, at::ScalarType type, int rank, int size);

  // Whether the engine of device memory does all of it.
  bool is_of(const DeviceEngine& engine) const { return engine.has(type_, formula_); }

  void allreduce(Engine& engine, Span memory, Engine::Limit limit) const;
  // The memory of other ranks than the root stays as it is.
  void reduce(Engine& engine, Span memory, int root, Engine::Limit limit) const;
  // One part a rank, each as long as the result.
  void reduce_scatter(Engine& engine, Span result, const Spans& parts, Engine::Limit limit) const;

 private:
  // The memory cut into a piece for each rank; the last ones may be shorter, or empty.
  Spans pieces_of(Span memory) const;
  // Sums this rank's piece, and has one rank or all of them collect the pieces.
  template <typename Collect>
  void by_pieces(Engine& engine, Span memory, Engine::Limit limit, Collect collect) const;
  void divide(Span memory) const;

  int rank_, size_;
  Number type_{};
  Formula formula_;
  // Whether the numbers are exchanged and combined here, as the engine would round them at every
  // rank or has no factor.
  bool exchange_ = false;
};

}  // namespace torch_ocl::distributed
