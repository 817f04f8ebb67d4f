// Convolutions on matrix units on any device: staging and sums by their kernels, the product
// emulated, against the definition; and what the guard does with numbers that do not split.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "call/proof_numbers.h"
#include "conv_engine.h"
#include "nvidia_hopper/conv/convolution.h"
#include "plugin/any_call.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using Kind = ConvHopperKind;

std::vector<float> numbers_at(const OpCall& call, tb_address from, int64_t bytes, DType type) {
  return ProofNumbers(call).download(from, type, bytes / size_of(type));
}
void put_numbers(const OpCall& call, tb_address to, const std::vector<float>& list, DType type) {
  ProofNumbers numbers(call);
  const Dims sizes{static_cast<int64_t>(list.size())};
  copy_tensor(call, LocalTensor(to, type, sizes),
              LocalTensor(numbers.upload(list, type), type, sizes));
}

DType inside_type(Kind kind) {
  return kind == Kind::Half   ? DType::Float16
         : kind == Kind::Tf32 ? DType::Float32
                              : DType::BFloat16;
}
DType outside_type(Kind kind) {
  return kind == Kind::Half     ? DType::Float16
         : kind == Kind::BFloat ? DType::BFloat16
                                : DType::Float32;
}

// As run_hopper_convolution, with the kernel on the host.
void run_emulated(const OpCall& call, const conv::Problem& original, Kind kind, int64_t pieces,
                  const std::vector<float>& bias, int64_t out_count) {
  const ConvHopperProblem p = original;
  const bool weight = p.direction == conv::Direction::Weight;
  const Scratch word(call.scratch(sizeof(uint32_t)));
  matmul::Guard guard;
  if (bf16_parts_of(kind) > 1) guard = {word.address(), matmul::next_guard_value()};
  const ConvHopperOperands operands(call, p, kind, guard);
  const ConvHopperMap& m = operands.map();
  const ConvHopperLines& l = operands.lines();
  const int64_t item = item_of(kind), bf16_parts = bf16_parts_of(kind);
  const int64_t map_bytes = (bf16_parts * m.images - 1) * m.image_step + (m.y - 1) * m.y_step +
                            (m.x - 1) * m.x_step + m.channels * item;
  const int64_t line_bytes = (bf16_parts - 1) * l.bf16_part_step + (l.rows - 1) * l.row_step +
                             (l.taps - 1) * l.tap_step + l.inner * item;
  const std::vector<float> map = numbers_at(call, m.address, map_bytes, inside_type(kind));
  const std::vector<float> lines = numbers_at(call, l.address, line_bytes, inside_type(kind));
  int64_t misses = 0;
  const tb_address out = p.direction == conv::Direction::Forward ? p.small
                         : p.direction == conv::Direction::Data  ? p.big
                                                                 : p.weight;
  for (ConvHopperProduct& c : conv_hopper_products(p, kind, 132)) {
    c.tiles.pieces = divide_up(c.steps, divide_up(c.steps, std::min(pieces, c.steps)));
    const ConvHopperResult result(call, p, kind, c);
    ConvHopperParams params = conv_hopper_params(p, kind, c, m, l);
    result.describe(params);
    const bool partial = kind == Kind::Half && !weight && c.tiles.pieces > 1;
    const DType type = result.in_pieces() ? DType::Float32 : p.dtype;
    const int64_t offset =
        result.in_pieces() ? 0
                           : static_cast<int64_t>(result.memory().address - out) / size_of(type);
    const tb_address begin = result.in_pieces() ? result.memory().address : out;
    const int64_t count = result.in_pieces() ? result.memory().high / 4 : out_count;
    std::vector<float> left = numbers_at(call, begin, count * size_of(type), type);
    const bool has_bias = p.bias && !result.in_pieces();
    ConvHopperEngine engine(params, {kind, c.tiles.columns, weight, partial, has_bias},
                            {&map, item, &misses}, {&lines, item, &misses}, bias);
    engine.run([&](int64_t at, double v) {
      left.at(static_cast<size_t>(offset + at)) = static_cast<float>(v);
    });
    put_numbers(call, begin, left, type);
    result.finish(call, guard);
  }
  EXPECT_EQ(misses, 0);
}

