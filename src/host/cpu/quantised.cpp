// Quantised weights: a function of the position for each format, in double.
#include <array>
#include <cmath>
#include <cstring>

#include "base/weight_formats.h"
#include "call.h"
#include "matmul.h"

namespace ocltensor::cpu {
namespace {

// A weight's parts in memory of their own.
struct Weight {
  const QuantisedWeight& of;
  std::vector<uint8_t> bytes;
  std::vector<double> scale, zero;

  explicit Weight(const QuantisedWeight& w) : of(w), bytes(raw_bytes(w.bytes)) {
    if (w.scale) scale = read<double>(View(*w.scale));
    if (w.zero) zero = read<double>(View(*w.zero));
  }
  int64_t byte(int64_t at) const { return bytes[static_cast<size_t>(at)]; }
  int64_t signed_byte(int64_t at) const {
    return static_cast<int8_t>(bytes[static_cast<size_t>(at)]);
  }
  int64_t nibble(int64_t at, bool high) const { return high ? byte(at) >> 4 : byte(at) & 15; }
  int64_t bit(int64_t at, int64_t i) const { return byte(at + i / 8) >> i % 8 & 1; }
  double half(int64_t at) const {
    double value = 0;
    load(&value, &bytes[static_cast<size_t>(at)], DType::Float16, 1, 1);
    return value;
  }
  // Of the row's element k.
  double part(const std::optional<TensorView>& tensor, const std::vector<double>& values, int64_t n,
              int64_t k) const {
    const int64_t row = tensor->size(0) == 1 ? 0 : n;
    return values[static_cast<size_t>(row * tensor->size(1) + k / of.group)];
  }
  double scale_of(int64_t n, int64_t k) const { return part(of.scale, scale, n, k); }
  double zero_of(int64_t n, int64_t k) const { return part(of.zero, zero, n, k); }

 private:
  static std::vector<uint8_t> raw_bytes(TensorView t) {
    const View view(t);
    const auto item = static_cast<size_t>(size_of(view.type));
    std::vector<uint8_t> bytes(static_cast<size_t>(view.numel()) * item);
    const Dims strides[] = {contiguous_strides(view.sizes), view.strides};
    const IterationSpace space = make_iteration(view.sizes, strides);
    for_each_run(space, [&](const int64_t* at, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(&bytes[static_cast<size_t>(at[0] + i * space.strides[0][0]) * item],
                    view.at(at[1] + i * space.strides[1][0]), item);
    });
    return bytes;
  }
};

double int8_value(const Weight& w, int64_t n, int64_t k) {
  return static_cast<double>(w.signed_byte(n * w.of.k + k)) * w.scale_of(n, k);
}
double int8_zeros_value(const Weight& w, int64_t n, int64_t k) {
  const auto q = static_cast<double>(w.signed_byte(n * w.of.k + k));
  return (q - w.zero_of(n, k)) * w.scale_of(n, k);
}
double float8_value(const Weight& w, DType type, int64_t n, int64_t k) {
  const auto bits = static_cast<uint8_t>(w.byte(n * w.of.k + k));
  return static_cast<double>(float8_to_float(bits, type)) * w.scale_of(n, k);
}
double e4m3_value(const Weight& w, int64_t n, int64_t k) {
  return float8_value(w, DType::Float8E4M3FN, n, k);
}
double e5m2_value(const Weight& w, int64_t n, int64_t k) {
  return float8_value(w, DType::Float8E5M2, n, k);
}
double int4_value(const Weight& w, int64_t n, int64_t k) {
  const auto q = static_cast<double>(w.nibble(n * w.of.pitch() + k / 2, k % 2 == 1));
  return (q - w.zero_of(n, k)) * w.scale_of(n, k);
}
double int4_signed_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t q = w.nibble(n * w.of.pitch() + k / 2, k % 2 == 1);
  return static_cast<double>(q < 8 ? q : q - 16) * w.scale_of(n, k) + w.zero_of(n, k);
}
double int4_tiles_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t columns = w.of.tile_columns(), in_row = k % columns;
  const int64_t tile = n / 8 * (w.of.k / columns) + k / columns;
  const int64_t at = (tile * 8 + n % 8) * columns / 2 + in_row / 32 * 16 + k % 16;
  const auto q = static_cast<double>(w.nibble(at, k % 32 >= 16));
  return (q - 8) * w.scale_of(n, k) + w.zero_of(n, k);
}

