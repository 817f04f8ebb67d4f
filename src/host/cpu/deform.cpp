// torchvision's deformable convolution.
#include <cmath>

#include "call.h"

namespace ocltensor::cpu {
namespace {

// What each tap of each window reads: the sum over channels and images is a convolution's.
class Deform {
 public:
  explicit Deform(const CpuCall& call)
      : image(read<double>(call.args.tensor(Arg::input))),
        weight(read<double>(call.args.tensor(Arg::weight))),
        mask(read<double>(call.args.tensor(Arg::mask))),
        masked(call.args.boolean(Arg::use_mask)),
        batch(call.args.tensor(Arg::input).size(0)),
        channels(call.args.tensor(Arg::input).size(1)),
        outputs(call.args.tensor(Arg::weight).size(0)),
        groups(call.args.integer(Arg::groups)),
        offset_groups(call.args.integer(Arg::offset_groups)),
        offset_(read<double>(call.args.tensor(Arg::offset))) {
    const Args& args = call.args;
    const Arg strides[] = {Arg::stride_h, Arg::stride_w}, paddings[] = {Arg::pad_h, Arg::pad_w},
              dilations[] = {Arg::dilation_h, Arg::dilation_w};
    for (size_t d = 0; d < 2; ++d) {
      const auto dim = static_cast<int64_t>(d) + 2;
      size_[d] = args.tensor(Arg::input).size(dim);
      window[d] = args.tensor(Arg::weight).size(dim);
      out[d] = args.tensor(Arg::offset).size(dim);
      stride_[d] = args.integer(strides[d]);
      padding_[d] = args.integer(paddings[d]);
      dilation_[d] = args.integer(dilations[d]);
    }
  }

  // One tap of one window for one channel.
  struct Tap {
    size_t row;     // of offsets: (image, group, tap) and position, in elements of the mask
    size_t offset;  // the element with the vertical offset; the horizontal one is `step` behind
    size_t step;
    size_t plane;  // the channel's first element in the image
    double y, x;
  };
  Tap tap(int64_t n, int64_t channel, int64_t k, int64_t position) const {
    const int64_t positions = out[0] * out[1], taps = window[0] * window[1];
    const int64_t row = (n * offset_groups + channel / (channels / offset_groups)) * taps + k;
    Tap t{};
    t.row = static_cast<size_t>(row * positions + position);
    t.offset = static_cast<size_t>(2 * row * positions + position);
    t.step = static_cast<size_t>(positions);
    t.plane = static_cast<size_t>((n * channels + channel) * size_[0] * size_[1]);
    const int64_t oy = position / out[1], ox = position % out[1];
    const int64_t ky = k / window[1], kx = k % window[1];
    t.y =
        static_cast<double>(oy * stride_[0] - padding_[0] + ky * dilation_[0]) + offset_[t.offset];
    t.x = static_cast<double>(ox * stride_[1] - padding_[1] + kx * dilation_[1]) +
          offset_[t.offset + t.step];
    return t;
  }
  // Calls f(element, weight, its derivatives by y and x) for the elements around the tap.
  template <typename F>
  void around(const Tap& t, F&& f) const {
    for (const double cy : {std::floor(t.y), std::floor(t.y) + 1})
      for (const double cx : {std::floor(t.x), std::floor(t.x) + 1}) {
        if (!(cy >= 0 && cy < static_cast<double>(size_[0]) && cx >= 0 &&
              cx < static_cast<double>(size_[1])))
          continue;
        const double wy = 1 - std::abs(t.y - cy), wx = 1 - std::abs(t.x - cx);
        const auto at = static_cast<size_t>(cy) * static_cast<size_t>(size_[1]);
        f(t.plane + at + static_cast<size_t>(cx), wy * wx, cy > t.y ? wx : -wx,
          cx > t.x ? wy : -wy);
      }
  }
  double factor(const Tap& t) const { return masked ? mask[t.row] : 1; }

  // Calls f(result, weight, tap) for each product of the convolution.
  template <typename F>
  void for_each_product(F&& f) const {
    const int64_t positions = out[0] * out[1], taps = window[0] * window[1];
    const int64_t depth = channels / groups;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t o = 0; o < outputs; ++o)
        for (int64_t position = 0; position < positions; ++position)
          for (int64_t c = 0; c < depth; ++c)
            for (int64_t k = 0; k < taps; ++k) {
              const int64_t channel = o / (outputs / groups) * depth + c;
              f(static_cast<size_t>((n * outputs + o) * positions + position),
                static_cast<size_t>((o * depth + c) * taps + k), tap(n, channel, k, position));
            }
  }

  std::vector<double> image, weight, mask;
  bool masked;
  int64_t batch, channels, outputs, groups, offset_groups, window[2]{}, out[2]{};

 private:
  std::vector<double> offset_;
  int64_t size_[2]{}, stride_[2]{}, padding_[2]{}, dilation_[2]{};
};

void deform_conv2d(const CpuCall& call) {
  const Deform d(call);
  const auto bias = read<double>(call.args.tensor(Arg::bias));
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  const auto positions = static_cast<size_t>(d.out[0] * d.out[1]);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = bias[i / positions % static_cast<size_t>(d.outputs)];
  d.for_each_product([&](size_t to, size_t w, const Deform::Tap& t) {
    d.around(t, [&](size_t element, double weight, double, double) {
      result[to] += d.weight[w] * d.factor(t) * weight * d.image[element];
    });
  });
  if (call.wants(0)) write(call.out(0), result);
}

void deform_conv2d_backward(const CpuCall& call) {
  const Deform d(call);
  const auto grad = read<double>(call.args.tensor(Arg::grad));
  std::vector<double> of[5];
  for (size_t i = 0; i < 5; ++i) of[i].resize(static_cast<size_t>(numel(call.specs[i].sizes)));
  auto &of_image = of[0], &of_weight = of[1], &of_offset = of[2], &of_mask = of[3],
       &of_bias = of[4];
  d.for_each_product([&](size_t from, size_t w, const Deform::Tap& t) {
    const double g = grad[from], factor = d.factor(t), inner = g * d.weight[w];
    d.around(t, [&](size_t element, double weight, double by_y, double by_x) {
      const double v = d.image[element];
      of_image[element] += inner * factor * weight;
      of_weight[w] += g * factor * weight * v;
      of_offset[t.offset] += inner * factor * by_y * v;
      of_offset[t.offset + t.step] += inner * factor * by_x * v;
      if (d.masked) of_mask[t.row] += inner * weight * v;
    });
  });
  const auto positions = static_cast<size_t>(d.out[0] * d.out[1]);
  for (size_t i = 0; i < grad.size(); ++i)
    of_bias[i / positions % static_cast<size_t>(d.outputs)] += grad[i];
  for (size_t i = 0; i < 5; ++i)
    if (call.wants(i)) write(call.out(i), of[i]);
}

constexpr CpuOperator kOperators[] = {
    {"torchvision::deform_conv2d.out", deform_conv2d},
    {"torchvision::_deform_conv2d_backward.out", deform_conv2d_backward},
};

}  // namespace

std::span<const CpuOperator> deform_operators() { return kOperators; }

}  // namespace ocltensor::cpu