void check_shape(const ConvShape& shape, conv::Direction direction, Kind kind, int64_t pieces) {
  const AnyCall any;
  const OpCall& call = *any;
  ProofNumbers numbers(call);
  const ConvParams g = conv_params_of(shape);
  const int64_t counts[3] = {g.batch * g.big_channels * g.in[1] * g.in[2],
                             g.batch * g.small_channels * g.out[1] * g.out[2],
                             g.small_channels * g.big_channels * g.window[1] * g.window[2]};
  const size_t out = direction == conv::Direction::Forward ? 1
                     : direction == conv::Direction::Data  ? 0
                                                           : 2;
  std::vector<float> host[3];
  tb_address memory[3];
  for (size_t t = 0; t < 3; ++t) {
    const bool fine = bf16_parts_of(kind) > 1 && t == (out + 1) % 3;
    host[t] = t == out ? std::vector<float>(static_cast<size_t>(counts[t]), 9.0f)
                       : numbers.draw(counts[t], fine ? 30000 : 1);
    if (fine && bf16_parts_of(kind) == 3)
      for (float& x : host[t]) x = x * 8 + 3;
    memory[t] = numbers.upload(host[t], outside_type(kind));
  }
  conv::Problem p{direction, outside_type(kind), memory[0], memory[1], memory[2], std::nullopt, g};
  std::vector<float> bias;
  if (direction != conv::Direction::Weight) {
    bias = numbers.draw(out == 0 ? g.big_channels : g.small_channels, 4);
    p.bias = numbers.upload(bias, outside_type(kind));
  }
  std::vector<float> want(host[out].size(), 0.0f);
  if (!bias.empty()) {
    const int64_t apart = (out == 0 ? g.big_strides : g.small_strides)[1];
    for (size_t i = 0; i < want.size(); ++i)
      want[i] = bias[i / static_cast<size_t>(apart) % bias.size()];
  }
  for_each_conv_term(g, [&](int64_t big, int64_t small, int64_t weight) {
    const int64_t at[3] = {big, small, weight};
    const auto number = [&](size_t t) { return host[t][static_cast<size_t>(at[t])]; };
    want[static_cast<size_t>(at[out])] += number((out + 1) % 3) * number((out + 2) % 3);
  });
  if (!covers_result(p)) {  // as run_hopper_convolution does
    for (size_t i = 0; i < host[0].size(); ++i)
      host[0][i] = bias[i / static_cast<size_t>(g.big_strides[1]) % bias.size()];
    put_numbers(call, memory[0], host[0], outside_type(kind));
  }
  run_emulated(call, p, kind, pieces, bias, counts[out]);
  EXPECT_EQ(numbers.download(memory[out], outside_type(kind), counts[out]), want);
}

constexpr ConvShape kShapes[] = {{.batch = 2,
                                  .big = 72,
                                  .small = 41,
                                  .y = 7,
                                  .x = 6,
                                  .window_y = 3,
                                  .window_x = 2,
                                  .stride_y = 2,
                                  .stride_x = 2,
                                  .pad_y = 1},
                                 {.batch = 3,
                                  .big = 24,
                                  .small = 136,
                                  .y = 9,
                                  .x = 5,
                                  .window_y = 2,
                                  .window_x = 3,
                                  .pad_y = 1,
                                  .pad_x = 2,
                                  .dilation_x = 2},
                                 {.batch = 5,
                                  .big = 64,
                                  .small = 70,
                                  .y = 9,
                                  .x = 8,
                                  .window_y = 1,
                                  .window_x = 1,
                                  .stride_y = 2,
                                  .stride_x = 2},
                                 {.batch = 2,
                                  .big = 3,
                                  .small = 20,
                                  .y = 8,
                                  .x = 13,
                                  .window_y = 3,
                                  .window_x = 7,
                                  .stride_y = 2,
                                  .stride_x = 2,
                                  .pad_y = 1,
                                  .pad_x = 3},
                                 {.batch = 2,
                                  .big = 5,
                                  .small = 17,
                                  .y = 6,
                                  .x = 11,
                                  .window_y = 2,
                                  .window_x = 4,
                                  .stride_x = 3,
                                  .pad_x = 4,
                                  .dilation_x = 2}};

class ConvHopperChain : public testing::Test {
 protected:
  void SetUp() override {
    if (device_list().devices.empty()) GTEST_SKIP() << "no device";
  }
};

TEST_F(ConvHopperChain, StagedOperandsAndSumsAreConvolutions) {
  for (size_t i = 0; i < std::size(kShapes); ++i)
    for (const bool channels_last : {false, true})
      for (const Kind kind : {Kind::Half, Kind::BFloat, Kind::Tf32, Kind::Bf16x2, Kind::Bf16x3})
        for (const conv::Direction direction :
             {conv::Direction::Forward, conv::Direction::Data, conv::Direction::Weight}) {
          if (kind == Kind::Tf32 && direction == conv::Direction::Weight) continue;
          if (kind == Kind::BFloat && (i != 1 || channels_last)) continue;
          ConvShape shape = kShapes[i];
          shape.channels_last = channels_last;
          SCOPED_TRACE(testing::Message()
                       << "shape " << i << (channels_last ? " channels last" : "") << " kind "
                       << static_cast<int>(kind) << " "
                       << conv::kDirectionNames[static_cast<int>(direction)]);
          check_shape(shape, direction, kind, channels_last ? 1 : 2);
          if (kind == Kind::Half && i == 1)
            check_shape(shape, direction, kind, channels_last ? 3 : 1);
          if (HasFailure()) return;
        }
}

