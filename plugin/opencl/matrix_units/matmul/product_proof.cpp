// The proof of a product's kernel on the driver at hand, before its first use.
#include "call/proof_numbers.h"
#include "product.h"

namespace ocltensor::opencl::matrix_units {
namespace {

// Sizes that end in the middle of everything, and lines of whole 16 bytes.
constexpr int64_t kM = 141, kN = 301, kK = 203, kGap = 8;
constexpr int64_t kLineK = 208, kLineM = 144, kLineN = 304, kLineC = kN + kGap;
constexpr int64_t kBatch = 2;

// The numbers of a factor's matrices, whose lines run along k or across it.
struct Factor {
  int64_t line, step, batch;  // strides in `numbers`
  std::vector<float> numbers;

  Factor(ProofNumbers& draws, bool along_k, int64_t lines, int64_t across, int most)
      : line(along_k ? kLineK : 1),
        step(along_k ? 1 : across),
        batch(along_k ? lines * kLineK : kK * across),
        numbers(draws.draw(kBatch * batch, most)) {}
  float at(int64_t z, int64_t l, int64_t k) const {
    return numbers[static_cast<size_t>(z * batch + l * line + k * step)];
  }
};

}  // namespace

// Compares products with the host's, which are exact. There is room around the results that must
// not change.
std::string wrong_product(const OpCall& call, const void* what) {
  Product v = *static_cast<const Product*>(what);
  v.pieces = std::min<int64_t>(v.pieces, 2);
  constexpr float kRoom = 7;
  const bool is_int8 = v.kind == Kind::Int8;
  const DType type = type_of(v.kind);
  const DType result = is_int8 ? DType::Int32 : v.float_result ? DType::Float32 : type;
  const DType of_self = v.float_self ? DType::Float32 : type;
  // Sums are exact: of floats of more bits than TF32 has, and of float16's subnormals, which some
  // units take for 0.
  const int most_of_a = is_int8 ? 127 : v.kind == Kind::Float ? 32767 : 1;
  const float scale = v.kind == Kind::Half ? 0x1p-20f : 1;
  ProofNumbers numbers(call);
  Factor a(numbers, v.a_along_k, kM, kLineM, most_of_a);
  const Factor b(numbers, v.b_along_k, kN, kLineN, is_int8 ? 127 : 1);
  for (float& x : a.numbers) x = is_int8 && x == -127 ? -128 : x * scale;
  std::vector<float> s = numbers.draw(kM * kN, 1);
  for (float& x : s) x *= scale;
  matmul::Problem p{{type, type, result, of_self}, kBatch, kM, kN, kK, {}, {}, {}};
  p.a = {numbers.upload(a.numbers, type), a.batch, a.line, a.step};
  p.b = {numbers.upload(b.numbers, type), b.batch, b.step, b.line};
  const int64_t all = kBatch * kM * kLineC;
  p.c = {numbers.upload(std::vector<float>(static_cast<size_t>(all), kRoom), result), kM * kLineC,
         kLineC, 1};
  if (v.self) p.end.add({numbers.upload(s, of_self), 0, kN, 1});
  run_product(call, p, v);

  const std::vector<float> got = numbers.download(p.c.address, result, all);
  for (int64_t at = 0; at < all; ++at) {
    const int64_t z = at / (kM * kLineC), i = at / kLineC % kM, j = at % kLineC;
    float want = kRoom;
    if (j < kN) {
      want = v.self ? s[static_cast<size_t>(i * kN + j)] : 0;
      for (int64_t k = 0; k < kK; ++k) want += a.at(z, i, k) * b.at(z, j, k);
    }
    if (got[static_cast<size_t>(at)] != want)
      return fmt::format("element ({}, {}) of matrix {} is {} instead of {}", i, j, z,
                         got[static_cast<size_t>(at)], want);
  }
  return {};
}

}  // namespace ocltensor::opencl::matrix_units
