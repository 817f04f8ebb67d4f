// Cases of the quantised family: weights of all formats, products with them, and their values.
#include <array>

#include "base/weight_formats.h"
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) {
  return is_floating(dtype) && compute_type(dtype) == DType::Float32;
}

// Where blocks have numbers of 16 bits, which random bytes would make infinite.
struct Halves {
  std::string_view format;
  std::array<int64_t, 2> at;
};
constexpr Halves kHalves[] = {{"q8_0", {0, 0}},     {"q4_0", {0, 0}},   {"q4_1", {0, 2}},
                              {"q5_0", {0, 0}},     {"q5_1", {0, 2}},   {"q2_k", {80, 82}},
                              {"q3_k", {108, 108}}, {"q4_k", {0, 2}},   {"q5_k", {0, 2}},
                              {"q6_k", {208, 208}}, {"iq4_nl", {0, 0}}, {"iq4_xs", {0, 0}}};

struct Shape {
  int64_t n, k, group;
};
// Sizes that the format takes; some with a whole row as a group.
Shape choose(const WeightFormat& f, Draw& draw) {
  const int64_t limit = draw.size_mode() == SizeMode::Large ? 300 : 70;
  Shape s{draw.extent(limit, true), draw.extent(limit, true), 0};
  const int64_t group = int64_t{32} << draw.rng.range(0, 2);
  if (f.layout == WeightLayout::Flat) return {s.n, s.k, 2 * group};
  if (f.scales == WeightScales::Within) return {s.n, f.block * draw.rng.range(0, 3), 0};
  if (f.layout == WeightLayout::Tiles) return {s.n / 8 * 8, 128 * draw.rng.range(1, 3), group};
  if (draw.rng.chance(0.5)) return {s.n, group * draw.rng.range(1, 4), group};
  return {s.n, s.k / f.block * f.block, 0};
}

TensorPtr bytes_of(const WeightFormat& f, const Shape& s, Draw& draw) {
  if (f.layout == WeightLayout::Tiles) {
    const int64_t columns = int64_t{32} << draw.rng.range(0, 2);
    const Dims sizes{s.n / 8, s.k / columns, 32, columns / 32};
    return draw.contiguous(draw.values(DType::Int32, sizes, {-2e9, 2e9, 0, false, false}));
  }
  const bool flat = f.layout == WeightLayout::Flat;
  const Dims sizes = flat ? Dims{(s.n * s.k + 1) / 2} : Dims{s.n, s.k / f.block * f.bytes};
  HostTensor bytes = draw.values(DType::UInt8, sizes, {0, 255, 0, false, false});
  // Of float8_e4m3fn NaN, of float8_e5m2 what is beyond 224.
  const int64_t most = std::string_view(f.name) == "e4m3"   ? 0x7e
                       : std::string_view(f.name) == "e5m2" ? 0x5b
                                                            : 0xff;
  for (int64_t i = 0; i < bytes.numel() && most < 0xff; ++i)
    if ((bytes.integer(i) & 127) > most) bytes.set_integer(i, 0);
  for (const Halves& halves : kHalves)
    if (halves.format == f.name)
      for (int64_t at = 0; at < bytes.numel(); at += f.bytes)
        for (const int64_t half : halves.at) {
          HostTensor number(DType::Float16, {1});
          number.set(0, static_cast<double>(draw.rng.range(-32, 32)) / 2048);
          std::copy_n(number.element(0), 2, bytes.element(at + half));
        }
  return draw.place(std::move(bytes));
}

void set_weight(Case& c, const WeightFormat& f, const Shape& s, Draw& draw) {
  c.set("mode", std::string(f.name));
  c.set("group", Scalar(s.group));
  c.set("weight", bytes_of(f, s, draw));
  if (f.scales == WeightScales::Within) return;
  const int64_t group = s.group == 0 ? std::max<int64_t>(s.k, 1) : s.group;
  const bool flat = f.layout == WeightLayout::Flat;
  const Dims parts = flat ? Dims{(s.n * s.k + group - 1) / group}
                          : Dims{draw.rng.chance(0.2) ? 1 : s.n, s.k == 0 ? 1 : s.k / group};
  const DType type = draw.rng.chance(0.5) ? DType::Float32 : c.dtype;
  const double most = std::string_view(f.name) == "e4m3" ? 0.1 : 0.25;
  c.set("scale", draw.tensor(type, parts, {-most, most, 0, false, false}));
  if (f.zero == WeightZero::Subtracted)
    c.set("offset", draw.tensor(DType::Int8, parts, {0, 15, 0, false, false}));
  if (f.zero == WeightZero::Codes)
    c.set("offset", draw.tensor(type, {16}, {-1, 1, 0, false, false}));
  if (f.zero == WeightZero::Added)
    c.set("offset", draw.tensor(type, parts, {-2, 2, 0, false, false}));
}

constexpr double kLargest = 64;  // of the weights' values: 127 * 32 / 64 in q6_k, (128 + 15) / 4
constexpr const char* kWhyBytes =
    "a sum of n products loses about sqrt(n) eps of what is added: x times values of up to 64";
constexpr const char* kWhyRounded =
    "the same; products of more rows than kernels unpack for round the weight to x's type, each "
    "element by half an eps";

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const auto formats = weight_formats();
  const WeightFormat& f =
      formats[static_cast<size_t>(draw.rng.range(0, static_cast<int64_t>(formats.size()) - 1))];
  const Shape s = choose(f, draw);
  set_weight(c, f, s, draw);
  const double terms = op.schema.name == "_ocl_quantised_mm" ? static_cast<double>(s.k) + 1 : 1;
  c.tolerance = {{Scale::Inputs, 4 * kLargest, terms, 1, nullptr, kWhyBytes}};
  if (op.schema.name == "_ocl_dequantise") {
    c.set("size", std::vector<int64_t>{s.n, s.k});
    c.set("out_dtype", dtype);
    if (s.n > 0 && f.layout != WeightLayout::Flat && draw.rng.chance(0.4))
      c.set("index", draw.indices({draw.extent(20, true)}, 0, s.n - 1,
                                  draw.rng.chance(0.5) ? DType::Int32 : DType::Int64));
    return c;
  }
  constexpr int64_t kUnpacksFor = 8;  // rows
  const int64_t m = draw.rng.chance(0.7) ? draw.rng.range(1, 9) : draw.extent(40, true);
  c.set("n", Scalar(s.n));
  c.set("self", draw.tensor(dtype, {m, s.k}, {-3, 3, 0, false, false}));
  if (draw.rng.chance(0.5)) c.set("bias", draw.tensor(dtype, {s.n}, {-3, 3, 0, false, false}));
  const bool flat = f.layout == WeightLayout::Flat;
  if (size_of(dtype) == 2 && (m > kUnpacksFor || flat))
    c.tolerance = {{Scale::Inputs, kLargest * epsilon(dtype) / epsilon(DType::Float32), terms, 1,
                    nullptr, kWhyRounded}};
  return c;
}

}  // namespace

const FamilyCases& quantised_cases() {
  static constexpr FamilyCases kCases = {"quantised", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
