// sort.values_stable and topk.values. CPU drivers use a merge sort; where few entries are wanted,
// it sorts those that were selected from each piece of a row.
#include "sort.h"

#include <algorithm>

#include "call/divide_up.h"
#include "call/division.h"
#include "call/order_with_last.h"
#include "kernels/sort.h"
#include "keys.h"
#include "ops/copy/copy.h"
#include "sort_params.h"

namespace ocltensor::opencl::sort {
namespace {

int64_t entry_bytes(const Problem& p) { return size_of(p.in.dtype()) == 8 ? 16 : 8; }

class Sorter {
 public:
  // `piece`: the elements that a work-item selects from; 0: rows are sorted as a whole.
  Sorter(const OpCall& call, const Problem& problem, int64_t piece)
      : call_(call),
        in_(problem.in),
        length_(problem.length()),
        rows_(problem.rows()),
        kept_(problem.kept()),
        entry_bytes_(entry_bytes(problem)),
        piece_(piece),
        row_entries_(piece_ == 0 ? length_ : divide_up(length_, piece_) * kept_),
        entries_(room_for_entries()),
        spare_(room_for_entries()),
        defines_(key_defines(in_.dtype(), problem.order)) {}

  void sort() {
    const int64_t run_length = piece_ == 0 ? sort_chunks() : select();
    for (int64_t length = run_length; length < row_entries_; length *= 2) {
      const Scratch& from = swapped_ ? spare_ : entries_;
      const Scratch& to = swapped_ ? entries_ : spare_;
      SortParams p = pieces_of(row_entries_, segment(run_length, length));
      p.run = length;
      const Division division = cut(p);
      call_
          .launch(kernels::sort::sort_merge::merge, with_values(false),
                  {.to = to, .from = from, .p = p})
          .run(division.global, division.local);
      swapped_ = !swapped_;
    }
  }

  void unpack(const TensorView* values, TensorView indices) {
    SortParams p{};
    p.length = length_;
    p.entries = row_entries_;
    p.kept = kept_;
    p.pieces = rows_ * p.kept;
    const Division division = cut(p, 1024);
    call_
        .launch(kernels::sort::sort_merge::unpack, with_values(values != nullptr),
                {.value = values,
                 .index = indices,
                 .entry = swapped_ ? spare_ : entries_,
                 .in = in_,
                 .p = p})
        .run(division.global, division.local);
  }

 private:
  Scratch room_for_entries() const {
    return call_.scratch(static_cast<uint64_t>(rows_ * row_entries_ * entry_bytes_));
  }

  int64_t sort_chunks() {
    constexpr int64_t kChunk = 4096;
    SortParams p = pieces_of(length_, kChunk);
    const Division division = cut(p);
    call_
        .launch(kernels::sort::sort_merge::sort_chunks, with_values(false),
                {.entry = entries_, .spare = spare_, .in = in_, .p = p})
        .run(division.global, division.local);
    return kChunk;
  }

  // How many merged entries a work-item writes: a piece of one pair of runs.
  int64_t segment(int64_t first_run, int64_t run) const {
    int64_t s = first_run;
    while (s < 2 * run && s * 2 <= 4096) s *= 2;
    return s;
  }

  // Selects the first entries of each piece, in order; returns how many.
  int64_t select() {
    SortParams p = pieces_of(length_, piece_);
    p.kept = kept_;
    p.room = divide_up(std::max(2 * kept_, kept_ + 128), 16) * 16;
    const Division division = cut(p);
    const auto items = division.global[0];
    const Scratch buffers = call_.scratch(items * static_cast<uint64_t>(2 * p.room * entry_bytes_));
    call_
        .launch(kernels::sort::sort_select::select_best, defines_,
                {.entry = entries_, .spare = buffers, .in = in_, .p = p})
        .run(division.global, division.local);
    return kept_;
  }

  Defines with_values(bool values) const {
    Defines d = defines_;
    d.set(define::VALUES, values);
    return d;
  }
  // The parameters for rows of `length` elements or entries, cut into pieces of `piece`.
  SortParams pieces_of(int64_t length, int64_t piece) const {
    SortParams p{};
    p.length = length_;
    p.entries = row_entries_;
    p.piece = piece;
    p.row_pieces = divide_up(length, piece);
    p.pieces = rows_ * p.row_pieces;
    return p;
  }
  // Divides the pieces among work-items and sets p.per_item, the number that each takes.
  Division cut(SortParams& p, int64_t smallest = 1) const {
    const Division division = divide(call_.caps(), p.pieces, smallest);
    p.per_item = division.per_item;
    return division;
  }

