// Operands of convolutions on Hopper's matrix units: read in place, or staged (operands.cl).
#include "call/divide_up.h"
#include "convolution.h"
#include "kernels/nvidia_hopper/conv.h"
#include "nvidia_hopper/provider.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using Kind = ConvHopperKind;

constexpr int64_t kLineBytes = 16;                    // lines must be multiples of it
constexpr int64_t kMostStep = int64_t{1} << 36;       // bytes: 32 bits of units of 16 bytes
constexpr int64_t kPadding = 8;                       // elements; staged lines are multiples of it
constexpr int64_t kTilePixels = 64, kTileLines = 32;  // of operands.cl
constexpr int64_t kTileChannels = 64;
constexpr int64_t kItems = 256;

int64_t padded(int64_t channels) { return divide_up(channels, kPadding) * kPadding; }
bool is_step(int64_t bytes) { return bytes > 0 && bytes < kMostStep && bytes % kLineBytes == 0; }

// A view of the big or the small tensor; with cells, these are its pixels.
struct MapView {
  tb_address address;
  int64_t images, channels, y, x;
  const tk_i64* strides;
  const ConvHopperCells* cells;  // or nullptr
  int64_t pixels() const { return images * y * x; }
  std::array<int64_t, 8> layout() const {
    return {images, channels, y, x, strides[0], strides[1], strides[3], strides[4]};
  }
};
MapView big_view(const ConvHopperProblem& p) {
  const ConvParams& g = p.params;
  if (!p.cells) return {p.big, g.batch, g.big_channels, g.in[1], g.in[2], g.big_strides, nullptr};
  const int64_t row = g.out[2] + p.cells->run - 1;
  return {p.big, g.batch, p.cells->numbers(), g.in[1], row, g.big_strides, &*p.cells};
}
MapView small_view(const ConvHopperProblem& p) {
  const ConvParams& g = p.params;
  return {p.small, g.batch, g.small_channels, g.out[1], g.out[2], g.small_strides, nullptr};
}

// The map itself, if the engine can read it in place. A dimension of one element may have any
// stride.
std::optional<ConvHopperMap> readable(const MapView& v, Kind kind) {
  const int64_t item = item_of(kind);
  if (bf16_parts_of(kind) > 1 || v.cells != nullptr || v.address % kLineBytes != 0 ||
      v.strides[1] != 1)
    return std::nullopt;
  const int64_t nearest = v.x > 1        ? v.strides[4]
                          : v.y > 1      ? v.strides[3]
                          : v.images > 1 ? v.strides[0]
                                         : padded(v.channels);
  ConvHopperMap m{v.address, v.channels, v.x, v.y, v.images, nearest * item, 0, 0};
  m.y_step = v.y > 1 ? v.strides[3] * item : m.x_step * v.x;
  m.image_step = v.images > 1 ? v.strides[0] * item : m.y_step * v.y;
  if (!is_step(m.x_step) || !is_step(m.y_step) || !is_step(m.image_step)) return std::nullopt;
  return m;
}
// Whether the pixels of all images are equally far apart.
bool is_one_line(const ConvHopperMap& m) {
  return m.y_step == m.x * m.x_step && m.image_step == m.y * m.y_step;
}

// Memory for bf16 parts of lines of `line` numbers.
const Scratch& memory_of_lines(const OpCall& call, Kind kind, int64_t lines, int64_t line,
                               std::vector<Scratch>& memory) {
  memory.push_back(
      call.scratch(static_cast<uint64_t>(bf16_parts_of(kind) * lines * line * item_of(kind))));
  return memory.back();
}
// A view's staged pixels, or runs of its cells, of `line` numbers each.
ConvHopperMap map_of(const Scratch& bf16_parts, const MapView& v, Kind kind, int64_t line) {
  const int64_t step = line * item_of(kind), run = v.cells != nullptr ? v.cells->run : 1;
  return {.address = bf16_parts.address(),
          .channels = v.cells != nullptr ? run * line : v.channels,
          .x = v.x - (run - 1),
          .y = v.y,
          .images = v.images,
          .x_step = step,
          .y_step = step * v.x,
          .image_step = step * v.x * v.y};
}

