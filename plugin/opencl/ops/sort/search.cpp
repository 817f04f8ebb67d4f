// Searches in sorted rows: searchsorted, and _ocl_rows_of, the rows that offsets say.
#include <optional>

#include "call/division.h"
#include "kernels/sort.h"
#include "sort.h"

namespace ocltensor::opencl::sort {
namespace {

struct SearchProblem {
  TensorView sequence;  // row-major, the last dimension sorted
  std::optional<TensorView> sorter;
  std::optional<TensorView> values;  // none: each element's number is searched among offsets
  TensorView out;
  bool right;
};

void run_values(const OpCall& call, const SearchProblem& p) {
  const TensorView values = *p.values;
  Defines d;
  d.type(define::A, values.dtype()).type(define::OUT, p.out.dtype());
  d.set(define::COMPARE, p.right ? ">" : ">=").set(define::SORTER, p.sorter.has_value());
  const Division division = divide(call.caps(), values.numel(), 256);
  call.launch(kernels::sort::search::search, d,
              {.sorted = p.sequence,
               .sorter = p.sorter.value_or(p.sequence),
               .value = values,
               .out = p.out,
               .count = values.numel(),
               .n = p.sequence.size(-1),
               .per_row = p.sequence.ndim() == 1 ? int64_t{0} : values.size(-1),
               .per_item = division.per_item})
      .run(division.global, division.local);
}

void run_rows(const OpCall& call, const SearchProblem& p) {
  Defines d;
  d.type(define::A, p.sequence.dtype());
  const int64_t n = p.sequence.size(-1), count = p.out.size(-1), groups = p.sequence.numel() / n;
  const Division division = divide(call.caps(), groups * (n + count), 256);
  call.launch(kernels::sort::search_rows::rows_of, d,
              {.offsets = p.sequence,
               .out = p.out,
               .faults = call.fault(FaultKind::Offset),
               .descent = call.fault(FaultKind::Descent).number,
               .end = call.fault(FaultKind::End).number,
               .groups = groups,
               .n = n,
               .count = count,
               .from_start = call.args().boolean(Arg::from_start),
               .to_end = call.args().boolean(Arg::to_end),
               .per_item = division.per_item})
      .run(division.global, division.local);
}

void run_binary(const OpCall& call, const SearchProblem& p) {
  p.values ? run_values(call, p) : run_rows(call, p);
}

constinit const AlgorithmFor<SearchProblem> kBinary({.id = "search.binary",
                                                     .description = "a binary search for each",
                                                     .last_resort = true},
                                                    Steps<takes_all<SearchProblem>, run_binary>());

struct SearchTraits {
  static std::string describe(const OpCall& call, const SearchProblem& p) {
    return fmt::format("{} {} {} in rows of {}", call.name(), name(p.sequence.dtype()),
                       p.out.numel(), p.sequence.size(-1));
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

// Offsets are looked at even where there is no element.
void rows_of(OpCall& call) {
  check_outputs(call);
  const TensorView offsets = call.args().tensor(Arg::offsets);
  call.accept();
  if (offsets.numel() == 0) return;
  ContiguousOutput out(call, call.out(0));
  const Contiguous sorted(call, offsets);
  algorithms().run(call, {sorted.view(), std::nullopt, std::nullopt, out.view(), true});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"searchsorted.Tensor_out", searchsorted},
                                  {"_ocl_rows_of.out", rows_of}};

}  // namespace

const AlgorithmFamily& search_algorithms() { return algorithms().family(); }

std::span<const OpEntry> search_operators() { return kOperators; }

}  // namespace ocltensor::opencl::sort
