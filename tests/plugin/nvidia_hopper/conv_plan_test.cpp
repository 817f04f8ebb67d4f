// Convolutions on matrix units without a device: every copy of every product, emulated by its
// parameters and tensor maps, gives the sums of the definition.
#include <cmath>
#include <functional>

#include "conv_engine.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using Kind = ConvHopperKind;

constexpr ConvShape kShapes[] = {
    {.batch = 3,
     .big = 24,
     .small = 40,
     .y = 13,
     .x = 11,
     .window_y = 3,
     .window_x = 3,
     .pad_y = 1,
     .pad_x = 1},
    {.batch = 2,
     .big = 72,
     .small = 136,
     .y = 9,
     .x = 11,
     .window_y = 3,
     .window_x = 3,
     .stride_y = 2,
     .stride_x = 2,
     .pad_y = 1,
     .pad_x = 1},
    {.batch = 5,
     .big = 64,
     .small = 70,
     .y = 9,
     .x = 9,
     .window_y = 1,
     .window_x = 1,
     .stride_y = 2,
     .stride_x = 2},
    {.batch = 2,
     .big = 18,
     .small = 17,
     .y = 11,
     .x = 12,
     .window_y = 5,
     .window_x = 5,
     .pad_y = 2,
     .pad_x = 2},
    {.batch = 7, .big = 200, .small = 72, .y = 7, .x = 7, .window_y = 1, .window_x = 1},
    {.batch = 1,
     .big = 16,
     .small = 16,
     .y = 30,
     .x = 30,
     .window_y = 5,
     .window_x = 5,
     .stride_y = 3,
     .stride_x = 3,
     .pad_y = 2,
     .pad_x = 2},
    // Sides that differ, dilation, padding beyond the window, rows that are left over
    {.batch = 2,
     .big = 19,
     .small = 33,
     .y = 12,
     .x = 17,
     .window_y = 3,
     .window_x = 2,
     .stride_y = 2,
     .stride_x = 1,
     .pad_y = 0,
     .pad_x = 1,
     .dilation_y = 2,
     .dilation_x = 3},
    {.batch = 2,
     .big = 20,
     .small = 9,
     .y = 15,
     .x = 14,
     .window_y = 4,
     .window_x = 3,
     .stride_y = 4,
     .stride_x = 3,
     .pad_y = 3,
     .pad_x = 2,
     .dilation_y = 2,
     .dilation_x = 2},
    {.batch = 3,
     .big = 17,
     .small = 12,
     .y = 6,
     .x = 5,
     .window_y = 1,
     .window_x = 3,
     .pad_y = 2,
     .pad_x = 4},
    {.batch = 1,
     .big = 22,
     .small = 12,
     .y = 1,
     .x = 61,
     .window_y = 1,
     .window_x = 7,
     .stride_x = 2,
     .pad_x = 3},
    // Transposed with output padding, also of a whole stride
    {.batch = 2,
     .big = 22,
     .small = 18,
     .y = 10,
     .x = 12,
     .window_y = 3,
     .window_x = 3,
     .stride_y = 2,
     .stride_x = 2,
     .pad_y = 1,
     .pad_x = 1,
     .extra_y = 1,
     .extra_x = 1},
    {.batch = 2,
     .big = 22,
     .small = 18,
     .y = 13,
     .x = 16,
     .window_y = 2,
     .window_x = 2,
     .stride_y = 2,
     .stride_x = 2,
     .pad_y = 1,
     .pad_x = 1,
     .dilation_y = 3,
     .dilation_x = 3,
     .extra_y = 2,
     .extra_x = 2},
    // A map smaller than the stride's remainders
    {.batch = 4,
     .big = 19,
     .small = 10,
     .y = 2,
     .x = 3,
     .window_y = 3,
     .window_x = 3,
     .stride_y = 4,
     .stride_x = 4,
     .pad_y = 1,
     .pad_x = 1}};

struct Lcg {
  uint32_t state = 7;
  int next(int most) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>(state >> 16) % (2 * most + 1) - most;
  }
};

int64_t count_of(const ConvParams& g, size_t tensor) {
  return tensor == 0   ? g.batch * g.big_channels * g.in[1] * g.in[2]
         : tensor == 1 ? g.batch * g.small_channels * g.out[1] * g.out[2]
                       : g.small_channels * g.big_channels * g.window[1] * g.window[2];
}