ConvHopperMap stage_pixels(const OpCall& call, const ConvHopperProblem& p, Kind kind,
                           const MapView& v, const matmul::Guard& guard,
                           std::vector<Scratch>& memory) {
  const int64_t line = padded(v.channels);
  const Scratch& bf16_parts = memory_of_lines(call, kind, v.pixels(), line, memory);
  const auto i32 = [](int64_t n) { return static_cast<tk_i32>(n); };
  const ConvStageParams params{.image_stride = v.strides[0],
                               .channel_stride = v.strides[1],
                               .y_stride = v.strides[3],
                               .x_stride = v.strides[4],
                               .pixels = i32(v.pixels()),
                               .channels = i32(v.channels),
                               .padded = i32(line),
                               .height = i32(v.y),
                               .width = i32(v.x)};
  Defines d;
  d.type(define::TYPE, p.dtype).set(define::BF16_PARTS, bf16_parts_of(kind));
  const int64_t wide = line <= kTileChannels / 2 ? kTileChannels / 2 : kTileChannels;
  d.set(define::NEAR, v.strides[1] == 1).set(define::CELLS, false).set(define::WIDE, wide);
  call.launch(kernels::nvidia_hopper::conv::operands::stage_map, d,
              {.bf16_parts = bf16_parts,
               .map = MemoryRange(v.address, 0, 1),
               .word = guard.memory(),
               .stop = guard.value,
               .p = params})
      .run({divide_up(v.pixels(), kTilePixels) * kItems, divide_up(line, wide), 1}, {kItems, 1, 1});
  return map_of(bf16_parts, v, kind, line);
}

ConvHopperMap stage_cells(const OpCall& call, const ConvHopperProblem& p, Kind kind,
                          const MapView& v, const matmul::Guard& guard,
                          std::vector<Scratch>& memory) {
  constexpr int64_t kPart = 512;           // numbers, as in operands.cl
  constexpr int64_t kGroupEighths = 2048;  // of a work-group: eight for each work-item
  const ConvHopperCells& cells = *v.cells;
  const int64_t line = cells.padded();
  const Scratch& bf16_parts = memory_of_lines(call, kind, v.pixels(), line, memory);
  const auto i32 = [](int64_t n) { return static_cast<tk_i32>(n); };
  const int64_t group = kGroupEighths / (std::min(line, kPart) / kPadding);
  const ConvStageCellsParams params{.image_stride = v.strides[0],
                                    .channel_stride = v.strides[1],
                                    .y_stride = v.strides[3],
                                    .x_stride = v.strides[4],
                                    .cells = i32(v.pixels()),
                                    .rows = i32(cells.rows),
                                    .columns = i32(cells.columns),
                                    .channels = i32(cells.channels),
                                    .padded = i32(line),
                                    .height = i32(v.y),
                                    .width = i32(v.x),
                                    .step_y = i32(cells.step_y),
                                    .step_x = i32(cells.step_x),
                                    .low_y = i32(cells.low_y),
                                    .low_x = i32(cells.low_x),
                                    .map_height = i32(cells.height),
                                    .map_width = i32(cells.width),
                                    .cells_of_group = i32(group)};
  Defines d;
  d.type(define::TYPE, p.dtype).set(define::BF16_PARTS, bf16_parts_of(kind));
  d.set(define::NEAR, true).set(define::CELLS, false).set(define::WIDE, kTileChannels);
  call.launch(kernels::nvidia_hopper::conv::operands::stage_cells, d,
              {.bf16_parts = bf16_parts,
               .map = MemoryRange(v.address, 0, 1),
               .word = guard.memory(),
               .stop = guard.value,
               .p = params})
      .run({divide_up(v.pixels(), group) * kItems, divide_up(line, kPart), 1}, {kItems, 1, 1});
  return map_of(bf16_parts, v, kind, line);
}

