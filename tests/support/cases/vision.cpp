// Cases of the vision family: torchvision's operators.
#include <algorithm>
#include <array>
#include <cmath>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) { return is_floating(dtype); }

// Corners at quarters, so that areas are exact, and no share of a union is close to the threshold:
// every type keeps the same boxes. Scores often are equal.
Case make_nms(Case c, DType dtype, Draw& draw) {
  auto& rng = draw.rng;
  const bool large = draw.size_mode() == SizeMode::Large;
  const int64_t count = draw.extent(large ? 5000 : 300, true);
  const int64_t room = rng.range(1, large ? 100 : 40);
  HostTensor boxes(dtype, {count, 4});
  HostTensor scores(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = 0; d < 2; ++d) {
      const auto corner = static_cast<double>(rng.range(0, 4 * room)) / 4;
      boxes.set(i * 4 + d, corner);
      boxes.set(i * 4 + d + 2, corner + static_cast<double>(rng.range(0, 40)) / 4);
    }
    scores.set(i, static_cast<double>(rng.range(0, 64)) / 64);
  }
  c.set("dets", draw.place(std::move(boxes)));
  c.set("scores", draw.place(std::move(scores)));
  c.set("iou_threshold", Scalar(static_cast<double>(rng.range(1, 9)) * 0.1 + 0.0123456789));
  c.tolerance = {exact()};
  return c;
}

// ---- pooling of regions
// Coordinates are quarters, scales and numbers of bins powers of two, so that every type finds the
// same samples and elements: where bins end, results jump.
struct RoiMaker {
  RoiMaker(const Operator& op, DType dtype, Draw& draw)
      : c(make_case(op, dtype)),
        draw(draw),
        dtype(dtype),
        own(op.schema.name.find("ps_") != std::string::npos),
        sampled(op.schema.name.find("align") != std::string::npos),
        backward(op.schema.name.ends_with("backward")),
        sizes{draw.rng.range(1, 3), draw.rng.range(1, 5), draw.rng.range(1, 13),
              draw.rng.range(1, 13)},
        pooled{int64_t{1} << draw.rng.range(0, 2), int64_t{1} << draw.rng.range(0, 2)},
        rois(draw.extent(draw.size_mode() == SizeMode::Large ? 60 : 8, true)),
        regions(dtype, {rois, 5}) {
    if (draw.size_mode() == SizeMode::Large) sizes[1] *= 8;
    if (own) sizes[1] *= pooled[0] * pooled[1];
  }

  int64_t bins() const { return pooled[0] * pooled[1]; }
  Dims bin_sizes() const {
    return {rois, own ? sizes[1] / bins() : sizes[1], pooled[0], pooled[1]};
  }

  void set_regions() {
    auto& rng = draw.rng;
    scale = 1 / static_cast<double>(int64_t{1} << rng.range(0, 2));
    for (int64_t r = 0; r < rois; ++r) {
      regions.set(r * 5, static_cast<double>(rng.range(0, sizes[0] - 1)));
      for (int64_t d = 0; d < 2; ++d) {
        const double start = static_cast<double>(rng.range(-8, 4 * sizes[3 - d])) / 4 / scale;
        const double size = static_cast<double>(rng.range(-2, 4 * sizes[3 - d])) / 4 / scale;
        regions.set(r * 5 + 1 + d, start);
        regions.set(r * 5 + 3 + d, start + size);
      }
    }
    c.set("rois", draw.place(regions));
    c.set("spatial_scale", Scalar(scale));
    c.set("pooled_height", Scalar(pooled[0]));
    c.set("pooled_width", Scalar(pooled[1]));
    if (sampled) c.set("sampling_ratio", Scalar(rng.range(-1, 3)));
    if (sampled && !own) c.set("aligned", Scalar(rng.chance(0.5)));
  }

  // The elements of a bin along a dimension.
  std::pair<int64_t, int64_t> elements(int64_t r, int64_t d, int64_t bin) const {
    const double start = std::round(regions.real(r * 5 + 2 - d) * scale);
    const double end = std::round(regions.real(r * 5 + 4 - d) * scale);
    const double each = std::max(end - start + 1, 1.0) / static_cast<double>(pooled[d]);
    const auto k = static_cast<double>(bin), size = static_cast<double>(sizes[2 + d]);
    return {static_cast<int64_t>(std::clamp(start + std::floor(k * each), 0.0, size)),
            static_cast<int64_t>(std::clamp(start + std::ceil((k + 1) * each), 0.0, size))};
  }

  // Elements of the bins, some of which have none.
  void set_argmax() {
    HostTensor places(DType::Int32, bin_sizes());
    for (int64_t i = 0; i < places.numel(); ++i) {
      const int64_t bin = i % bins(), r = i / bins() / sizes[1];
      const auto [y0, y1] = elements(r, 0, bin / pooled[1]);
      const auto [x0, x1] = elements(r, 1, bin % pooled[1]);
      const bool empty = y0 >= y1 || x0 >= x1;
      places.set_integer(
          i, empty ? -1 : draw.rng.range(y0, y1 - 1) * sizes[3] + draw.rng.range(x0, x1 - 1));
    }
    c.set("argmax", draw.place(std::move(places)));
  }

