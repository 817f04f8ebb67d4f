// Axes, tiles and tensor maps of convolutions on Hopper's matrix units.
#include "plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "call/divide_up.h"
#include "kernels/defines.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using Kind = ConvHopperKind;

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kColumnBlock = 64;  // columns that a copy brings to a gradient of weights

// Channels of the map: for Forward and Data those that are summed, for Weight those of the big
// tensor.
int64_t map_channels(const conv::Problem& p) {
  return p.direction == conv::Direction::Data ? p.params.small_channels : p.params.big_channels;
}

ConvHopperProduct product_of(const conv::Problem& p, Kind kind, const ConvHopperAxis& y,
                             const ConvHopperAxis& x) {
  const ConvParams& g = p.params;
  const int64_t blocks = divide_up(map_channels(p), block_of(kind));
  const int64_t positions = g.batch * y.positions * x.positions, taps = y.taps * x.taps;
  switch (p.direction) {
    case conv::Direction::Forward: return {y, x, positions, g.small_channels, taps * blocks, {}};
    case conv::Direction::Data: return {y, x, positions, g.big_channels, taps * blocks, {}};
    default:
      return {y,
              x,
              g.small_channels,
              taps * blocks * kColumnBlock,
              divide_up(positions, block_of(kind)),
              {}};
  }
}

// At most how many pieces: a launch with one dimension over rows adds the partial sums of a map, so
// rows must be few.
int64_t most_pieces(const conv::Problem& p, const ConvHopperProduct& c) {
  constexpr int64_t kMostRows = 1 << 16, kMostOfMap = 12;
  if (p.direction == conv::Direction::Weight) return kMostPieces;
  return std::max(c.m, c.n) < kMostRows ? kMostOfMap : 1;
}

// Limits of the tensor map's words 13 and 14: a corner is a signed byte, a step has three bits.
bool is_axis_encodable(const ConvHopperAxis& a) {
  constexpr int64_t kCorner = 128, kStep = 8, kOffset = 255;
  const auto fits = [](int64_t corner) { return corner >= -kCorner && corner < kCorner; };
  return a.stride >= 1 && a.stride <= kStep && fits(a.corner_low) && fits(a.corner_high) &&
         (a.taps - 1) * a.tap_distance <= kOffset;
}

// Calls body(y, x) for every pair of axes that has taps.
template <typename Body>
void for_each_product(const conv::Problem& p, Body&& body) {
  const ConvParams& g = p.params;
  if (p.direction != conv::Direction::Data)
    return body(forward_hopper_axis(g, 1), forward_hopper_axis(g, 2));
  for (int64_t i = 0; i < std::min<int64_t>(g.stride[1], g.in[1]); ++i)
    for (int64_t j = 0; j < std::min<int64_t>(g.stride[2], g.in[2]); ++j) {
      const ConvHopperAxis y = data_hopper_axis(g, 1, i), x = data_hopper_axis(g, 2, j);
      if (y.taps > 0 && x.taps > 0) body(y, x);
    }
}

}  // namespace

Defines ConvHopperVariant::defines() const {
  constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float32,
                              DType::Float32};
  Defines d;
  d.type(define::TYPE, kTypes[static_cast<int>(kind)]).set(define::BF16_PARTS, bf16_parts_of(kind));
  d.set(define::TF32, kind == Kind::Tf32).set(define::BN, columns).set(define::STAGES, stages());
  d.set(define::WEIGHT, weight).set(define::PARTIAL, partial);
  return d.set(define::ADD_SELF, bias).set(define::CHANNELS_LAST, channels_last);
}

// The box in which the engine's windows begin may end up to stride - 1 elements after the last
// position's window.
ConvHopperAxis forward_hopper_axis(const ConvParams& g, size_t d) {
  const int64_t reach = (g.window[d] - 1) * g.dilation[d];
  const int64_t room = (g.in[d] + 2 * g.padding[d] - reach - 1) / g.stride[d] + 1 - g.out[d];
  return {.positions = g.out[d],
          .stride = g.stride[d],
          .corner_low = -g.padding[d],
          .corner_high = g.padding[d] - reach - room * g.stride[d],
          .taps = g.window[d],
          .tap_distance = g.dilation[d],
          .first_tap = 0,
          .tap_step = 1,
          .result_begin = 0,
          .result_step = 1};
}

