// The proof of the kernel that unpacks weights for mma.sync, on the driver at hand.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "call/divide_up.h"
#include "call/proof_numbers.h"
#include "rows.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

constexpr int64_t kTileColumns = 128;

// A weight of random bytes, with scales and zeros as its format has them.
class DrawnWeight {
 public:
  DrawnWeight(ProofNumbers& numbers, const QuantisedRows& v, int64_t n)
      : v_(v),
        n_(n),
        group_(v.format->unit * 4 / v.spread),
        k_(size()),
        bytes_(draw_bytes(numbers)),
        scale_(draw_scales(numbers, 8)),
        zero_(draw_zeros(numbers)) {}

  QuantisedWeight weight() const {
    const bool apart = v_.format->scales == WeightScales::Apart;
    QuantisedWeight w{v_.format, n_,           k_,          v_.same_scales ? k_ : group_,
                      bytes_,    std::nullopt, std::nullopt};
    if (apart) w.scale = scale_.view();
    if (apart && v_.format->zero != WeightZero::None) w.zero = zero_.view();
    return w;
  }

 private:
  bool is(WeightLayout layout) const { return v_.format->layout == layout; }
  // Two steps of each warp and more; all of them have units or some do not.
  int64_t size() const {
    const int64_t block = is(WeightLayout::Tiles) ? kTileColumns : v_.format->block;
    const int64_t whole = std::lcm(std::lcm(block, v_.format->unit), group_);
    const int64_t steps = 2 * v_.units_of_step() * v_.format->unit;
    return divide_up(steps + (v_.all_units ? 0 : 1), whole) * whole;
  }
  // Bytes of blocks hold scales of 16 bits: with 0x77 these are finite, as are numbers of 8 bits.
  LocalTensor draw_bytes(ProofNumbers& numbers) const {
    const int64_t pitch = k_ / v_.format->block * v_.format->bytes;
    const bool any = v_.format->scales == WeightScales::Apart && v_.format->name[0] != 'e';
    std::vector<float> bytes = numbers.draw(n_ * pitch, 1 << 14);
    for (float& x : bytes)
      x = static_cast<float>(static_cast<int>(std::abs(x)) >> 4 & (any ? 0xff : 0x77));
    const Dims sizes = is(WeightLayout::Tiles)
                           ? Dims{n_ / 8, k_ / kTileColumns, 8, kTileColumns / 2}
                       : is(WeightLayout::Flat) ? Dims{n_ * pitch, 1}
                                                : Dims{n_, pitch};
    return {numbers.upload(bytes, DType::UInt8), DType::UInt8, sizes};
  }
  Dims groups() const {
    if (v_.same_scales) return Dims{n_, 1};
    return is(WeightLayout::Flat) ? Dims{n_ * k_ / group_} : Dims{n_, k_ / group_};
  }
  int64_t groups_count() const { return v_.same_scales ? n_ : n_ * k_ / group_; }
  LocalTensor draw_scales(ProofNumbers& numbers, int most) const {
    return {numbers.upload(numbers.draw(groups_count(), most), DType::Float32), DType::Float32,
            groups()};
  }
  LocalTensor draw_zeros(ProofNumbers& numbers) const {
    if (v_.format->zero == WeightZero::Codes)
      return {numbers.upload(numbers.draw(16, 8), DType::Float32), DType::Float32, Dims{16}};
    if (v_.format->zero == WeightZero::Added) return draw_scales(numbers, 8);
    return {numbers.upload(numbers.draw(groups_count(), 8), DType::Int8), DType::Int8, groups()};
  }

  QuantisedRows v_;
  int64_t n_, group_, k_;
  LocalTensor bytes_, scale_, zero_;
};

}  // namespace

// The product of some rows more than a work-group has by nearly all rows of x that the kernel
// takes, with sums that must be those of the values as the portable kernel unpacks them. What it
// may round are numbers of codes, once, to `type`; a wrong place is an error of the size of the
// sums.
std::string wrong_quantised_rows(const OpCall& call, const void* what) {
  const QuantisedRows& v = *static_cast<const QuantisedRows*>(what);
  const int64_t n = v.division().rows() + 24, m = std::max<int64_t>(v.rows_of_x() - 1, 1);
  ProofNumbers numbers(call);
  const DrawnWeight drawn(numbers, v, n);
  const QuantisedWeight w = drawn.weight();
  std::vector<float> of_x = numbers.draw(m * w.k, 4);
  for (float& x : of_x) x /= 1 << 19;  // GGUF's scales are large, results of float16 are not
  const LocalTensor x(numbers.upload(of_x, v.type), v.type, Dims{m, w.k});
  const LocalTensor out(numbers.upload(std::vector<float>(static_cast<size_t>(m * n), 7), v.type),
                        v.type, Dims{m, n});
  run_quantised_rows(call, {w, x, out, std::nullopt}, v);
  const Scratch values = call.scratch(static_cast<uint64_t>(n * w.k) * sizeof(float));
  quantised::unpack_rows(call, w, 0, n, values.address(), DType::Float32);
  const std::vector<float> of_w = numbers.download(values.address(), DType::Float32, n * w.k);
  const std::vector<float> got = numbers.download(out.view().address(), v.type, m * n);
  const double rounding = v.type == DType::BFloat16 ? 0x1p-8 : 0x1p-11;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double want = 0, size = 0;
      for (int64_t k = 0; k < w.k; ++k) {
        const double term = static_cast<double>(of_x[static_cast<size_t>(i * w.k + k)]) *
                            of_w[static_cast<size_t>(j * w.k + k)];
        want += term;
        size += std::abs(term);
      }
      const float result = got[static_cast<size_t>(i * n + j)];
      if (!(std::abs(result - want) <= rounding * (std::abs(want) + size / 8) + 0x1p-24))
        return fmt::format("element ({}, {}) is {} instead of {}", i, j, result, want);
    }
  return {};
}

}  // namespace ocltensor::opencl::nvidia_mma
