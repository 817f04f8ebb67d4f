// Convolutions with and without a bias by each of the algorithms that takes them, forward and data:
// the end is added once to every result, also where sums wait between pieces of their terms or no
// tap meets a position.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "base/config.h"
#include "call/proof_numbers.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_shape.h"
#include "plugin/each_algorithm.h"
#include "plugin/nvidia_mma/emulated_units.h"

namespace ocltensor::opencl::conv {
namespace {

using testing::IsSupersetOf;

// One random problem, and what it should give. Numbers are whole and small, so that sums are exact
// but for Winograd's; what is rounded is the result.
class RandomConvolution {
  static constexpr float kRoom = 70;
  static constexpr int kMost = 2;  // of inputs and weights

 public:
  RandomConvolution(const OpCall& call, std::mt19937& random)
      : random_(random), memory_(call), problem_{} {
    Problem& p = problem_;
    p.direction = below(2) == 0 ? Direction::Forward : Direction::Data;
    constexpr DType kTypes[] = {DType::Float32, DType::Float16, DType::BFloat16};
    p.dtype = kTypes[below(3)];
    do p.params = conv_params_of(shape());
    while (p.params.out[1] < 1 || p.params.out[2] < 1);
    ConvParams& g = p.params;
    const int64_t room = pick({0, 5, 8});  // behind each image
    g.big_strides[0] += room, g.small_strides[0] += room;
    const std::vector<float> from = memory_.draw(g.batch * from_strides()[0], kMost);
    const std::vector<float> weight = memory_.draw(
        g.groups * g.small_channels * g.big_channels * g.window[1] * g.window[2], kMost);
    const std::vector<float> to(static_cast<size_t>(g.batch * to_strides()[0]), kRoom);
    p.weight = memory_.upload(weight, p.dtype);
    (is_forward() ? p.big : p.small) = memory_.upload(from, p.dtype);
    (is_forward() ? p.small : p.big) = memory_.upload(to, p.dtype);
    want_.resize(to.size());
    begin_with_bias();
    for_each_conv_term(g, [&](int64_t b, int64_t s, int64_t w) {
      want_[static_cast<size_t>(is_forward() ? s : b)] +=
          static_cast<double>(from[static_cast<size_t>(is_forward() ? b : s)]) *
          weight[static_cast<size_t>(w)];
    });
  }

  // Compares what is there now. The room behind an image must not have changed.
  void check(bool by_winograd) {
    const Problem& p = problem_;
    const auto got = memory_.download(is_forward() ? p.small : p.big, p.dtype,
                                      static_cast<int64_t>(want_.size()));
    for (size_t i = 0; i < got.size(); ++i) {
      const bool in_room = static_cast<int64_t>(i) % to_strides()[0] >= elements_of_image();
      const double want = in_room ? kRoom : want_[i];
      // Winograd's: the bound that ops/conv/README.md derives.
      const auto terms =
          static_cast<double>(is_forward() ? p.params.big_channels : p.params.small_channels);
      const double sums = by_winograd ? 25 * 25 * 0x1p-24 * terms * kMost * kMost : 0;
      ASSERT_NEAR(got[i], want, in_room ? 0 : rounding() * std::abs(want) + sums)
          << text() << " at " << i;
    }
  }
  const Problem& problem() const { return problem_; }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t pick(std::initializer_list<int64_t> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }
  bool is_forward() const { return problem_.direction == Direction::Forward; }
  const tk_i64* from_strides() const {
    return is_forward() ? problem_.params.big_strides : problem_.params.small_strides;
  }
  const tk_i64* to_strides() const {
    return is_forward() ? problem_.params.small_strides : problem_.params.big_strides;
  }
  int64_t to_channels() const {
    const ConvParams& g = problem_.params;
    return g.groups * (is_forward() ? g.small_channels : g.big_channels);
  }
  int64_t elements_of_image() const {
    const auto& sizes = is_forward() ? problem_.params.out : problem_.params.in;
    return to_channels() * sizes[1] * sizes[2];
  }

