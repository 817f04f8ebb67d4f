// Moves elements through one index: gather, index_select, embedding, and the launch that other
// files use, too.
#include <algorithm>

#include "base/iteration.h"
#include "call/division.h"
#include "index.h"
#include "indexed_params.h"
#include "kernels/index.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::index {
namespace {

// CPU drivers: cuts rows into about 64 pieces of work, along the inner dimension where rows are
// long.
void divide_nest(IndexedParams& p, int64_t& chunks, int64_t& groups) {
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 2048;
  const int64_t piece = std::max(kSmallest, (p.sizes[0] * p.rows + kPieces - 1) / kPieces);
  p.chunk = p.sizes[0];
  p.rows_per_item = std::max<int64_t>(1, piece / p.sizes[0]);
  if (p.sizes[0] >= piece || p.rows == 1) {
    p.chunk = (std::min(piece, p.sizes[0]) + 15) / 16 * 16;
    p.rows_per_item = 1;
  }
  chunks = (p.sizes[0] + p.chunk - 1) / p.chunk;
  groups = (p.rows + p.rows_per_item - 1) / p.rows_per_item;
}

IndexedParams params_of(const Indexed& what, const IterationSpace& nest,
                        std::span<const int64_t> first) {
  IndexedParams p{};
  p.rank = static_cast<int32_t>(nest.rank());
  p.rows = 1;
  for (size_t i = 0; i < nest.rank(); ++i) {
    p.sizes[i] = nest.sizes[i];
    if (i > 0) p.rows *= p.sizes[i];
    for (size_t k = 0; k < 3; ++k) p.strides[k][i] = nest.strides[k][i];
  }
  std::ranges::copy(first, p.first);
  p.size = what.size;
  p.step = what.step;
  p.wrap = what.wrap;
  return p;
}

// How many elements 16 bytes have, if vectors of 16 bytes can be moved everywhere: lines of both
// tensors are contiguous, and one index holds for a whole line. Else 1.
int64_t vector_of(const Indexed& what, const IndexedParams& p, Move mode) {
  const int64_t n = 16 / what.direct.itemsize();
  if (n < 2 || (mode != Move::Take && mode != Move::Put) || what.offsets) return 1;
  if (p.strides[2][0] != 0 || p.strides[0][0] != 1 || p.strides[1][0] != 1) return 1;
  bool whole = p.sizes[0] % n == 0 && p.step % n == 0 && what.direct.address() % 16 == 0 &&
               what.indexed.address() % 16 == 0 && p.first[0] % n == 0 && p.first[1] % n == 0;
  for (int32_t k = 1; k < p.rank; ++k)
    whole = whole && p.strides[0][k] % n == 0 && p.strides[1][k] % n == 0;
  return whole ? n : 1;
}

void take_vectors(IndexedParams& p, int64_t n) {
  p.sizes[0] /= n;
  p.step /= n;
  for (int k = 0; k < 2; ++k) p.first[k] /= n;
  for (int32_t k = 1; k < p.rank; ++k) {
    p.strides[0][k] /= n;
    p.strides[1][k] /= n;
  }
}

// A move, after dimensions of its loop nest have been merged.
struct Movement {
  const Indexed& what;
  Move mode;
  IndexedParams p;
};
struct Work {
  Grid global{1, 1, 1}, local{1, 1, 1};
};

Defines defines_of(const Movement& m) {
  Defines d;
  d.type(define::I, m.what.index.dtype());
  d.set(define::MODE, static_cast<int64_t>(m.mode)).set(define::OFFSETS, m.what.offsets);
  return d;
}

void launch_move(const OpCall& call, const Indexed& what, const Defines& d, const IndexedParams& p,
                 const Work& work) {
  call.launch(kernels::index::move::indexed, d,
              {.direct = what.direct,
               .indexed = what.indexed,
               .index = what.index,
               .faults = call.fault(FaultKind::Index, what.dim),
               .p = p})
      .run(work.global, work.local);
}

void move_rows(const OpCall& call, const Movement& m) {
  IndexedParams p = m.p;
  Defines d = defines_of(m);
  d.type(define::A, copy::carrier_type(m.what.direct.dtype()));
  d.set(define::ROW_INDEX, p.strides[2][0] == 0)
      .set(define::UNIT, m.what.direct.itemsize() <= 8 && p.strides[0][0] == 1 &&
                             p.strides[1][0] == 1);  // there are no vectors of 16 wider ones
  Work work;
  divide_nest(p, work.global[0], work.global[1]);
  launch_move(call, m.what, d, p, work);
}

void launch_items(const OpCall& call, const Movement& m, Defines& d, const IndexedParams& p) {
  const int64_t items = p.sizes[0] * p.rows;
  const Division division = divide(call.caps(), items);
  d.set(define::INDEX, items < INT32_MAX ? "uint" : "ulong");
  launch_move(call, m.what, d, p, {division.global, division.local});
}

Planned<int64_t> plan_vectors(const OpCall&, const Movement& m) {
  const int64_t vector = vector_of(m.what, m.p, m.mode);
  if (vector == 1) return "lines do not start and end at multiples of 16 bytes";
  return vector;
}
void move_vectors(const OpCall& call, const Movement& m, const int64_t& vector) {
  IndexedParams p = m.p;
  take_vectors(p, vector);
  Defines d = defines_of(m);
  d.set(define::A, "b128");
  launch_items(call, m, d, p);
}

void move_elements(const OpCall& call, const Movement& m) {
  Defines d = defines_of(m);
  d.type(define::A, copy::carrier_type(m.what.direct.dtype()));
  launch_items(call, m, d, m.p);
}

constinit const AlgorithmFor<Movement> kRows({.id = "index_move.rows",
                                              .description = "a run of rows for each work-item",
                                              .style = DeviceStyle::Cpu,
                                              .last_resort = true},
                                             Steps<takes_all<Movement>, move_rows>());
constinit const AlgorithmFor<Movement> kVectors({.id = "index_move.vectors",
                                                 .description = "lines, by 16 bytes",
                                                 .style = DeviceStyle::Gpu},
                                                Steps<plan_vectors, move_vectors>());
constinit const AlgorithmFor<Movement> kElements({.id = "index_move.elements",
                                                  .description = "an element for each work-item",
                                                  .style = DeviceStyle::Gpu,
                                                  .last_resort = true},
                                                 Steps<takes_all<Movement>, move_elements>());

struct Traits {
  static std::string describe(const OpCall& call, const Movement& m) {
    return fmt::format("{} {} {} in lines of {}", call.name(), m.what.direct.numel(),
                       name(m.what.direct.dtype()), m.p.sizes[0]);
  }
};
using Algorithms = AlgorithmList<Movement, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("index_move", move_operators(), {&kRows, &kVectors, &kElements});  // leaked
  return list;
}

}  // namespace