// Lines of `padded` numbers with zeros behind `length`, in bf16 parts whose sum they are.
std::vector<float> staged(const std::vector<float>& from, int64_t bf16_parts, int64_t lines,
                          int64_t length, const std::function<int64_t(int64_t, int64_t)>& at) {
  const int64_t padded = divide_up(length, 8) * 8;
  std::vector<float> to(static_cast<size_t>(bf16_parts * lines * padded), 0.0f);
  for (int64_t i = 0; i < lines; ++i)
    for (int64_t c = 0; c < length; ++c) {
      auto rest = from[static_cast<size_t>(at(i, c))];
      for (int64_t bf16_part = 0; bf16_part < bf16_parts; ++bf16_part) {
        const float scale = bf16_part == 0 ? 64.0f : bf16_part == 1 ? 8.0f : 1.0f;
        const float part = bf16_part + 1 == bf16_parts ? rest : std::trunc(rest / scale) * scale;
        to[static_cast<size_t>((bf16_part * lines + i) * padded + c)] = part;
        rest -= part;
      }
    }
  return to;
}

struct Operand {
  std::vector<float> numbers;
  ConvHopperMap map{};
  ConvHopperLines lines{};
};
Operand staged_map(const ConvParams& g, bool big, const std::vector<float>& tensor, Kind kind) {
  const auto& strides = big ? g.big_strides : g.small_strides;
  const auto& size = big ? g.in : g.out;
  const int64_t channels = big ? g.big_channels : g.small_channels, item = item_of(kind);
  const int64_t pixels = g.batch * size[1] * size[2], step = divide_up(channels, 8) * 8 * item;
  Operand o;
  o.numbers = staged(tensor, bf16_parts_of(kind), pixels, channels, [&](int64_t i, int64_t c) {
    const int64_t x = i % size[2], y = i / size[2] % size[1], n = i / size[2] / size[1];
    return n * strides[0] + c * strides[1] + y * strides[3] + x * strides[4];
  });
  o.map = {0, channels, size[2], size[1], g.batch, step, step * size[2], step * size[2] * size[1]};
  o.lines = {0, channels, pixels, 1, step, step * pixels, step * pixels};
  return o;
}
Operand staged_weight(const ConvParams& g, bool data, const std::vector<float>& tensor, Kind kind) {
  const int64_t taps = g.window[1] * g.window[2];
  const int64_t rows = data ? g.big_channels : g.small_channels;
  const int64_t inner = data ? g.small_channels : g.big_channels;
  Operand o;
  o.numbers = staged(tensor, bf16_parts_of(kind), rows * taps, inner, [&](int64_t i, int64_t c) {
    const int64_t tap = i % taps, row = i / taps;
    return row * g.weight_strides[data ? 1 : 0] + c * g.weight_strides[data ? 0 : 1] +
           tap / g.window[2] * g.weight_strides[3] + tap % g.window[2] * g.weight_strides[4];
  });
  const int64_t step = divide_up(inner, 8) * 8 * item_of(kind);
  o.lines = {0, inner, rows, taps, step * taps, step, step * taps * rows};
  return o;
}

// What a product leaves, in the output's own order; every element at most once.
void add_result(const conv::Problem& p, const ConvHopperProduct& c, Kind kind,
                const HopperTiles& tiles, const Operand& windows, const Operand& other,
                std::vector<double>& out) {
  const ConvParams& g = p.params;
  const bool weight = p.direction == conv::Direction::Weight;
  ConvHopperParams params = conv_hopper_params(p, kind, c, windows.map, other.lines);
  const auto& strides = p.direction == conv::Direction::Forward ? g.small_strides : g.big_strides;
  params.out_piece = weight ? c.m * c.n : 0;  // pieces of a map are added where they belong
  params.out_image = strides[0];
  params.out_channel = strides[1];
  params.out_y = strides[3] * c.y.result_step;
  params.out_x = strides[4] * c.x.result_step;
  const int64_t begin = weight ? 0 : c.y.result_begin * strides[3] + c.x.result_begin * strides[4];
  int64_t misses = 0;
  const EngineMemory map{&windows.numbers, item_of(kind), &misses};
  const EngineMemory lines{&other.numbers, item_of(kind), &misses};
  const std::vector<float> none;
  ConvHopperEngine engine(params, {kind, tiles.columns, weight, false}, map, lines, none);
  engine.run([&](int64_t at, double value) {
    if (!weight) return (void)(out.at(static_cast<size_t>(begin + at)) += value);
    const int64_t in_piece = at % params.out_piece, row = in_piece / c.n, column = in_piece % c.n;
    const int64_t tap_channels = c.n / (c.y.taps * c.x.taps);
    const int64_t tap = column / tap_channels, channel = column % tap_channels;
    if (channel >= g.big_channels) {
      EXPECT_EQ(value, 0);
      return;
    }
    out.at(static_cast<size_t>(row * g.weight_strides[0] + channel * g.weight_strides[1] +
                               tap / g.window[2] * g.weight_strides[3] +
                               tap % g.window[2] * g.weight_strides[4])) += value;
  });
  EXPECT_EQ(misses, 0);
}