  ConvShape shape() {
    ConvShape s{
        .batch = pick({1, 3}), .big = 1, .small = 1, .y = 4 + below(14), .x = 4 + below(14)};
    s.groups = pick({1, 1, 2, 18, 32});
    if (s.groups == 1) s.big = pick({3, 8, 16, 40}), s.small = pick({8, 16, 33, 40});
    if (s.groups == 2) s.big = pick({1, 3, 9}), s.small = pick({1, 2, 5, 40});
    if (s.groups > 2) s.small = pick({1, 1, 2});
    s.window_y = s.window_x = pick({1, 3, 3, 5});
    if (below(4) == 0) s.window_x = 2;
    s.stride_y = s.stride_x = pick({1, 1, 2});
    if (below(4) == 0) s.stride_y = 3;
    s.pad_y = below(3), s.pad_x = below(3);
    if (below(4) == 0) s.dilation_y = s.dilation_x = 2;
    s.channels_last = below(2) == 0;
    return s;
  }
  void begin_with_bias() {
    if (below(3) == 0) return;
    ConvParams& g = problem_.params;
    g.bias_stride = pick({0, 1, 1, 2});
    const std::vector<float> bias = memory_.draw(2 * to_channels(), 30);
    problem_.bias = memory_.upload(bias, problem_.dtype);
    const bool inner = to_strides()[1] == 1;
    const int64_t positions = elements_of_image() / to_channels();
    for (int64_t n = 0; n < g.batch; ++n)
      for (int64_t i = 0; i < elements_of_image(); ++i) {
        const int64_t channel = inner ? i % to_channels() : i / positions;
        want_[static_cast<size_t>(n * to_strides()[0] + i)] =
            bias[static_cast<size_t>(channel * g.bias_stride)];
      }
  }
  double rounding() const {  // of a result
    switch (problem_.dtype) {
      case DType::BFloat16: return 0x1p-8;
      case DType::Float16: return 0x1p-11;
      default: return 0;
    }
  }
  std::string text() const {
    const ConvParams& g = problem_.params;
    return fmt::format(
        "{} {} batch {} groups {} channels {} and {} map {}x{} window {}x{} stride {}x{} padding "
        "{}x{} dilation {} bias {}",
        kDirectionNames[static_cast<int>(problem_.direction)], name(problem_.dtype), g.batch,
        g.groups, g.big_channels, g.small_channels, g.in[1], g.in[2], g.window[1], g.window[2],
        g.stride[1], g.stride[2], g.padding[1], g.padding[2], g.dilation[1],
        problem_.bias ? g.bias_stride : -1);
  }

  std::mt19937& random_;
  ProofNumbers memory_;
  Problem problem_;
  std::vector<double> want_;
};

class ConvolutionEnds : public nvidia_mma::EmulatedUnits {
 protected:
  // Which algorithms of this device ran, each on random problems that it takes; "ID with a bias".
  static std::set<std::string> run_all() {
    std::set<std::string> seen;
    std::mt19937 random(7);
    run_each_algorithm<Problem>(conv_algorithms(), [&](const AlgorithmFor<Problem>& algorithm) {
      return run_one(random, algorithm, seen);
    });
    return seen;
  }

 private:
  // Whether the algorithm takes it.
  static bool run_one(std::mt19937& random, const AlgorithmFor<Problem>& algorithm,
                      std::set<std::string>& seen) {
    const AnyCall any;
    RandomConvolution convolution(*any, random);
    const Problem& p = convolution.problem();
    Plan plan;
    if (algorithm.plan(*any, p, plan) != nullptr) return false;
    algorithm.run(*any, p, plan);
    const std::string id = algorithm.id;
    convolution.check(id.find("winograd") != std::string::npos);
    if (p.bias) seen.insert(id + " with a bias");
    return true;
  }
};

TEST_F(ConvolutionEnds, OfCpusAreRightByEveryAlgorithm) {
  setenv("OCLTENSOR_KERNEL_STYLE", "cpu", 1);
  if (device(0).caps().style != KernelStyle::Cpu) GTEST_SKIP() << "SKIPPED: needs its own process";
  EXPECT_THAT(run_all(),
              IsSupersetOf({"conv.pointwise with a bias", "conv.grouped_channels with a bias",
                            "conv.grouped with a bias", "conv.winograd with a bias",
                            "conv.direct with a bias", "conv.columns with a bias",
                            "conv.general with a bias"}));
}

TEST_F(ConvolutionEnds, OfGpusAreRightByEveryAlgorithm) {
  open("emulated80");
  if (IsSkipped()) return;
  EXPECT_THAT(run_all(), IsSupersetOf({"conv.pointwise with a bias", "conv.depthwise with a bias",
                                       "conv.winograd_gpu with a bias", "conv.implicit with a bias",
                                       "conv.columns with a bias", "conv.general with a bias"}));
}

}  // namespace
}  // namespace ocltensor::opencl::conv
