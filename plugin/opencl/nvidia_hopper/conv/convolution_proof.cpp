// The proof of a convolution kernel on the driver at hand, before its first use.
#include <algorithm>
#include <array>
#include <list>

#include "call/proof_numbers.h"
#include "convolution.h"
#include "ops/conv/conv_shape.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using conv::conv_params_of, conv::ConvShape, conv::for_each_conv_term;

using Kind = ConvHopperKind;

// Sizes that are odd in every respect: maps, windows, channels across blocks and tiles, tiles
// across images.
constexpr ConvShape kSamples[] = {{.batch = 4,
                                   .big = 72,
                                   .small = 270,
                                   .y = 13,
                                   .x = 11,
                                   .window_y = 3,
                                   .window_x = 2,
                                   .stride_y = 2,
                                   .stride_x = 2,
                                   .pad_y = 1,
                                   .channels_last = true},
                                  {.batch = 4,
                                   .big = 141,
                                   .small = 40,
                                   .y = 9,
                                   .x = 10,
                                   .window_y = 2,
                                   .window_x = 3,
                                   .stride_x = 3,
                                   .pad_y = 1,
                                   .pad_x = 2,
                                   .dilation_x = 2},
                                  {.batch = 3,
                                   .big = 5,
                                   .small = 72,
                                   .y = 9,
                                   .x = 14,
                                   .window_y = 3,
                                   .window_x = 7,
                                   .stride_y = 2,
                                   .stride_x = 2,
                                   .pad_y = 2,
                                   .pad_x = 3}};
constexpr size_t kTensors = 3;  // big, small, weight

// Adds the sums of one direction to the numbers in that direction's result: `small`, `big` or
// `weight`.
void add_sums(const ConvParams& g, conv::Direction direction, float* big, float* small,
              float* weight) {
  for_each_conv_term(g, [&](int64_t b, int64_t s, int64_t w) {
    if (direction == conv::Direction::Forward) small[s] += big[b] * weight[w];
    if (direction == conv::Direction::Data) big[b] += small[s] * weight[w];
    if (direction == conv::Direction::Weight) weight[w] += big[b] * small[s];
  });
}

// Random integers that fill the bf16 parts of a kind; without parts -1, 0 and 1.
std::vector<float> draw(ProofNumbers& numbers, int64_t count, int64_t bf16_parts) {
  constexpr int kMost = 32767;
  if (bf16_parts == 1) return numbers.draw(count, 1);
  std::vector<float> list = numbers.draw(count, kMost);
  if (bf16_parts == 2) return list;
  const std::vector<float> low = numbers.draw(count, 3);
  for (size_t i = 0; i < list.size(); ++i) list[i] = list[i] * 8 + low[i];
  return list;
}

size_t result_of(conv::Direction direction) {
  return direction == conv::Direction::Forward ? 1 : direction == conv::Direction::Data ? 0 : 2;
}