// Whole numbers; one operand fills the bf16 parts, the other has one only.
void check_shape(const ConvShape& shape, conv::Direction direction, Kind kind, int64_t pieces,
                 bool fine_first) {
  conv::Problem original{direction, DType::Float32, 0, 0, 0, std::nullopt, conv_params_of(shape)};
  const ConvHopperProblem p = original;
  const ConvParams& g = original.params;
  ASSERT_EQ(refuse_hopper_geometry(p, kind), nullptr);
  const size_t out = direction == conv::Direction::Forward ? 1
                     : direction == conv::Direction::Data  ? 0
                                                           : 2;
  Lcg numbers;
  std::vector<float> tensors[3];
  const size_t coarse = (out + 1 + (fine_first ? 1 : 0)) % 3;
  for (size_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < count_of(g, t); ++i) {
      const int x = numbers.next(200);
      tensors[t].push_back(static_cast<float>(t != coarse ? x : x > 0 ? 64 : -64));
    }
  const bool data = direction == conv::Direction::Data;
  const Operand windows = staged_map(p.params, !data, tensors[data ? 1 : 0], kind);
  const Operand other = direction == conv::Direction::Weight
                            ? staged_map(p.params, false, tensors[1], kind)
                            : staged_weight(p.params, data, tensors[2], kind);
  std::vector<double> got(tensors[out].size(), 0.0), want(got);
  for (ConvHopperProduct& c : conv_hopper_products(p, kind, 132)) {
    const int64_t length = divide_up(c.steps, std::min(pieces, c.steps));
    c.tiles.pieces = divide_up(c.steps, length);
    add_result(p, c, kind, c.tiles, windows, other, got);
  }
  for_each_conv_term(g, [&](int64_t big, int64_t small, int64_t weight) {
    const int64_t at[3] = {big, small, weight};
    const auto number = [&](size_t t) { return double{tensors[t][static_cast<size_t>(at[t])]}; };
    want[static_cast<size_t>(at[out])] += number((out + 1) % 3) * number((out + 2) % 3);
  });
  ASSERT_EQ(got, want);
}

TEST(ConvHopperPlan, ProductsAreConvolutions) {
  for (size_t i = 0; i < std::size(kShapes); ++i)
    for (const bool channels_last : {false, true})
      for (const conv::Direction direction :
           {conv::Direction::Forward, conv::Direction::Data, conv::Direction::Weight}) {
        ConvShape shape = kShapes[i];
        shape.channels_last = channels_last;
        SCOPED_TRACE(testing::Message() << "shape " << i << " direction "
                                        << conv::kDirectionNames[static_cast<int>(direction)]);
        check_shape(shape, direction, Kind::Half, channels_last ? 1 : 2, channels_last);
        if (HasFatalFailure()) return;
      }
}

TEST(ConvHopperPlan, ProductsOfBf16PartsAndOfFloats) {
  for (const size_t i : {0, 6})
    for (const conv::Direction direction :
         {conv::Direction::Forward, conv::Direction::Data, conv::Direction::Weight})
      for (const Kind kind : {Kind::Bf16x3, Kind::Bf16x2, Kind::Tf32}) {
        if (kind == Kind::Tf32 && direction == conv::Direction::Weight) continue;
        SCOPED_TRACE(testing::Message() << "shape " << i << " kind " << static_cast<int>(kind));
        for (const bool fine_first : {false, true})
          check_shape(kShapes[i], direction, kind, 1, fine_first);
        if (HasFatalFailure()) return;
      }
}

