// The proofs of the kernels on the driver at hand, before their first use.
#include <cmath>

#include "call/proof_numbers.h"
#include "decode.h"
#include "dots.h"

namespace ocltensor::opencl::x86_avx512 {
namespace {

constexpr int64_t kN = 24, kK = 384, kGroup = 64, kGroups = kK / kGroup;
constexpr float kRoom = 7;

float at(const std::vector<float>& list, int64_t i) { return list[static_cast<size_t>(i)]; }

// The element of a weight of whole numbers, or of codes of which -1, 0 and 1 alone are looked at.
float element(std::string_view format, const std::vector<float>& bytes, int64_t n, int64_t k) {
  const int64_t tile = (n / 8 * (kK / 128) + k / 128) * 8 + n % 8;
  const bool tiles = format == "int4_tiles";
  if (format == "int8") return static_cast<int8_t>(static_cast<int>(at(bytes, n * kK + k)));
  const int64_t place = tiles ? tile * 64 + k % 128 / 32 * 16 + k % 16 : (n * kK + k) / 2;
  const bool high = tiles ? k % 32 >= 16 : (k % 2 == 1) == (format == "int4");
  const int byte = static_cast<int>(at(bytes, place)), nibble = high ? byte >> 4 : byte & 15;
  if (format == "nf4") return nibble == 0 ? -1.0f : nibble == 15 ? 1.0f : 0.0f;
  return static_cast<float>(tiles ? nibble - 8 : nibble);
}

// `most`: of x, which each 32 elements have, so that x as bytes is what it was.
std::string wrong_product(const OpCall& call, const WeightFormat& format, int64_t m, float most,
                          void (*run)(const OpCall&, const quantised::Product&)) {
  const std::string_view name = format.name;
  const bool coded = format.is(kCoded), tiles = format.layout == WeightLayout::Tiles;
  ProofNumbers numbers(call);
  std::vector<float> x = numbers.draw(m * kK, 3);
  for (size_t i = 5; i < x.size(); i += 32) x[i] = most;
  const int64_t bits = name == "int8" ? 8 : 4;
  std::vector<float> bytes = numbers.draw(kN * kK * bits / 8, 127),
                     scale = numbers.draw(kN * kGroups, 2), zero = numbers.draw(kN * kGroups, 5);
  for (float& b : bytes) {
    b += 127;
    if (!coded) continue;  // nibbles that are 0, 7 or 15: the codes -1, 0 and 1
    constexpr float kNibbles[] = {0, 7, 15};
    const int drawn = static_cast<int>(b);
    b = 16 * kNibbles[drawn % 3] + kNibbles[drawn / 3 % 3];
  }
  const Dims parts = coded ? Dims{kN * kGroups} : Dims{kN, kGroups};
  const LocalTensor scales(numbers.upload(scale, DType::Float32), DType::Float32, parts),
      zeros(numbers.upload(zero, DType::Float32), DType::Float32, parts);
  const tb_address kept = numbers.upload(bytes, DType::UInt8);
  const LocalTensor weight = tiles ? LocalTensor(kept, DType::Int32, {kN / 8, kK / 128, 32, 4})
                                   : LocalTensor(kept, DType::UInt8, {kN, kK * bits / 8});
  const LocalTensor factor(numbers.upload(x, DType::Float32), DType::Float32, {m, kK}),
      out(numbers.upload(std::vector<float>(static_cast<size_t>(m * kN + 1), kRoom),
                         DType::Float32),
          DType::Float32, {m, kN});
  const bool has_zero = format.zero != WeightZero::None;
  run(call, {{&format, kN, kK, kGroup, weight.view(), scales.view(),
              has_zero ? std::optional(zeros.view()) : std::nullopt},
             factor.view(),
             out.view(),
             std::nullopt});
  const std::vector<float> got = numbers.download(out.view().address(), DType::Float32, m * kN + 1);
  if (at(got, m * kN) != kRoom)
    return fmt::format("{}: something is written behind the result", name);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t n = 0; n < kN; ++n) {
      float want = 0;
      for (int64_t k = 0; k < kK; ++k) {
        const int64_t part = n * kGroups + k / kGroup;
        const float q = element(name, bytes, n, k), z = has_zero ? at(zero, part) : 0;
        want += at(x, i * kK + k) * (tiles ? q * at(scale, part) + z : (q - z) * at(scale, part));
      }
      if (at(got, i * kN + n) != want)
        return fmt::format("{}: element ({}, {}) is {} instead of {}", name, i, n,
                           at(got, i * kN + n), want);
    }
  return {};
}

}  // namespace

// Each order of nibbles, one row and several; the sums stay below 2^24, which float has exactly.
std::string wrong_decode(const OpCall& call, const void*) {
  for (const char* name : {"int4", "nf4", "int4_tiles"})
    for (const int64_t m : {1, 3})
      if (std::string wrong = wrong_product(call, *find_weight_format(name), m, 3, run_decode);
          !wrong.empty())
        return wrong;
  return {};
}

std::string wrong_dots(const OpCall& call, const void*) {
  for (const char* name : {"int8", "int4", "int4_tiles"})
    for (const int64_t m : {1, 3})
      if (std::string wrong = wrong_product(call, *find_weight_format(name), m, 127, run_dots);
          !wrong.empty())
        return wrong;
  return {};
}

}  // namespace ocltensor::opencl::x86_avx512
