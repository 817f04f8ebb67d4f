// searchsorted: the positions of values in sorted rows.
#include <optional>

#include "call/division.h"
#include "kernels/sort.h"
#include "sort.h"

namespace ocltensor::opencl::sort {
namespace {

struct SearchProblem {
  TensorView sequence;  // row-major, the last dimension sorted
  std::optional<TensorView> sorter;
  TensorView values, out;
  bool right;
};

void run_binary(const OpCall& call, const SearchProblem& p) {
  Defines d;
  d.type(define::A, p.values.dtype()).type(define::OUT, p.out.dtype());
  d.set(define::COMPARE, p.right ? ">" : ">=").set(define::SORTER, p.sorter.has_value());
  const Division division = divide(call.caps(), p.values.numel(), 256);
  call.launch(kernels::sort::search::search, d,
              {.sorted = p.sequence,
               .sorter = p.sorter.value_or(p.sequence),
               .value = p.values,
               .out = p.out,
               .count = p.values.numel(),
               .n = p.sequence.size(-1),
               .per_row = p.sequence.ndim() == 1 ? int64_t{0} : p.values.size(-1),
               .per_item = division.per_item})
      .run(division.global, division.local);
}

constinit const AlgorithmFor<SearchProblem> kBinary({.id = "search.binary",
                                                     .description = "a binary search for each",
                                                     .last_resort = true},
                                                    Steps<takes_all<SearchProblem>, run_binary>());

struct SearchTraits {
  static std::string describe(const OpCall& call, const SearchProblem& p) {
    return fmt::format("{} {} {} in rows of {}", call.name(), name(p.values.dtype()),
                       p.values.numel(), p.sequence.size(-1));
  }
};
using Algorithms = AlgorithmList<SearchProblem, SearchTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("search", search_operators(), {&kBinary});  // leaked
  return list;
}

void searchsorted(OpCall& call) {
  check_outputs(call);
  const TensorView sequence = call.args().tensor(Arg::sorted_sequence);
  const TensorView self = call.args().tensor(Arg::self);
  const auto sorter = call.args().optional_tensor(Arg::sorter);
  const bool right = call.args().boolean(Arg::right) ||
                     (!call.args().is_none(Arg::side) && call.args().string(Arg::side) == "right");
  call.accept();
  if (self.numel() == 0) return;
  ContiguousOutput out(call, call.out(0));
  const Contiguous values(call, self);
  const Contiguous sorted(call, sequence);
  std::optional<Contiguous> order;
  if (sorter) order.emplace(call, *sorter);
  algorithms().run(call, {sorted.view(), order ? std::optional(order->view()) : std::nullopt,
                          values.view(), out.view(), right});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"searchsorted.Tensor_out", searchsorted}};

}  // namespace

const AlgorithmFamily& search_algorithms() { return algorithms().family(); }

std::span<const OpEntry> search_operators() { return kOperators; }

}  // namespace ocltensor::opencl::sort