// Element e of the big map is the sum over taps k and positions o with e = o * stride - padding + k
// * dilation. For e = begin + i * stride, o = i + (begin + padding - k * dilation) / stride, for
// those k for which the division is exact: every `step`-th one. The tap with the lowest offset is
// the last.
ConvHopperAxis data_hopper_axis(const ConvParams& g, size_t d, int64_t begin) {
  const int64_t stride = g.stride[d], dilation = g.dilation[d];
  const int64_t common = std::gcd(stride, dilation), step = stride / common;
  ConvHopperAxis a{.positions = divide_up(g.in[d] - begin, stride),
                   .stride = 1,
                   .corner_low = 0,
                   .corner_high = 0,
                   .taps = 0,
                   .tap_distance = dilation / common,
                   .first_tap = 0,
                   .tap_step = -step,
                   .result_begin = begin,
                   .result_step = stride};
  for (int64_t k = 0; k < g.window[d]; ++k) {
    const int64_t distance = begin + g.padding[d] - k * dilation;
    if (distance % stride != 0) continue;
    ++a.taps;
    a.first_tap = k;
    a.corner_low = distance / stride;
  }
  a.corner_high = a.positions - g.out[d] + a.corner_low;
  return a;
}

ConvHopperProblem::ConvHopperProblem(const conv::Problem& p) : conv::Problem(p) {
  ConvParams& g = params;
  if (direction == conv::Direction::Data) return;
  for (size_t d = 1; d < 3; ++d) {
    if (g.window[d] != 1 || g.padding[d] != 0) continue;
    g.in[d] = g.out[d];
    g.big_strides[d + 2] *= g.stride[d];
    g.stride[d] = 1;
    g.dilation[d] = 1;
  }
  cells = cells_of(g);
  if (cells) g = params_of_cells(*cells, g);
}

std::vector<ConvHopperProduct> conv_hopper_products(const ConvHopperProblem& p, Kind kind,
                                                    int64_t units) {
  const bool weight = p.direction == conv::Direction::Weight;
  std::vector<ConvHopperProduct> list;
  for_each_product(p, [&](const ConvHopperAxis& y, const ConvHopperAxis& x) {
    ConvHopperProduct c = product_of(p, kind, y, x);
    HopperSizes sizes{1, c.m, c.n, c.steps, units, bf16_parts_of(kind) > 1};
    sizes.least_columns = weight ? 128 : 64;
    sizes.most_columns = kind == Kind::Half || kind == Kind::BFloat ? 256 : 128;
    sizes.most_pieces = most_pieces(p, c);
    c.tiles = choose_hopper_tiles(sizes);
    list.push_back(c);
  });
  return list;
}

bool covers_result(const ConvHopperProblem& p) {
  if (p.direction != conv::Direction::Data) return true;
  int64_t elements = 0;
  for_each_product(p, [&](const ConvHopperAxis& y, const ConvHopperAxis& x) {
    elements += y.positions * x.positions;
  });
  return elements == p.params.in[1] * p.params.in[2];
}

const char* refuse_hopper_geometry(const ConvHopperProblem& p, Kind kind) {
  const ConvParams& g = p.params;
  if (g.groups != 1) return "there are groups";
  if (g.in[0] != 1 || g.out[0] != 1 || g.window[0] != 1 || g.padding[0] != 0)
    return "there are three dimensions";
  const int64_t row = g.in[2] + (p.cells ? p.cells->run - 1 : 0);
  const int64_t in = g.in[1] * row, out = g.out[1] * g.out[2], taps = g.window[1] * g.window[2];
  if (g.batch == 0 || in == 0 || out == 0 || taps == 0 || g.big_channels * g.small_channels == 0)
    return "nothing to sum";
  constexpr int64_t kMostChannels = (1 << 16) - 1;
  const int64_t channels = std::max(g.big_channels, g.small_channels);
  if (std::max(in, out) > kMost || channels > kMostChannels || taps > kMostChannels ||
      g.batch > kMost / bf16_parts_of(kind) / std::max(in, out) - kHopperRows)
    return "the sizes need 64 bits";
  const auto& strides = p.direction == conv::Direction::Forward ? g.small_strides : g.big_strides;
  if (std::abs(strides[1]) > kMost) return "the sizes need 64 bits";
  const char* reason = nullptr;
  for_each_product(p, [&](const ConvHopperAxis& y, const ConvHopperAxis& x) {
    const ConvHopperProduct c = product_of(p, kind, y, x);
    if (!is_axis_encodable(y) || !is_axis_encodable(x))
      reason = "the copy engine takes no such window";
    else if (std::max(c.n, c.steps) > kMost - 256 ||
             divide_up(c.m, kHopperRows) * divide_up(c.n, kColumnBlock) > kMost / most_pieces(p, c))
      reason = "the sizes need 64 bits";
  });
  return reason;
}