// NVIDIA's encoder's words for bfloat16, 256 x 56 x 28 x 32 pixels, steps 1 and 3 by 2.
TEST(ConvHopperPlan, WordsOfAMap) {
  const ConvHopperMap map{0, 256, 56, 28, 32, 512, 512 * 56, 512 * 56 * 28};
  const ConvHopperAxis y{28, 2, -3, -1, 3, 1, 0, 1, 0, 1}, x{56, 3, -1, -2, 3, 1, 0, 1, 0, 1};
  tk_u32 words[CONV_MAP_WORDS];
  write_im2col_map(words, map, 1, Kind::BFloat, y, x, 128);
  const tk_u32 want[CONV_MAP_WORDS] = {
      0,          0,   0x6531, 32, 1792, 50176, 0,
      0,          255, 55,     27, 31,   0,     63u << 24 | 2u << 3 | 1u << 6,
      0xfffefdff, 127, 16384,  0,  0x400};
  for (size_t i = 0; i < CONV_MAP_WORDS; ++i) EXPECT_EQ(words[i], want[i]) << i;
  write_im2col_map(words, map, 3, Kind::Half, y, x, 64);
  EXPECT_EQ(words[2], 0x6331u);
  EXPECT_EQ(words[11], 95u);
  write_im2col_map(words, map, 1, Kind::Tf32, y, x, 64);
  EXPECT_EQ(words[2], 0x163b1u);
  EXPECT_EQ(words[13] >> 24, 31u);
  EXPECT_EQ(words[16], 8192u);
}

TEST(ConvHopperPlan, RefusesWhatTheEngineCannotHold) {
  const auto reason = [](const ConvShape& s, conv::Direction d) {
    const conv::Problem p{d, DType::Float16, 0, 0, 0, std::nullopt, conv_params_of(s)};
    return refuse_hopper_geometry(p, Kind::Half);
  };
  ConvShape s{.batch = 1, .big = 16, .small = 16, .y = 400, .x = 400, .window_y = 3, .window_x = 3};
  EXPECT_EQ(reason(s, conv::Direction::Forward), nullptr);
  s.dilation_y = 64;  // the last corner is -128
  EXPECT_EQ(reason(s, conv::Direction::Forward), nullptr);
  s.dilation_y = 65;
  EXPECT_STREQ(reason(s, conv::Direction::Forward), "the copy engine takes no such window");
  s.dilation_y = 1;
  s.stride_x = 9;
  EXPECT_STREQ(reason(s, conv::Direction::Forward), "the copy engine takes no such window");
  EXPECT_EQ(reason(s, conv::Direction::Data), nullptr);  // a launch for each remainder
  s.big = 8;
  EXPECT_EQ(reason(s, conv::Direction::Forward), nullptr);  // folded: the staged map has no steps
  s.batch = 1 << 16;
  EXPECT_STREQ(reason(s, conv::Direction::Data), "the sizes need 64 bits");
  s.batch = 0;
  EXPECT_STREQ(reason(s, conv::Direction::Data), "nothing to sum");
}

// ResNet-50 at batch 32: no piece is empty, tiles are those that a kind has.
TEST(ConvHopperPlan, Tiles) {
  for (const Kind kind : {Kind::Half, Kind::Tf32, Kind::Bf16x2, Kind::Bf16x3})
    for (const conv::Direction direction :
         {conv::Direction::Forward, conv::Direction::Data, conv::Direction::Weight})
      for (int64_t edge = 56, channels = 64; edge >= 7; edge /= 2, channels *= 2) {
        const ConvShape s{.batch = 32,
                          .big = channels,
                          .small = channels,
                          .y = edge,
                          .x = edge,
                          .window_y = 3,
                          .window_x = 3,
                          .pad_y = 1,
                          .pad_x = 1};
        const conv::Problem p{direction, DType::Float32, 0, 0, 0, std::nullopt, conv_params_of(s)};
        for (const ConvHopperProduct& c : conv_hopper_products(p, kind, 132)) {
          const bool weight = direction == conv::Direction::Weight;
          EXPECT_GE(c.tiles.columns, weight ? 128 : 64);
          EXPECT_LE(c.tiles.columns, kind == Kind::Half ? 256 : 128);
          const int64_t length = divide_up(c.steps, c.tiles.pieces);
          EXPECT_LT((c.tiles.pieces - 1) * length, c.steps);
          const ConvHopperVariant v{kind, c.tiles.columns, weight, false};
          EXPECT_GE(v.stages(), 2);
          EXPECT_LE(v.stages() * bf16_parts_of(kind) * (128 + v.columns) * 128, 226 * 1024 - 1024);
        }
      }
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_hopper
