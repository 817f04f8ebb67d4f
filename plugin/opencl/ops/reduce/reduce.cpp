// The operators that are one row of a table of reductions.
#include "base/infer/common.h"
#include "call/division.h"
#include "complex.h"
#include "ops/copy/copy.h"
#include "reduction.h"

namespace ocltensor::opencl::reduce {
namespace {

// How an operator names the dimensions that it reduces.
enum class Which : uint8_t { Listed, ListedOrNone, All };
// The type of the accumulator: the input's own, the type in which the result is summed, or bool;
// `Count` counts true values.
enum class Accumulate : uint8_t { Own, Result, Truth, Count };

struct Row {
  const char* name;
  Which which;
  Accumulate accumulate;
  Reduction formula;
  bool takes_complex = false;
};

constexpr Reduction kAnyReduction{1, {{"(a != K(0)) ? K(1) : K(0)", kMaximum, "0", "x"}}};
constexpr Reduction kAllReduction{1, {{"(a != K(0)) ? K(1) : K(0)", kMinimum, "1", "x"}}};
constexpr Reduction kMax{1, {{"a", kMaximum, nullptr, "x"}}};
constexpr Reduction kMin{1, {{"a", kMinimum, nullptr, "x"}}};
constexpr Reduction kProduct{1, {{"a", "x * y", "1", "x"}}};
constexpr Reduction kSum{1, {{"a", kAdd, "0", "x"}}};

constexpr Row kRows[] = {
    {"sum.IntList_out", Which::Listed, Accumulate::Result, kSum, true},
    {"mean.out", Which::Listed, Accumulate::Result, {1, {{"a", kAdd, "0", "x / s0"}}}, true},
    {"nansum.out",
     Which::Listed,
     Accumulate::Result,
     {1, {{"(a != a) ? K(0) : a", kAdd, "0", "x"}}}},
    {"count_nonzero.dim_IntList_out", Which::Listed, Accumulate::Count, kSum, true},
    {"prod.int_out", Which::Listed, Accumulate::Result, kProduct, true},
    {"prod.out", Which::All, Accumulate::Result, kProduct, true},
    {"amax.out", Which::Listed, Accumulate::Own, kMax},
    {"amin.out", Which::Listed, Accumulate::Own, kMin},
    {"aminmax.out",
     Which::Listed,
     Accumulate::Own,
     {2, {{"a", kMinimum, nullptr, "x"}, {"a", kMaximum, nullptr, "y"}}}},
    {"max.unary_out", Which::All, Accumulate::Own, kMax},
    {"min.unary_out", Which::All, Accumulate::Own, kMin},
    {"any.out", Which::Listed, Accumulate::Truth, kAnyReduction, true},
    {"any.all_out", Which::All, Accumulate::Truth, kAnyReduction, true},
    {"any.dims_out", Which::ListedOrNone, Accumulate::Truth, kAnyReduction, true},
    {"all.out", Which::Listed, Accumulate::Truth, kAllReduction, true},
    {"all.all_out", Which::All, Accumulate::Truth, kAllReduction, true},
    {"all.dims_out", Which::ListedOrNone, Accumulate::Truth, kAllReduction, true},
};

DimMask mask_of(const OpCall& call, Which which) {
  const int64_t rank = call.args().tensor(Arg::self).ndim();
  if (which == Which::All) return infer::dim_mask({}, rank);
  if (which == Which::ListedOrNone && !call.args().is_none(Arg::dim) &&
      call.args().ints(Arg::dim).empty())
    return {};
  return infer::dim_mask(call.args().ints(Arg::dim), rank);
}

DType accumulator(Accumulate how, DType input, DType result) {
  if (how == Accumulate::Count) return DType::Int64;
  if (how != Accumulate::Result) return compute_type(input);
  return is_integral(result, true) ? DType::Int64 : compute_type(result);
}

bool is_of_truth(const Row& row) {
  return row.accumulate == Accumulate::Truth || row.accumulate == Accumulate::Count;
}

bool is_sum(const Row& row) {
  return std::string_view(row.formula.part[0].combine) == kAdd &&
         row.formula.part[0].lift == std::string_view("a");
}

// Operands that are converted to truth values first: complex numbers, and float64 on devices
// without it.
void reduce_truth(const OpCall& call, const Row& row) {
  const TensorView self = call.args().tensor(Arg::self);
  const TensorView out = call.out(0);
  const Converted flags(call, self, DType::Bool);
  const TensorView view = flags.view();
  const bool any = row.formula.part[0].combine == kMaximum || is_sum(row);
  const bool counts = row.accumulate == Accumulate::Count;
  launch_reduce(call, {counts ? &row.formula
                       : any  ? &kAnyReduction
                              : &kAllReduction,
                       counts ? DType::Int64 : DType::Bool,
                       Dims(self.sizes()),
                       mask_of(call, row.which),
                       {&view},
                       {&out}});
}

// For complex operands or results; `result` is the type that inference gives.
void reduce_complex(const OpCall& call, const Row& row, DType result) {
  const TensorView self = call.args().tensor(Arg::self);
  const TensorView out = call.out(0);
  const DimMask mask = mask_of(call, row.which);
  const bool truth = is_of_truth(row) || result == DType::Bool;
  if (is_complex(out.dtype()) != is_complex(result) || (!truth && !is_complex(result)))
    unsupported(TB_REASON_DTYPE, "{}: {} to {}", call.name(), name(self.dtype()),
                name(out.dtype()));
  call.accept();
  if (truth) return reduce_truth(call, row);
  const Converted numbers(call, self, result);
  // The mask of a tensor without dimensions has bit 0 set, which would mean the parts' dimension.
  const DimMask own = mask & first_dims(self.sizes().size());
  if (!is_sum(row)) return complex_product(call, out, numbers.view(), mask);
  const LocalTensor parts = copy::as_real(numbers.view());
  const LocalTensor sums = copy::as_real(out);
  const TensorView in_view = parts.view();
  const TensorView out_view = sums.view();
  int64_t count = 1;
  for (size_t d = 0; d < self.sizes().size(); ++d)
    if (mask[d]) count *= self.sizes()[d];
  launch_reduce(call, {&row.formula,
                       compute_type(real_type(result)),
                       Dims(in_view.sizes()),
                       own,
                       {&in_view},
                       {&out_view},
                       {count, 0, 0, 0}});
}

void reduce(OpCall& call, const Row& row) {
  const auto specs = check_outputs(call, OutputTypes::Castable);
  const TensorView self = call.args().tensor(Arg::self);
  if (is_complex(self.dtype()) || is_complex(specs[0].dtype) || is_complex(call.out(0).dtype()))
    return reduce_complex(call, row, specs[0].dtype);
  if (call.lacks(self.dtype()) || call.lacks(call.out(0).dtype())) {
    if (!is_of_truth(row)) call.need(DType::Float64);
    call.need(call.out(0).dtype());
    call.accept();
    return reduce_truth(call, row);
  }
  ReduceLaunch what{&row.formula,
                    accumulator(row.accumulate, self.dtype(), specs[0].dtype),
                    Dims(self.sizes()),
                    mask_of(call, row.which),
                    {&self},
                    {}};
  if (row.accumulate == Accumulate::Result && specs[0].dtype == DType::Bool) {
    // With dtype=bool sums and products are those of truth values, as in ATen.
    what.formula =
        std::string_view(row.formula.part[0].combine) == kAdd ? &kAnyReduction : &kAllReduction;
    what.compute = compute_type(self.dtype());
  }
  int64_t count = 1;
  for (size_t d = 0; d < what.shape.size(); ++d)
    if (what.mask[d]) count *= what.shape[d];
  what.numbers[0] = count;
  std::vector<TensorView> outs;
  for (size_t i = 0; i < specs.size(); ++i) outs.push_back(call.out(i));
  for (size_t i = 0; i < specs.size(); ++i) what.outs[i] = &outs[i];
  what.truth = row.accumulate == Accumulate::Count && self.dtype() != DType::Bool;
  call.accept();
  launch_reduce(call, what);
}

template <size_t... k>
constexpr auto entries_of_rows(std::index_sequence<k...>) {
  return std::array{OpEntry{kRows[k].name, [](OpCall& call) { reduce(call, kRows[k]); },
                            kRows[k].takes_complex, true,
                            kRows[k].accumulate != Accumulate::Own}...};
}

}  // namespace

std::span<const OpEntry> reduce_operators() {
  static const auto& entries = *new auto([] {
    std::vector<OpEntry> list;
    for (const OpEntry& entry : entries_of_rows(std::make_index_sequence<std::size(kRows)>()))
      list.push_back(entry);
    list.insert(list.end(), kSpreadOperators.begin(), kSpreadOperators.end());
    list.insert(list.end(), kArgOperators.begin(), kArgOperators.end());
    list.insert(list.end(), kHashOperators.begin(), kHashOperators.end());
    return list;
  }());
  return entries;
}

}  // namespace ocltensor::opencl::reduce
