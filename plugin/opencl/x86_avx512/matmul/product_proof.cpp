// The proof of the product's kernels on the driver at hand, before their first use.
#include "call/proof_numbers.h"
#include "product.h"

namespace ocltensor::opencl::x86_avx512 {

// Both layouts of both factors, odd sizes, several blocks of k; room around the result must not
// change. The sums stay below 2^8, which bf16 has exactly.
std::string wrong_product(const OpCall& call, const void*) {
  constexpr int64_t kM = 21, kN = 75, kGap = 5, kLine = kN + kGap;
  constexpr float kRoom = 7;
  for (const int64_t k : {37, 645})
    for (const bool a_along_k : {true, false})
      for (const bool b_along_k : {true, false}) {
        ProofNumbers numbers(call);
        const std::vector<float> a = numbers.draw(kM * k, 1);
        const std::vector<float> b = numbers.draw(kN * k, 1);
        const DType type = DType::BFloat16;
        matmul::Problem p{type, 1, kM, kN, k, {}, {}, {}};
        p.a = {numbers.upload(a, type), 0, a_along_k ? k : 1, a_along_k ? 1 : kM};
        p.b = {numbers.upload(b, type), 0, b_along_k ? 1 : kN, b_along_k ? k : 1};
        p.c = {numbers.upload(std::vector<float>(kM * kLine, kRoom), type), 0, kLine, 1};
        run_product(call, p, {.rows = 16, .panels = 2});
        const std::vector<float> got = numbers.download(p.c.address, type, kM * kLine);
        const auto at = [](const std::vector<float>& list, int64_t i) {
          return list[static_cast<size_t>(i)];
        };
        for (int64_t i = 0; i < kM; ++i)
          for (int64_t j = 0; j < kLine; ++j) {
            float want = j < kN ? 0 : kRoom;
            for (int64_t l = 0; j < kN && l < k; ++l)
              want += at(a, i * p.a.row + l * p.a.col) * at(b, l * p.b.row + j * p.b.col);
            if (at(got, i * kLine + j) != want)
              return fmt::format("element ({}, {}) of a sum of {} is {} instead of {}", i, j, k,
                                 at(got, i * kLine + j), want);
          }
      }
  return {};
}

}  // namespace ocltensor::opencl::x86_avx512