// What the gradients of the call share; nullptr: nothing.
ConvHopperShared* shared_of(const OpCall& call, const conv::Problem& p) {
  return p.shared == nullptr ? nullptr : p.shared->of<ConvHopperShared>(call, &kNvidiaHopper);
}

// A staged map, made once per call if the gradients share it.
ConvHopperMap staged_map(const OpCall& call, const ConvHopperProblem& p, Kind kind,
                         const MapView& v, const matmul::Guard& guard,
                         std::vector<Scratch>& memory) {
  const auto make = v.cells != nullptr ? stage_cells : stage_pixels;
  ConvHopperShared* shared = shared_of(call, p);
  if (shared == nullptr) return make(call, p, kind, v, guard, memory);
  for (const ConvHopperShared::Staged& s : shared->maps)
    if (s.address == v.address && s.layout == v.layout() && s.kind == kind) return s.map;
  const ConvHopperMap map = make(call, p, kind, v, guard, shared->memory);
  shared->maps.push_back({v.address, v.layout(), kind, map});
  return map;
}

// The pixels of a map as lines of channels.
ConvHopperLines pixel_lines(const ConvHopperMap& m) {
  const int64_t pixels = m.images * m.y * m.x, bf16_part = pixels * m.x_step;
  return {m.address, m.channels, pixels, 1, m.x_step, bf16_part, bf16_part};
}

// The weight as the product's operand: one row for each column of the product; sums run over
// `inner` channels.
struct WeightView {
  tb_address address;
  int64_t rows, inner, y, x;
  int64_t row_stride, inner_stride, y_stride, x_stride;
  const ConvHopperCells* cells;  // or nullptr
  int64_t taps() const { return y * x; }
};
WeightView weight_view(const ConvHopperProblem& p) {
  const ConvParams& g = p.params;
  const auto& s = g.weight_strides;
  const bool data = p.direction == conv::Direction::Data;
  return {p.weight,
          data ? g.big_channels : g.small_channels,
          data ? g.small_channels : g.big_channels,
          g.window[1],
          g.window[2],
          s[data ? 1 : 0],
          s[data ? 0 : 1],
          s[3],
          s[4],
          p.cells ? &*p.cells : nullptr};
}

std::optional<ConvHopperLines> readable(const WeightView& v, Kind kind) {
  const int64_t item = item_of(kind);
  if (bf16_parts_of(kind) > 1 || v.address % kLineBytes != 0 || v.inner_stride != 1 ||
      v.cells != nullptr)
    return std::nullopt;
  const bool one_line = v.y == 1 || v.x == 1 || v.y_stride == v.x * v.x_stride;
  const int64_t tap = v.x > 1 ? v.x_stride : v.y > 1 ? v.y_stride : padded(v.inner);
  const int64_t row = v.rows > 1 ? v.row_stride : padded(v.inner) * v.taps();
  if (!one_line || !is_step(tap * item) || !is_step(row * item)) return std::nullopt;
  return ConvHopperLines{v.address,          v.inner, v.rows, v.taps(), row * item, tap * item,
                         row * item * v.rows};
}