using Codes = std::array<float, 16>;
template <typename List>
double coded_value(const Weight& w, const List& codes, int64_t n, int64_t k) {
  const int64_t e = n * w.of.k + k;
  return static_cast<double>(codes[static_cast<size_t>(w.nibble(e / 2, e % 2 == 0))]) *
         w.scale[static_cast<size_t>(e / w.of.group)];
}
double codes_value(const Weight& w, int64_t n, int64_t k) { return coded_value(w, w.zero, n, k); }
double nf4_value(const Weight& w, int64_t n, int64_t k) {
  // T. Dettmers et al., "QLoRA", 2023, appendix E
  static constexpr Codes kCodes{-1.0f,
                                -0.6961928009986877f,
                                -0.5250730514526367f,
                                -0.39491748809814453f,
                                -0.28444138169288635f,
                                -0.18477343022823334f,
                                -0.09105003625154495f,
                                0.0f,
                                0.07958029955625534f,
                                0.16093020141124725f,
                                0.24611230194568634f,
                                0.33791524171829224f,
                                0.44070982933044434f,
                                0.5626170039176941f,
                                0.7229568362236023f,
                                1.0f};
  return coded_value(w, kCodes, n, k);
}
double fp4_value(const Weight& w, int64_t n, int64_t k) {
  static const Codes codes = [] {
    const double twelfths[] = {0, 0.0625, 8, 12, 4, 6, 2, 3};
    Codes list{};
    for (size_t i = 0; i < 8; ++i) {
      list[i] = static_cast<float>(twelfths[i] / 12);
      list[8 + i] = -list[i];
    }
    return list;
  }();
  return coded_value(w, codes, n, k);
}

double q8_0_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 32 * 34;
  return static_cast<double>(w.signed_byte(at + 2 + k % 32)) * w.half(at);
}
double q4_0_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 32 * 18;
  return static_cast<double>(w.nibble(at + 2 + k % 16, k % 32 >= 16) - 8) * w.half(at);
}
double q4_1_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 32 * 20;
  return static_cast<double>(w.nibble(at + 4 + k % 16, k % 32 >= 16)) * w.half(at) + w.half(at + 2);
}
// Of a block's element i, whose upper bits are at `bits`.
int64_t five_bits(const Weight& w, int64_t bits, int64_t i) {
  return w.nibble(bits + 4 + i % 16, i >= 16) | w.bit(bits, i) << 4;
}
double q5_0_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 32 * 22;
  return static_cast<double>(five_bits(w, at + 2, k % 32) - 16) * w.half(at);
}
double q5_1_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 32 * 24;
  return static_cast<double>(five_bits(w, at + 4, k % 32)) * w.half(at) + w.half(at + 2);
}
// Of element i of a block, whose lower bits begin at `from`.
int64_t two_bits(const Weight& w, int64_t from, int64_t i) {
  return w.byte(from + i / 128 * 32 + i % 32) >> 2 * (i % 128 / 32) & 3;
}
double q2_k_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 256 * 84, i = k % 256, parts = w.byte(at + i / 16);
  return w.half(at + 80) * static_cast<double>((parts & 15) * two_bits(w, at + 16, i)) -
         w.half(at + 82) * static_cast<double>(parts >> 4);
}
double q3_k_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 256 * 110, i = k % 256, j = i / 16;
  const int64_t low = w.nibble(at + 96 + j % 8, j >= 8),
                high = w.byte(at + 104 + j % 4) >> j / 4 * 2;
  const int64_t q = two_bits(w, at + 32, i) | w.bit(at + i % 32, i / 32) << 2;
  return w.half(at + 108) * static_cast<double>(((low | (high & 3) << 4) - 32) * (q - 4));
}
// Of element q, number i of a block whose scales and minima have 6 bits.
double by_k_scales(const Weight& w, int64_t at, int64_t i, int64_t q) {
  const int64_t j = i / 32;
  const auto packed = [&](int64_t first) { return w.byte(at + 4 + first); };
  const int64_t scale = j < 4 ? packed(j) & 63 : (packed(j + 4) & 15) | (packed(j - 4) >> 6) << 4;
  const int64_t least = j < 4 ? packed(j + 4) & 63 : packed(j + 4) >> 4 | (packed(j) >> 6) << 4;
  return w.half(at) * static_cast<double>(scale * q) - w.half(at + 2) * static_cast<double>(least);
}
double q4_k_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 256 * 144, i = k % 256;
  return by_k_scales(w, at, i, w.nibble(at + 16 + i / 64 * 32 + i % 32, i / 32 % 2 == 1));
}
double q5_k_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 256 * 176, i = k % 256;
  const int64_t low = w.nibble(at + 48 + i / 64 * 32 + i % 32, i / 32 % 2 == 1);
  return by_k_scales(w, at, i, low | w.bit(at + 16 + i % 32, i / 32) << 4);
}
double q6_k_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 256 * 210, i = k % 256, part = i / 128,
                quarter = i % 128 / 32;
  const int64_t low = w.nibble(at + 64 * part + quarter % 2 * 32 + i % 32, quarter >= 2);
  const int64_t top = w.byte(at + 128 + 32 * part + i % 32) >> 2 * quarter & 3;
  return w.half(at + 208) *
         static_cast<double>(w.signed_byte(at + 192 + i / 16) * ((low | top << 4) - 32));
}
constexpr std::array<int64_t, 16> kIq4Codes{-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};
double iq4_nl_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 32 * 18, q = w.nibble(at + 2 + k % 16, k % 32 >= 16);
  return static_cast<double>(kIq4Codes[static_cast<size_t>(q)]) * w.half(at);
}
double iq4_xs_value(const Weight& w, int64_t n, int64_t k) {
  const int64_t at = n * w.of.pitch() + k / 256 * 136, part = k % 256 / 32;
  const int64_t upper = w.byte(at + 2 + part / 4) >> part % 4 * 2 & 3;
  const int64_t scale = (w.nibble(at + 4 + part / 2, part % 2 == 1) | upper << 4) - 32;
  const int64_t q = w.nibble(at + 8 + 16 * part + k % 16, k % 32 >= 16);
  return static_cast<double>(scale * kIq4Codes[static_cast<size_t>(q)]) * w.half(at);
}