void write_im2col_map(tk_u32 (&words)[CONV_MAP_WORDS], const ConvHopperMap& map, int64_t bf16_parts,
                      Kind kind, const ConvHopperAxis& y, const ConvHopperAxis& x, int64_t pixels) {
  constexpr uint32_t kIm2col = 0x6031;  // 128-byte swizzle, four dimensions, im2col
  constexpr uint32_t kTypes[] = {6u << 7, 10u << 7, 7u << 7 | 1u << 16, 10u << 7, 10u << 7};
  const auto word = [](int64_t v) { return static_cast<uint32_t>(v); };
  const auto byte = [](int64_t v) { return static_cast<uint32_t>(v) & 255u; };
  std::fill(std::begin(words), std::end(words), 0u);
  words[2] = kIm2col | kTypes[static_cast<int>(kind)];
  words[3] = word(map.x_step / 16);
  words[4] = word(map.y_step / 16);
  words[5] = word(map.image_step / 16);
  words[8] = word(map.channels - 1);
  words[9] = word(map.x - 1);
  words[10] = word(map.y - 1);
  words[11] = word(map.images * bf16_parts - 1);
  words[13] = word(block_of(kind) - 1) << 24 | word(x.stride - 1) << 3 | word(y.stride - 1) << 6;
  words[14] = byte(x.corner_low) | byte(y.corner_low) << 8 | byte(x.corner_high) << 16 |
              byte(y.corner_high) << 24;
  words[15] = word(pixels - 1);
  words[16] = word(pixels * 128);
  words[18] = 0x400;
}

ConvHopperParams conv_hopper_params(const ConvHopperProblem& problem, Kind kind,
                                    const ConvHopperProduct& c, const ConvHopperMap& map,
                                    const ConvHopperLines& lines) {
  const bool weight = problem.direction == conv::Direction::Weight;
  const int64_t window_x = problem.params.window[2], block = block_of(kind);
  const auto i32 = [](int64_t v) { return static_cast<tk_i32>(v); };
  ConvHopperParams p{};
  p.m = i32(c.m);
  p.n = i32(c.n);
  p.steps = i32(c.steps);
  p.pieces = i32(c.tiles.pieces);
  p.piece_steps = i32(divide_up(c.steps, c.tiles.pieces));
  p.blocks = i32(divide_up(map.channels, block));
  p.images = i32(map.images);
  p.positions = i32(c.y.positions * c.x.positions);
  p.row_positions = i32(c.x.positions);
  p.step_y = i32(c.y.stride);
  p.step_x = i32(c.x.stride);
  p.low_y = i32(c.y.corner_low);
  p.low_x = i32(c.x.corner_low);
  p.row_taps = i32(c.x.taps);
  p.delta_y = i32(c.y.tap_distance);
  p.delta_x = i32(c.x.tap_distance);
  p.first_tap = i32(c.y.first_tap * window_x + c.x.first_tap);
  p.tap_step_y = i32(c.y.tap_step * window_x);
  p.tap_step_x = i32(c.x.tap_step);
  write_im2col_map(p.map, map, bf16_parts_of(kind), kind, c.y, c.x, weight ? block : kHopperRows);
  const int64_t sizes[] = {lines.inner, lines.rows, lines.taps, bf16_parts_of(kind)};
  for (size_t d = 0; d < 4; ++d) p.line_sizes[d] = static_cast<tk_u32>(sizes[d]);
  p.line_strides[0] = static_cast<tk_u64>(lines.row_step);
  p.line_strides[1] = static_cast<tk_u64>(lines.tap_step);
  p.line_strides[2] = static_cast<tk_u64>(lines.bf16_part_step);
  return p;
}

}  // namespace ocltensor::opencl::nvidia_hopper