// A convolution whose result is known: enqueued by the constructor, compared by wrong().
class KnownSums {
 public:
  // `fine`: the operand that fills its bf16 parts (0: the first, 1: the second). If both did, the
  // sums would not be exact.
  KnownSums(const OpCall& call, const ConvShape& sample, conv::Direction direction, Kind kind,
            int fine, bool has_bias, const std::function<void(const conv::Problem&)>& run)
      : direction_(direction),
        result_(result_of(direction)),
        type_(kind == Kind::Half     ? DType::Float16
              : kind == Kind::BFloat ? DType::BFloat16
                                     : DType::Float32),
        shape_(conv_params_of(sample)),
        numbers_(call) {
    constexpr float kOld = 7;
    const ConvParams& g = shape_;
    const std::array<int64_t, kTensors> counts{
        g.batch * g.big_channels * g.in[1] * g.in[2],
        g.batch * g.small_channels * g.out[1] * g.out[2],
        g.small_channels * g.big_channels * g.window[1] * g.window[2]};
    int operand = 0;
    for (size_t t = 0; t < kTensors; ++t) {
      const int64_t bf16_parts = t != result_ && operand++ == fine ? bf16_parts_of(kind) : 1;
      host_[t] = t == result_ ? std::vector<float>(static_cast<size_t>(counts[t]), kOld)
                              : draw(numbers_, counts[t], bf16_parts);
      memory_[t] = numbers_.upload(host_[t], type_);
    }
    conv::Problem p{direction, type_, memory_[0], memory_[1], memory_[2], std::nullopt, g};
    std::vector<float>& want = host_[result_];
    std::ranges::fill(want, 0.0f);
    if (has_bias) {
      const int64_t channels = result_ == 0 ? g.big_channels : g.small_channels;
      const std::vector<float> bias = numbers_.draw(channels, 3);
      p.bias = numbers_.upload(bias, type_);
      const int64_t channel_stride = result_ == 0 ? g.big_strides[1] : g.small_strides[1];
      for (size_t i = 0; i < want.size(); ++i)
        want[i] = bias[static_cast<size_t>(static_cast<int64_t>(i) / channel_stride % channels)];
    }
    run(p);
    add_sums(g, direction, host_[0].data(), host_[1].data(), host_[2].data());
  }

  // Waits.
  std::string wrong() {
    const std::vector<float>& want = host_[result_];
    const std::vector<float> got =
        numbers_.download(memory_[result_], type_, static_cast<int64_t>(want.size()));
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != want[i])
        return fmt::format("{} of channels {} and {}: element {} is {} instead of {}",
                           conv::kDirectionNames[static_cast<int>(direction_)], shape_.big_channels,
                           shape_.small_channels, i, got[i], want[i]);
    return {};
  }

 private:
  const conv::Direction direction_;
  const size_t result_;
  const DType type_;
  const ConvParams shape_;
  ProofNumbers numbers_;
  std::array<std::vector<float>, kTensors> host_;  // the result's: what it should be
  std::array<tb_address, kTensors> memory_{};
};

}  // namespace

// Compares convolutions of integers, whose sums are exact in every kind, with the host's; all these
// numbers can be split, so the guarded plain kernel does not hide a fault. 16-bit kinds of a kernel
// are tested in pieces or in one, whichever it is made for; the others in one piece and in several.
std::string wrong_hopper_convolution(const OpCall& call, const void* what) {
  const ConvHopperVariant& v = *static_cast<const ConvHopperVariant*>(what);
  const bool half = v.kind == Kind::Half || v.kind == Kind::BFloat;
  return wrong_convolution(call, v, [&](const conv::Problem& p, int sample) {
    const int64_t pieces = half && !v.weight ? (v.partial ? 2 : 1) : sample + 1;
    run_hopper_convolution(call, p, v.kind, HopperTiles{v.columns, pieces});
  });
}

std::string wrong_convolution(const OpCall& call, const ConvHopperVariant& v,
                              const std::function<void(const conv::Problem&, int)>& run) {
  const bool is_half_result =
      (v.kind == Kind::Half || v.kind == Kind::BFloat) && !v.weight && !v.partial;
  // All are enqueued first, so that their programs are built side by side.
  std::list<KnownSums> all;
  for (int i = 0; i < static_cast<int>(std::size(kSamples)); ++i)
    for (const conv::Direction direction :
         {conv::Direction::Forward, conv::Direction::Data, conv::Direction::Weight}) {
      if ((direction == conv::Direction::Weight) != v.weight) continue;
      ConvShape sample = kSamples[i];
      if (is_half_result) sample.channels_last = v.channels_last;
      all.emplace_back(call, sample, direction, v.kind, i, v.bias || v.partial,
                       [&](const conv::Problem& p) { run(p, i); });
    }
  for (KnownSums& sums : all)
    if (std::string wrong = sums.wrong(); !wrong.empty()) return wrong;
  return {};
}

}  // namespace ocltensor::opencl::nvidia_hopper