using ValueOf = double (*)(const Weight&, int64_t n, int64_t k);
ValueOf value_of(const WeightFormat& format) {
  static constexpr ValueOf kFunctions[] = {
#define OCLTENSOR_WEIGHT_FORMAT(name, ...) name##_value,
#include "base/weight_formats.def"
#undef OCLTENSOR_WEIGHT_FORMAT
  };
  return kFunctions[&format - weight_formats().data()];
}

// The whole weight, or some of its rows.
std::vector<double> values_of(const QuantisedWeight& weight,
                              const std::vector<int64_t>* rows = nullptr) {
  const Weight w(weight);
  const ValueOf value = value_of(*weight.format);
  const int64_t count = rows == nullptr ? weight.n : static_cast<int64_t>(rows->size());
  std::vector<double> values;
  values.reserve(static_cast<size_t>(count * weight.k));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < weight.k; ++k)
      values.push_back(value(w, rows == nullptr ? i : (*rows)[static_cast<size_t>(i)], k));
  return values;
}

void quantised_mm(const CpuCall& call) {
  const View x = call.args.tensor(Arg::self);
  const int64_t m = x.sizes[0], k = x.sizes[1], n = call.args.integer(Arg::n);
  const auto factor = read<double>(x);
  const auto values = values_of(quantised_weight(call.args, n, k));
  std::vector<double> result(static_cast<size_t>(m * n));
  multiply(factor.data(), values.data(), result.data(), m, n, k, {.b_transposed = true});
  if (const auto bias = call.args.optional_tensor(Arg::bias)) {
    const auto added = read<double>(View(*bias));
    for (size_t i = 0; i < result.size(); ++i) result[i] += added[i % static_cast<size_t>(n)];
  }
  write(call.out(0), result);
}

void dequantise(const CpuCall& call) {
  const auto size = call.args.ints(Arg::size);
  const QuantisedWeight w = quantised_weight(call.args, size[0], size[1]);
  const auto index = call.args.optional_tensor(Arg::index);
  if (!index) return write(call.out(0), values_of(w));
  const auto rows = read<int64_t>(View(*index));
  for (const int64_t row : rows)
    check(row >= 0 && row < w.n, "{}: index {} is out of range for size {}",
          call.args.schema().full_name(), row, w.n);
  write(call.out(0), values_of(w, &rows));
}

constexpr CpuOperator kOperators[] = {{"_ocl_quantised_mm.out", quantised_mm},
                                      {"_ocl_dequantise.out", dequantise}};

}  // namespace

std::span<const CpuOperator> quantised_operators() { return kOperators; }

}  // namespace ocltensor::cpu