  const OpCall& call_;
  TensorView in_;
  int64_t length_, rows_, kept_, entry_bytes_;
  int64_t piece_, row_entries_;
  Scratch entries_, spare_;
  Defines defines_;
  bool swapped_ = false;
};

void run_sorter(const OpCall& call, const Problem& p, int64_t piece) {
  Sorter sorter(call, p, piece);
  sorter.sort();
  sorter.unpack(p.values, p.indices);
}

struct Selection {
  int64_t piece;  // elements that a work-item selects from
};
Planned<Selection> plan_selection(const OpCall& call, const Problem& p) {
  constexpr int64_t kParts = 64;
  constexpr int64_t kSmallest = 4096;
  if (entry_bytes(p) != 8) return "entries of 64-bit types are sorted as a whole";
  if (p.kept() > p.length() / 2) return "more than half of a row is wanted";
  const int64_t piece =
      std::max({divide_up(p.length(), divide_up(kParts, p.rows())), 4 * p.kept(), kSmallest});
  if (p.rows() * divide_up(p.length(), piece) < call.caps().compute_units && p.length() > kSmallest)
    return "too few pieces to keep the processors busy";
  return Selection{std::min(piece, p.length())};
}
void run_selection(const OpCall& call, const Problem& p, const Selection& selection) {
  run_sorter(call, p, selection.piece);
}
void run_merge(const OpCall& call, const Problem& p) { run_sorter(call, p, 0); }

constinit const AlgorithmFor<Problem> kSelect({.id = "sort.select",
                                               .description = "each piece's first, then merged",
                                               .style = DeviceStyle::Cpu},
                                              Steps<plan_selection, run_selection>());
constinit const AlgorithmFor<Problem> kMerge({.id = "sort.merge",
                                              .description = "chunks, then merged pairwise",
                                              .style = DeviceStyle::Cpu,
                                              .last_resort = true},
                                             Steps<takes_all<Problem>, run_merge>());

struct SortTraits {
  static std::string describe(const OpCall& call, const Problem& p) {
    return fmt::format("{} {} {} of {} rows of {}", call.name(), name(p.in.dtype()), p.kept(),
                       p.rows(), p.length());
  }
};
using Algorithms = AlgorithmList<Problem, SortTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "sort", sort_operators(), {&kSelect, &kMerge, &kRadixSelect, &kRadixTile, &kRadix});
  return list;
}

LocalTensor as_rows(TensorView dense) {
  const int64_t length = dense.size(-1);
  return LocalTensor(dense.address(), dense.dtype(),
                     Dims{length == 0 ? 0 : dense.numel() / length, length});
}

void sorted(OpCall& call, bool descending) {
  check_outputs(call);
  const LocalTensor self = copy::at_least_1d(call.args().tensor(Arg::self));
  const LocalTensor values = copy::at_least_1d(call.out(0));
  const LocalTensor indices = copy::at_least_1d(call.out(1));
  const int64_t rank = self.view().ndim();
  const Dims order = order_with_last(rank, wrap_dim(call.args().integer(Arg::dim), rank));
  if (self.view().size(order.back()) > INT32_MAX)
    unsupported(TB_REASON_SIZE, "{}: rows are limited to 2^31 elements", call.name());
  call.accept();
  if (!call.wants(0)) return;
  const LocalTensor in = copy::permuted(self, order);
  const Contiguous dense(call, in);
  const LocalTensor value_target = copy::permuted(values, order);
  const LocalTensor index_target = copy::permuted(indices, order);
  ContiguousOutput value_out(call, value_target);
  ContiguousOutput index_out(call, index_target);
  const LocalTensor value_rows = as_rows(value_out.view());
  const TensorView value_view = value_rows.view();
  sort_rows(call, as_rows(dense.view()), {descending, false}, &value_view,
            as_rows(index_out.view()));
  value_out.finish();
  index_out.finish();
}

void sort(OpCall& call) { sorted(call, call.args().boolean(Arg::descending)); }
void topk(OpCall& call) { sorted(call, call.args().boolean(Arg::largest)); }

constexpr OpEntry kOperators[] = {{"sort.values_stable", sort, false, true, true},
                                  {"topk.values", topk, false, true}};

}  // namespace

void sort_rows(const OpCall& call, TensorView in, Order order, const TensorView* values,
               TensorView indices) {
  if (in.numel() == 0 || indices.numel() == 0) return;
  algorithms().run(call, {in, order, values, indices});
}

const AlgorithmFamily& sort_algorithms() { return algorithms().family(); }

std::span<const OpEntry> sort_operators() { return kOperators; }

}  // namespace ocltensor::opencl::sort