// Windows of any size, stride, padding and dilation over few channels, which are staged in cells.
TEST_F(ConvHopperChain, CellsOfFewChannelsAreConvolutions) {
  std::mt19937 random(20261127);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int in_cells = 0;
  for (int i = 0; i < 40; ++i) {
    ConvShape shape{.batch = draw(1, 3),
                    .big = draw(1, 6),
                    .small = draw(1, 20),
                    .y = 0,
                    .x = 0,
                    .window_y = draw(1, 7),
                    .window_x = draw(1, 7)};
    shape.stride_y = draw(1, 4);
    shape.stride_x = draw(1, 4);
    shape.pad_y = draw(0, 3);
    shape.pad_x = draw(0, 3);
    shape.dilation_y = i % 3 == 0 ? draw(1, 3) : 1;
    shape.dilation_x = i % 3 == 0 ? draw(1, 3) : 1;
    shape.y = draw(0, 9) + (shape.window_y - 1) * shape.dilation_y + 1;
    shape.x = draw(0, 9) + (shape.window_x - 1) * shape.dilation_x + 1;
    shape.channels_last = i % 2 == 0;
    SCOPED_TRACE(testing::Message()
                 << shape.batch << " " << shape.big << " " << shape.small << ", map " << shape.y
                 << " x " << shape.x << ", window " << shape.window_y << " x " << shape.window_x
                 << ", stride " << shape.stride_y << " x " << shape.stride_x << ", padding "
                 << shape.pad_y << " x " << shape.pad_x << ", dilation " << shape.dilation_y
                 << " x " << shape.dilation_x);
    in_cells += cells_of(conv_params_of(shape)).has_value() ? 1 : 0;
    const Kind kind = i % 5 == 4 ? Kind::Bf16x3 : Kind::Half;
    check_shape(shape, conv::Direction::Forward, kind, i % 2 + 1);
    check_shape(shape, conv::Direction::Weight, kind, i % 2 + 1);
    if (HasFailure()) return;
  }
  EXPECT_GE(in_cells, 20);
}

// The self-test expects what a plain kernel gives, and notices what it does not.
TEST_F(ConvHopperChain, SelfTestsAreRight) {
  const AnyCall any;
  for (const Kind kind : {Kind::BFloat, Kind::Bf16x3})
    for (const bool weight : {false, true}) {
      int runs = 0;
      EXPECT_EQ(wrong_convolution(*any, {kind, 128, weight, false, !weight},
                                  [&](const conv::Problem& p, int) {
                                    conv::run_guarded_convolution(*any, p, {});
                                    ++runs;
                                  }),
                "");
      EXPECT_EQ(runs, weight ? 3 : 6);
      const auto other_steps = [&](const conv::Problem& p, int) {
        conv::Problem q = p;
        q.params.stride[1] += 1;
        conv::run_guarded_convolution(*any, q, {});
      };
      EXPECT_NE(wrong_convolution(*any, {kind, 128, weight, false, !weight}, other_steps), "");
    }
}

// 16-bit maps whose lines are full vectors are read where they are.
TEST_F(ConvHopperChain, ReadsWhatItCanWhereItLies) {
  const AnyCall any;
  const Scratch memory((*any).scratch(1 << 20));
  ConvShape shape = kShapes[2];
  shape.channels_last = true;
  const auto addresses = [&](conv::Direction direction, const ConvParams& g, Kind kind) {
    const tb_address at = memory.address();
    const conv::Problem p{direction, outside_type(kind), at, at, at, std::nullopt, g};
    const ConvHopperOperands o(*any, p, kind, {});
    return std::pair{o.map().address == at, o.lines().address == at};
  };
  using Direct = std::pair<bool, bool>;
  const ConvParams g = conv_params_of(shape);  // 64 and 70 channels
  EXPECT_EQ(addresses(conv::Direction::Forward, g, Kind::Half), Direct(true, true));
  EXPECT_EQ(addresses(conv::Direction::Data, g, Kind::Half), Direct(false, false));
  EXPECT_EQ(addresses(conv::Direction::Weight, g, Kind::Half), Direct(true, false));
  EXPECT_EQ(addresses(conv::Direction::Forward, g, Kind::Tf32), Direct(true, true));
  shape.channels_last = false;
  EXPECT_EQ(addresses(conv::Direction::Forward, conv_params_of(shape), Kind::Half),
            Direct(false, true));
  shape.window_y = shape.window_x = 3;
  EXPECT_EQ(addresses(conv::Direction::Forward, conv_params_of(shape), Kind::Half),
            Direct(false, false));
  ConvParams gaps = g;  // images apart: one line of pixels no more
  gaps.small_channels = 72;
  for (const size_t d : {3, 4}) gaps.small_strides[d] = gaps.small_strides[d] / 70 * 72;
  gaps.small_strides[0] = gaps.out[1] * gaps.out[2] * 72 + 8;
  EXPECT_EQ(addresses(conv::Direction::Weight, gaps, Kind::Half), Direct(true, false));
  gaps.small_strides[0] -= 8;
  EXPECT_EQ(addresses(conv::Direction::Weight, gaps, Kind::Half), Direct(true, true));
  EXPECT_EQ(addresses(conv::Direction::Data, gaps, Kind::Half), Direct(true, false));
}

