// The proof of a product kernel on the driver at hand, before its first use.
#include <algorithm>

#include "call/proof_numbers.h"
#include "product.h"

namespace ocltensor::opencl::nvidia_hopper {

// Compares a product of small integers, whose sums are exact in every kind, with the host's. The
// result has odd sizes and room around it that must not change; aligned ones are as odd as they may
// be.
std::string wrong_hopper_product(const OpCall& call, const void* what) {
  HopperProduct v = *static_cast<const HopperProduct*>(what);
  v.pieces = std::min<int64_t>(v.pieces, 2);
  constexpr int64_t kM = 141, kK = 200, kLineK = 200, kLineM = 144, kLineN = 304;
  const int64_t n = v.aligned ? 302 : 301, line_c = v.aligned ? 312 : 309;
  constexpr float kRoom = 7;
  constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float32};
  const DType type = kTypes[static_cast<int>(v.kind)];
  ProofNumbers numbers(call);
  const std::vector<float> a = numbers.draw(v.a_along_k ? kM * kLineK : kK * kLineM, 1);
  const std::vector<float> b = numbers.draw(v.b_along_k ? n * kLineK : kK * kLineN, 1);
  const std::vector<float> s = numbers.draw(kM * n, 1);
  matmul::Problem p{type, 1, kM, n, kK, {}, {}, {}};
  p.a = {numbers.upload(a, type), 0, v.a_along_k ? kLineK : 1, v.a_along_k ? 1 : kLineM};
  p.b = {numbers.upload(b, type), 0, v.b_along_k ? 1 : kLineN, v.b_along_k ? kLineK : 1};
  p.c = {numbers.upload(std::vector<float>(kM * line_c, kRoom), type), 0, line_c, 1};
  if (v.self) {
    p.end.add({numbers.upload(s, type), 0, n, 1});
  }
  v.bf16_parts() ? run_bf16x6_product(call, p, v) : run_product(call, p, v);

  const std::vector<float> got = numbers.download(p.c.address, type, kM * line_c);
  const auto at = [](const std::vector<float>& list, int64_t i) {
    return list[static_cast<size_t>(i)];
  };
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < line_c; ++j) {
      float want = kRoom;
      if (j < n) {
        want = v.self ? at(s, i * n + j) : 0;
        for (int64_t k = 0; k < kK; ++k)
          want += at(a, v.a_along_k ? i * kLineK + k : k * kLineM + i) *
                  at(b, v.b_along_k ? j * kLineK + k : k * kLineN + j);
      }
      if (at(got, i * line_c + j) != want)
        return fmt::format("element ({}, {}) is {} instead of {}", i, j, at(got, i * line_c + j),
                           want);
    }
  return {};
}

}  // namespace ocltensor::opencl::nvidia_hopper
