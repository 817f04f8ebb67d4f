// The proof of a kernel for convolutions, on the driver at hand before its first use.
#include "call/proof_numbers.h"
#include "convolution.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using Kind = ConvHopperKind;

// Odd sizes in every respect: maps, windows, channels across blocks and tiles, tiles across images.
struct Sample {
  int64_t batch, big, small, y, x, window_y, window_x, stride_y, stride_x, pad_y, pad_x, dilation_x;
  bool channels_last;
};
constexpr Sample kSamples[] = {{4, 72, 270, 13, 11, 3, 2, 2, 2, 1, 0, 1, true},
                               {4, 141, 40, 9, 10, 2, 3, 1, 3, 1, 2, 2, false},
                               {3, 5, 72, 9, 14, 3, 7, 2, 2, 2, 3, 1, false}};
constexpr size_t kTensors = 3;  // big, small, weight

struct Numbers {
  std::vector<float> list[kTensors];
};

void set_layout(tk_i64 (&strides)[5], bool channels_last, int64_t channels, int64_t y, int64_t x) {
  const Dims near{channels * y * x, y * x, 0, x, 1},
      last{channels * y * x, 1, 0, x * channels, channels};
  for (size_t d = 0; d < 5; ++d) strides[d] = (channels_last ? last : near)[d];
}

ConvParams params_of(const Sample& s) {
  ConvParams g{};
  g.batch = s.batch;
  g.groups = 1;
  g.big_channels = s.big;
  g.small_channels = s.small;
  const int64_t in[3] = {1, s.y, s.x}, window[3] = {1, s.window_y, s.window_x};
  const int64_t stride[3] = {1, s.stride_y, s.stride_x}, padding[3] = {0, s.pad_y, s.pad_x};
  const int64_t dilation[3] = {1, 1, s.dilation_x};
  for (size_t d = 0; d < 3; ++d) {
    g.in[d] = in[d];
    g.window[d] = window[d];
    g.padding[d] = padding[d];
    g.dilation[d] = dilation[d];
    g.stride[d] = stride[d];
    g.out[d] = (in[d] + 2 * padding[d] - (window[d] - 1) * dilation[d] - 1) / g.stride[d] + 1;
  }
  set_layout(g.big_strides, s.channels_last, s.big, s.y, s.x);
  set_layout(g.small_strides, s.channels_last, s.small, g.out[1], g.out[2]);
  set_layout(g.weight_strides, s.channels_last, s.big, s.window_y, s.window_x);
  g.bias_stride = 1;
  return g;
}

// Calls body(offset in big, in small, in weight) for every term of the sums.
template <typename Body>
void for_each_term(const ConvParams& g, Body&& body) {
  for (int64_t i = 0; i < g.out[1]; ++i)
    for (int64_t j = 0; j < g.out[2]; ++j)
      for (int64_t r = 0; r < g.window[1]; ++r)
        for (int64_t s = 0; s < g.window[2]; ++s) {
          const int64_t y = i * g.stride[1] - g.padding[1] + r * g.dilation[1];
          const int64_t x = j * g.stride[2] - g.padding[2] + s * g.dilation[2];
          if (y < 0 || y >= g.in[1] || x < 0 || x >= g.in[2]) continue;
          body(y * g.big_strides[3] + x * g.big_strides[4],
               i * g.small_strides[3] + j * g.small_strides[4],
               r * g.weight_strides[3] + s * g.weight_strides[4]);
        }
}

// The sums of one direction, into its own list, whose numbers are those to begin with.
void add_sums(const ConvParams& g, ConvDirection direction, float* big, float* small,
              float* weight) {
  for (int64_t n = 0; n < g.batch; ++n)
    for_each_term(g, [&](int64_t at_big, int64_t at_small, int64_t at_weight) {
      for (int64_t k = 0; k < g.small_channels; ++k) {
        float& s = small[n * g.small_strides[0] + at_small + k * g.small_strides[1]];
        float* w = weight + k * g.weight_strides[0] + at_weight;
        float* b = big + n * g.big_strides[0] + at_big;
        for (int64_t c = 0; c < g.big_channels; ++c) {
          float& u = b[c * g.big_strides[1]];
          float& v = w[c * g.weight_strides[1]];
          if (direction == ConvDirection::Forward) s += u * v;
          if (direction == ConvDirection::Data) u += s * v;
          if (direction == ConvDirection::Weight) v += u * s;
        }
      }
    });
}