// Both gradients of a call read one staged copy, under one guard; the next call has its own.
TEST_F(ConvHopperChain, GradientsShareWhatTheyStage) {
  const AnyCall any;
  ProofNumbers numbers(*any);
  const ConvParams g = conv_params_of(kShapes[1]);
  const tb_address at = numbers.upload(numbers.draw(1 << 16, 1), DType::Float32);
  conv::Shared shared;
  conv::Problem p{conv::Direction::Data, DType::Float32, at, at + 4096, at, std::nullopt, g};
  p.shared = &shared;
  std::vector<Scratch> word;
  const matmul::Guard guard = hopper_guard(*any, p, Kind::Bf16x3, word);
  const ConvHopperOperands data(*any, p, Kind::Bf16x3, guard);
  p.direction = conv::Direction::Weight;
  EXPECT_EQ(hopper_guard(*any, p, Kind::Bf16x3, word).value, guard.value);
  const ConvHopperOperands weight(*any, p, Kind::Bf16x3, guard);
  EXPECT_EQ(data.map().address, weight.lines().address);
  EXPECT_NE(data.map().address, weight.map().address);
  EXPECT_EQ(static_cast<const ConvHopperShared*>(shared.kept.get())->maps.size(), 2u);
  EXPECT_TRUE(word.empty());
  const ConvHopperOperands other(*any, p, Kind::Bf16x2, guard);  // another form of it
  EXPECT_NE(other.lines().address, weight.lines().address);
  p.shared = nullptr;
  EXPECT_NE(hopper_guard(*any, p, Kind::Bf16x3, word).value, guard.value);
  EXPECT_EQ(word.size(), 1u);
}

// One number that does not split stops the product; the plain kernel then does the work, else none.
TEST_F(ConvHopperChain, RefusedNumbersSetTheGuard) {
  const AnyCall any;
  const OpCall& call = *any;
  ProofNumbers numbers(call);
  for (const bool channels_last : {false, true})
    for (const bool in_weight : {false, true})
      for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf(""), 0x1p64f,
                              -0x1p-110f, 0x1p-140f, 0x1p-109f, 0x1.8p63f, 0.0f}) {
        ConvShape shape = kShapes[1];
        shape.channels_last = channels_last;
        const ConvParams g = conv_params_of(shape);
        std::vector<float> big = numbers.draw(g.batch * 24 * 9 * 5, 1);
        std::vector<float> weight = numbers.draw(136 * 24 * 6, 1);
        (in_weight ? weight[weight.size() - 5] : big[777]) = bad;
        const int64_t count = g.batch * 136 * g.out[1] * g.out[2];
        const tb_address small =
            numbers.upload(std::vector<float>(static_cast<size_t>(count), 5.5f), DType::Float32);
        const conv::Problem p{conv::Direction::Forward,
                              DType::Float32,
                              numbers.upload(big, DType::Float32),
                              small,
                              numbers.upload(weight, DType::Float32),
                              std::nullopt,
                              g};
        const matmul::Guard guard{numbers.upload({0.0f}, DType::Float32),
                                  matmul::next_guard_value()};
        { const ConvHopperOperands operands(call, p, Kind::Bf16x3, guard); }
        const float raw = numbers.download(guard.word, DType::Float32, 1)[0];
        uint32_t word;
        std::memcpy(&word, &raw, sizeof word);
        const float size = std::abs(bad);
        const bool refused = bad != 0 && !(size >= 0x1p-109f && size < 0x1p64f);
        EXPECT_EQ(word, refused ? guard.value : 0u) << bad << in_weight << channels_last;
        conv::run_guarded_convolution(call, p, guard);
        const float first = numbers.download(small, DType::Float32, count)[0];
        EXPECT_EQ(first != 5.5f, refused) << bad << " " << first;
      }
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_hopper