const AlgorithmFamily& index_move_algorithms() { return algorithms().family(); }

void move_indexed(const OpCall& call, const Indexed& what, Move mode) {
  if (what.direct.numel() == 0) return;
  const Dims strides[] = {Dims(what.direct.strides()), what.base, what.index_strides};
  const IterationSpace nest = make_iteration(what.direct.sizes(), strides);
  for_each_part(nest, INDEXED_RANK,
                [&](const IterationSpace& part, std::span<const int64_t> first) {
                  algorithms().run(call, {what, mode, params_of(what, part, first)});
                });
}

namespace {

// The operands of gather and index_select, where numbers count as lists of one.
struct Selection {
  LocalTensor self, index, out;
  size_t dim;

  explicit Selection(const OpCall& call)
      : self(copy::at_least_1d(call.args().tensor(Arg::self))),
        index(copy::at_least_1d(call.args().tensor(Arg::index))),
        out(copy::at_least_1d(call.out(0))),
        dim(static_cast<size_t>(wrap_dim(call.args().integer(Arg::dim), self.view().ndim()))) {}
};

void gather(OpCall& call) {
  check_outputs(call);
  const auto [self, index, out, dim] = Selection(call);
  call.accept();
  if (!call.wants(0)) return;
  Dims base(self.view().strides());
  const int64_t step = base[dim];
  base[dim] = 0;
  move_indexed(call,
               {out, self, base, index, Dims(index.view().strides()), self.view().sizes()[dim],
                step, false, false, static_cast<int64_t>(dim)},
               Move::Take);
}

// out[.., i, ..] = self[.., index[i], ..] along `dim` of both.
void select_rows(OpCall& call, TensorView out, TensorView self, TensorView index, size_t dim) {
  Dims base(self.strides());
  const int64_t step = base[dim];
  base[dim] = 0;
  Dims index_strides(base.size(), 0);
  index_strides[dim] = index.strides()[0];
  move_indexed(call,
               {out, self, base, index, index_strides, self.sizes()[dim], step, false, false,
                static_cast<int64_t>(dim)},
               Move::Take);
}

void index_select(OpCall& call) {
  check_outputs(call);
  const auto [self, index, out, dim] = Selection(call);
  call.accept();
  if (!call.wants(0)) return;
  select_rows(call, out, self, index, dim);
}

void embedding(OpCall& call) {
  check_outputs(call);
  const TensorView weight = call.args().tensor(Arg::weight);
  const TensorView index = call.args().tensor(Arg::indices);
  const TensorView out = call.out(0);
  call.accept();
  if (!call.wants(0)) return;
  Dims base(out.sizes().size(), 0);
  base.back() = weight.stride(1);
  Dims index_strides(index.strides());
  index_strides.push_back(0);
  move_indexed(
      call,
      {out, weight, base, index, index_strides, weight.size(0), weight.stride(0), false, false},
      Move::Take);
}

constexpr OpEntry kOperators[] = {{"gather.out", gather, true, true, true},
                                  {"index_select.out", index_select, true, true, true},
                                  {"embedding.out", embedding, true, true, true}};

}  // namespace

std::span<const OpEntry> move_operators() { return kOperators; }

}  // namespace ocltensor::opencl::index