// Whole numbers that fill the bf16 parts of a kind, or of -1, 0 and 1.
std::vector<float> draw(ProofNumbers& numbers, int64_t count, int64_t bf16_parts) {
  constexpr int kMost = 32767;
  if (bf16_parts == 1) return numbers.draw(count, 1);
  std::vector<float> list = numbers.draw(count, kMost);
  if (bf16_parts == 2) return list;
  const std::vector<float> low = numbers.draw(count, 3);
  for (size_t i = 0; i < list.size(); ++i) list[i] = list[i] * 8 + low[i];
  return list;
}

// `fine`: which of the two operands fills the bf16 parts (0: the first, 1: the second); sums of
// more would not be exact.
std::string wrong_sums(const OpCall& call, const Sample& sample, ConvDirection direction, Kind kind,
                       int fine, const std::function<void(const ConvProblem&)>& run) {
  constexpr float kOld = 7;
  const ConvParams g = params_of(sample);
  const int64_t counts[kTensors] = {g.batch * g.big_channels * g.in[1] * g.in[2],
                                    g.batch * g.small_channels * g.out[1] * g.out[2],
                                    g.small_channels * g.big_channels * g.window[1] * g.window[2]};
  const size_t out = direction == ConvDirection::Forward ? 1
                     : direction == ConvDirection::Data  ? 0
                                                         : 2;
  const DType type = kind == Kind::Half     ? DType::Float16
                     : kind == Kind::BFloat ? DType::BFloat16
                                            : DType::Float32;
  ProofNumbers numbers(call);
  Numbers host;
  tb_address memory[kTensors];
  int operand = 0;
  for (size_t t = 0; t < kTensors; ++t) {
    const int64_t bf16_parts = t != out && operand++ == fine ? bf16_parts_of(kind) : 1;
    host.list[t] = t == out ? std::vector<float>(static_cast<size_t>(counts[t]), kOld)
                            : draw(numbers, counts[t], bf16_parts);
    memory[t] = numbers.upload(host.list[t], type);
  }
  ConvProblem p{direction, type, memory[0], memory[1], memory[2], std::nullopt, g};
  std::vector<float> want(static_cast<size_t>(counts[out]), 0.0f);
  if (direction != ConvDirection::Weight) {
    const int64_t channels = out == 0 ? g.big_channels : g.small_channels;
    const std::vector<float> bias = numbers.draw(channels, 3);
    p.bias = numbers.upload(bias, type);
    const int64_t apart = out == 0 ? g.big_strides[1] : g.small_strides[1];
    for (size_t i = 0; i < want.size(); ++i)
      want[i] = bias[static_cast<size_t>(static_cast<int64_t>(i) / apart % channels)];
  }
  run(p);

  const std::vector<float> got = numbers.download(memory[out], type, counts[out]);
  host.list[out] = std::move(want);
  add_sums(g, direction, host.list[0].data(), host.list[1].data(), host.list[2].data());
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != host.list[out][i])
      return fmt::format("{} of channels {} and {}: element {} is {} instead of {}",
                         kConvDirectionNames[static_cast<int>(direction)], g.big_channels,
                         g.small_channels, i, got[i], host.list[out][i]);
  return {};
}

}  // namespace

// Convolutions of whole numbers, whose sums every kind gives exactly, against the host's; the
// guarded plain kernel would hide nothing, as these numbers split. 16-bit kinds of one kernel are
// tested in pieces or not, as it is made for; the others in one piece and in more.
std::string wrong_hopper_convolution(const OpCall& call, const void* what) {
  const ConvHopperVariant& v = *static_cast<const ConvHopperVariant*>(what);
  const bool half = v.kind == Kind::Half || v.kind == Kind::BFloat;
  return wrong_convolution(call, v, [&](const ConvProblem& p, int sample) {
    const int64_t pieces = half && !v.weight ? (v.partial ? 2 : 1) : sample + 1;
    run_hopper_convolution(call, p, v.kind, HopperTiles{v.columns, pieces});
  });
}

std::string wrong_convolution(const OpCall& call, const ConvHopperVariant& v,
                              const std::function<void(const ConvProblem&, int)>& run) {
  for (int i = 0; i < static_cast<int>(std::size(kSamples)); ++i)
    for (const ConvDirection direction :
         {ConvDirection::Forward, ConvDirection::Data, ConvDirection::Weight}) {
      if ((direction == ConvDirection::Weight) != v.weight) continue;
      std::string wrong = wrong_sums(call, kSamples[i], direction, v.kind, i,
                                     [&](const ConvProblem& p) { run(p, i); });
      if (!wrong.empty()) return wrong;
    }
  return {};
}

}  // namespace ocltensor::opencl::nvidia_hopper
