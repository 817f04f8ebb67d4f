// Cases of the sparse family: matrices in compressed rows times dense ones.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) { return dtype != DType::Bool; }

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const bool large = draw.size_mode() == SizeMode::Large;
  const int64_t rows = draw.extent(large ? 400 : 40, true);
  const int64_t inner = draw.extent(large ? 300 : 40);
  const int64_t columns = draw.extent(large ? 200 : 90, true);
  const DType index_type = rng.chance(0.5) ? DType::Int32 : DType::Int64;
  // Some rows are empty, some have many entries.
  std::vector<int64_t> start{0};
  int64_t most = 1;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t count = rng.chance(0.3) ? 0 : rng.range(0, rng.chance(0.1) ? 60 : 8);
    most = std::max(most, count);
    start.push_back(start.back() + count);
  }
  HostTensor starts(index_type, {rows + 1});
  for (int64_t i = 0; i <= rows; ++i) starts.set_integer(i, start[static_cast<size_t>(i)]);
  const char* const reductions[] = {"sum", "mean", "amax", "amin"};
  const size_t reduction = is_floating(dtype) ? static_cast<size_t>(rng.range(0, 3)) : 0;
  const Domain d{-3, 3, 0, false, false};
  c.set("self", draw.tensor(dtype, {start.back()}, d));
  c.set("start", draw.place(std::move(starts)));
  c.set("index", draw.indices({start.back()}, 0, inner - 1, index_type));
  c.set("mat2", draw.tensor(dtype, {inner, columns}, d));
  c.set("reduce", std::string(reductions[reduction]));
  c.tolerance = {sum_of(static_cast<double>(most) + 1)};
  return c;
}

}  // namespace

const FamilyCases& sparse_cases() {
  static constexpr FamilyCases kCases = {"sparse", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
