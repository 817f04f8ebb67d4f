// The proof of a product kernel on the driver at hand, before its first use.
#include <algorithm>

#include "call/proof_numbers.h"
#include "product.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

constexpr int64_t kM = 141, kN = 301, kK = 200, kGap = 8;
constexpr int64_t kLineK = 200, kLineM = 144, kLineN = 304, kLineC = kN + kGap;

float at(const std::vector<float>& list, int64_t i) { return list[static_cast<size_t>(i)]; }

// A factor of integers up to `most`, whose sums are exact. `wide` (if it is not -1) are those of
// even or odd k: too long for one TF32 number, so that its second one is seen.
struct Factor {
  bool along_k;
  int64_t lines, across;  // rows (columns), and the stride from one k to the next if not along k
  std::vector<float> numbers;

  Factor(ProofNumbers& draws, bool along, int64_t count, int64_t stride, int most, int64_t wide)
      : along_k(along), lines(count), across(stride) {
    const int64_t all = along_k ? lines * kLineK : kK * across;
    numbers = draws.draw(all, most);
    if (wide < 0) return;
    const std::vector<float> large = draws.draw(all, 8191);
    for (int64_t i = 0; i < all; ++i)
      if ((along_k ? i % kLineK : i / across) % 2 == wide)
        numbers[static_cast<size_t>(i)] = at(large, i);
  }
  float operator()(int64_t line, int64_t k) const {
    return at(numbers, along_k ? line * kLineK + k : k * across + line);
  }
};

// Parts of groups, of which one is empty; what is behind the last belongs to none.
struct Groups {
  matmul::Parts parts;
  std::vector<int64_t> ends;

  explicit Groups(matmul::Parts of) : parts(of) {
    if (of == matmul::Parts::Of1) return;
    const int64_t size = of == matmul::Parts::OfM ? kM : of == matmul::Parts::OfN ? kN : kK;
    ends = {13, 13, size / 2 + 1, size - 9};
  }
  int64_t matrices() const {
    return parts == matmul::Parts::OfK ? static_cast<int64_t>(ends.size()) : 1;
  }
  // The terms of a result of matrix `z`.
  std::pair<int64_t, int64_t> terms(int64_t z, int64_t i, int64_t j) const {
    const auto g = static_cast<size_t>(z);
    if (parts == matmul::Parts::OfK) return {g == 0 ? 0 : ends[g - 1], ends[g]};
    const bool behind = (parts == matmul::Parts::OfM && i >= ends.back()) ||
                        (parts == matmul::Parts::OfN && j >= ends.back());
    return {0, behind ? 0 : kK};
  }
  matmul::GroupedProblem problem(ProofNumbers& numbers, matmul::Problem p) const {
    p.batch = static_cast<int64_t>(ends.size());
    if (parts == matmul::Parts::OfK) p.c.batch = kM * kLineC;
    const std::vector<float> list(ends.begin(), ends.end());
    return {p, parts, numbers.upload(list, DType::Int32)};
  }
};

}  // namespace

// Compares a product with the host's. The result has odd sizes and room around it that must not
// change.
std::string wrong_mma_product(const OpCall& call, const void* what) {
  MmaProduct v = *static_cast<const MmaProduct*>(what);
  v.pieces = std::min<int64_t>(v.pieces, 2);
  constexpr float kRoom = 7;
  const bool is_int8 = v.kind == MmaKind::Int8;
  const DType type = v.type();
  const DType result = is_int8 ? DType::Int32 : v.float_result ? DType::Float32 : type;
  const DType of_self = v.float_self ? DType::Float32 : type;
  const int most = is_int8 ? 127 : 1;
  const Groups groups(v.parts);
  const auto all = static_cast<size_t>(groups.matrices() * kM * kLineC);
  ProofNumbers numbers(call);
  const Factor a(numbers, v.a_along_k, kM, kLineM, most, v.kind == MmaKind::Tf32x3 ? 0 : -1);
  const Factor b(numbers, v.b_along_k, kN, kLineN, most, v.kind == MmaKind::Tf32x3 ? 1 : -1);
  const std::vector<float> s = numbers.draw(kM * kN, 1);
  matmul::Problem p{{type, type, result, of_self}, 1, kM, kN, kK, {}, {}, {}};
  p.a = {numbers.upload(a.numbers, type), 0, v.a_along_k ? kLineK : 1, v.a_along_k ? 1 : kLineM};
  p.b = {numbers.upload(b.numbers, type), 0, v.b_along_k ? 1 : kLineN, v.b_along_k ? kLineK : 1};
  p.c = {numbers.upload(std::vector<float>(all, kRoom), result), 0, kLineC, 1};
  if (v.self) p.end.add({numbers.upload(s, of_self), 0, kN, 1});
  if (v.parts != matmul::Parts::Of1)
    run_grouped_product(call, groups.problem(numbers, p), v);
  else
    v.guarded() ? run_tf32x3_product(call, p, v) : run_product(call, p, v);

  const std::vector<float> got = numbers.download(p.c.address, result, static_cast<int64_t>(all));
  for (int64_t row = 0; row < groups.matrices() * kM; ++row)
    for (int64_t j = 0; j < kLineC; ++j) {
      const int64_t i = row % kM;
      float want = kRoom;
      if (j < kN) {
        want = v.self ? at(s, i * kN + j) : 0;
        const auto [first, end] = groups.terms(row / kM, i, j);
        for (int64_t k = first; k < end; ++k) want += a(i, k) * b(j, k);
      }
      if (at(got, row * kLineC + j) != want)
        return fmt::format("element ({}, {}) is {} instead of {}", row, j,
                           at(got, row * kLineC + j), want);
    }
  return {};
}

}  // namespace ocltensor::opencl::nvidia_mma