ConvHopperLines staged_weight(const OpCall& call, const ConvHopperProblem& p, Kind kind,
                              const WeightView& v, const matmul::Guard& guard,
                              std::vector<Scratch>& memory) {
  const int64_t line = padded(v.inner), lines = v.rows * v.taps();
  const Scratch& bf16_parts = memory_of_lines(call, kind, lines, line, memory);
  const ConvHopperCells cells = v.cells != nullptr ? *v.cells : ConvHopperCells{};
  const auto i32 = [](int64_t n) { return static_cast<tk_i32>(n); };
  const ConvStageWeightParams params{.row_stride = v.row_stride,
                                     .inner_stride = v.inner_stride,
                                     .y_stride = v.y_stride,
                                     .x_stride = v.x_stride,
                                     .lines = i32(lines),
                                     .taps = i32(v.taps()),
                                     .row_taps = i32(v.x),
                                     .inner = i32(v.inner),
                                     .padded = i32(line),
                                     .rows = v.row_stride == 1 ? i32(v.rows) : 0,
                                     .cell = i32(cells.padded()),
                                     .cell_rows = i32(cells.rows),
                                     .cell_columns = i32(cells.columns),
                                     .cell_channels = i32(cells.channels),
                                     .window_y = i32(cells.window_y),
                                     .window_x = i32(cells.window_x),
                                     .dilation_y = i32(cells.dilation_y),
                                     .dilation_x = i32(cells.dilation_x)};
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::BF16_PARTS, bf16_parts_of(kind))
      .set(define::NEAR, false)
      .set(define::CELLS, v.cells != nullptr)
      .set(define::WIDE, kTileChannels);
  call.launch(kernels::nvidia_hopper::conv::operands::stage_weight, d,
              {.bf16_parts = bf16_parts,
               .weight = MemoryRange(v.address, 0, 1),
               .word = guard.memory(),
               .stop = guard.value,
               .p = params})
      .run({divide_up(lines, kTileLines) * kItems, divide_up(line, kTileChannels), 1},
           {kItems, 1, 1});
  const int64_t step = line * item_of(kind);
  return {bf16_parts.address(), v.inner, v.rows, v.taps(), step * v.taps(), step, step * lines};
}

}  // namespace

ConvHopperOperands::ConvHopperOperands(const OpCall& call, const ConvHopperProblem& p, Kind kind,
                                       const matmul::Guard& guard) {
  const MapView windows = p.direction == conv::Direction::Data ? small_view(p) : big_view(p);
  const auto direct_map = readable(windows, kind);
  map_ = direct_map ? *direct_map : staged_map(call, p, kind, windows, guard, memory_);
  if (p.direction == conv::Direction::Weight) {
    const MapView positions = small_view(p);
    const auto direct = readable(positions, kind);
    lines_ = pixel_lines(direct && is_one_line(*direct)
                             ? *direct
                             : staged_map(call, p, kind, positions, guard, memory_));
    return;
  }
  const WeightView weight = weight_view(p);
  const auto direct = readable(weight, kind);
  lines_ = direct ? *direct : staged_weight(call, p, kind, weight, guard, memory_);
}

matmul::Guard hopper_guard(const OpCall& call, const ConvHopperProblem& p, Kind kind,
                           std::vector<Scratch>& memory) {
  if (bf16_parts_of(kind) == 1) return {};
  ConvHopperShared* shared = shared_of(call, p);
  if (shared != nullptr && shared->guard.word != 0) return shared->guard;
  std::vector<Scratch>& owner = shared != nullptr ? shared->memory : memory;
  owner.push_back(call.scratch(sizeof(uint32_t)));
  const matmul::Guard guard{owner.back().address(), matmul::next_guard_value()};
  if (shared != nullptr) shared->guard = guard;
  return guard;
}

int64_t hopper_bf16_parts_bytes(const ConvHopperProblem& p, Kind kind) {
  const MapView big = big_view(p), small = small_view(p);
  const WeightView weight = weight_view(p);
  const int64_t bytes = bf16_parts_of(kind) * item_of(kind);
  const int64_t bigs = big.pixels() * padded(big.channels) * bytes;
  const int64_t smalls = small.pixels() * padded(small.channels) * bytes;
  const int64_t weights = weight.rows * weight.taps() * padded(weight.inner) * bytes;
  switch (p.direction) {
    case conv::Direction::Forward: return bigs + weights;
    case conv::Direction::Data: return smalls + weights;
    default: return bigs + smalls;
  }
}

}  // namespace ocltensor::opencl::nvidia_hopper