  void set_mapping() {
    HostTensor channels(DType::Int32, bin_sizes());
    for (int64_t i = 0; i < channels.numel(); ++i) channels.set_integer(i, i % sizes[1]);
    c.set("channel_mapping", draw.place(std::move(channels)));
  }

  void set_gradient() {
    c.set("grad", draw.tensor(dtype, bin_sizes()));
    const char* const names[] = {"batch_size", "channels", "height", "width"};
    for (size_t d = 0; d < 4; ++d) c.set(names[d], Scalar(sizes[d]));
    if (own)
      set_mapping();
    else if (!sampled)
      set_argmax();
  }

  Case make() {
    set_regions();
    if (backward)
      set_gradient();
    else
      c.set("input", draw.tensor(dtype, sizes));
    // An element is in a bin of each region at most a few times.
    const auto terms = static_cast<double>(backward ? 4 * std::max<int64_t>(rois, 1) : 16);
    c.tolerance = {{Scale::Inputs, 8, terms, 1, nullptr,
                    "averages, whose weights keep the rounding of coordinates"},
                   exact()};
    if (!sampled && !own && !backward) c.tolerance[0] = exact();
    return std::move(c);
  }

  Case c;
  Draw& draw;
  DType dtype;
  bool own, sampled, backward;
  Dims sizes;
  std::array<int64_t, 2> pooled;
  int64_t rois;
  HostTensor regions;
  double scale = 1;
};

// ---- deformable convolution
// Taps read at quarters of elements, so that every type finds the same elements.
Case make_deform(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const bool large = draw.size_mode() == SizeMode::Large;
  const int64_t batch = draw.extent(3, true), groups = rng.range(1, 2);
  const int64_t shared = rng.range(1, 2), channels = groups * shared * rng.range(1, large ? 8 : 2);
  const int64_t outputs = groups * rng.range(1, large ? 20 : 3);
  Dims input{batch, channels}, weight{outputs, channels / groups}, out{batch, outputs};
  const char* const names[3][2] = {
      {"stride_h", "stride_w"}, {"pad_h", "pad_w"}, {"dilation_h", "dilation_w"}};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t window = rng.range(1, 3), stride = rng.range(1, 2), padding = rng.range(0, 2),
                  dilation = rng.range(1, 2), extent = dilation * (window - 1) + 1;
    const int64_t size = std::max<int64_t>(rng.range(1, large ? 20 : 8), extent - 2 * padding);
    input.push_back(std::max<int64_t>(size, 1));
    weight.push_back(window);
    out.push_back((input.back() + 2 * padding - extent) / stride + 1);
    const int64_t numbers[] = {stride, padding, dilation};
    for (size_t i = 0; i < 3; ++i) c.set(names[i][d], Scalar(numbers[i]));
  }
  const int64_t taps = shared * weight[2] * weight[3];
  const bool masked = rng.chance(0.5);
  const Domain plain{-2, 2, 0, false, false}, quarters{-2.5, 2.5, 0.25, false, false};
  c.set("input", draw.tensor(dtype, input, plain));
  c.set("weight", draw.tensor(dtype, weight, plain));
  c.set("offset", draw.tensor(dtype, {batch, 2 * taps, out[2], out[3]}, quarters));
  c.set("mask", draw.tensor(dtype, masked ? Dims{batch, taps, out[2], out[3]} : Dims{batch, 1},
                            {0, 1, 0, false, false}));
  c.set("bias", draw.tensor(dtype, {outputs}, plain));
  c.set("groups", Scalar(groups));
  c.set("offset_groups", Scalar(shared));
  c.set("use_mask", Scalar(masked));
  const auto depth = static_cast<double>(weight[1] * weight[2] * weight[3]);
  const auto images = static_cast<double>(std::max<int64_t>(1, batch * out[2] * out[3]));
  const char* const why =
      "sums of products of interpolated elements and weights below 2, which "
      "16-bit types round before they are multiplied";
  // An eps of the type, in those of the type that it computes with.
  const double k = dtype == DType::Float16 ? 0x1p13 : dtype == DType::BFloat16 ? 0x1p16 : 8;
  const auto sum = [&](double terms, int degree) {
    return Tolerance{Scale::Inputs, k, terms, degree, nullptr, why};
  };
  if (!op.schema.name.ends_with("backward")) {
    c.tolerance = {sum(depth, 2)};
    return c;
  }
  c.set("grad", draw.tensor(dtype, out, plain));
  const double reads = 4 * static_cast<double>(taps * outputs) * images;
  c.tolerance = {sum(reads, 3), sum(4 * images, 3), sum(reads, 3), sum(reads, 3), sum_of(images)};
  return c;
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  if (op.schema.name.find("deform") != std::string::npos) return make_deform(op, dtype, draw);
  if (op.schema.name.ends_with("nms")) return make_nms(make_case(op, dtype), dtype, draw);
  return RoiMaker(op, dtype, draw).make();
}

}  // namespace

const FamilyCases& vision_cases() {
  static constexpr FamilyCases kCases = {"vision", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
