// The ordered list of convolution algorithms, and the code that they share.
#include <algorithm>

#include "conv.h"

namespace ocltensor::opencl::conv {
namespace {

// One of a problem's three tensors.
struct Map {
  tb_address Problem::*address;
  Dims sizes;
  std::span<const int64_t> strides;
  Extent reach() const { return numel(sizes) == 0 ? Extent{0, 0} : extent(sizes, strides); }
};
Map big_map(const Problem& p) {
  const ConvParams& g = p.params;
  return {&Problem::big,
          {g.batch, g.groups * g.big_channels, g.in[0], g.in[1], g.in[2]},
          g.big_strides};
}
Map small_map(const Problem& p) {
  const ConvParams& g = p.params;
  return {&Problem::small,
          {g.batch, g.groups * g.small_channels, g.out[0], g.out[1], g.out[2]},
          g.small_strides};
}
Map weight_map(const Problem& p) {
  const ConvParams& g = p.params;
  return {&Problem::weight,
          {g.groups * g.small_channels, g.big_channels, g.window[0], g.window[1], g.window[2]},
          g.weight_strides};
}

MemoryRange memory_of(const Problem& p, const Map& map) {
  if (numel(map.sizes) == 0) return nullptr;
  const Extent e = map.reach();
  return {p.*map.address, e.low * size_of(p.dtype), e.high * size_of(p.dtype)};
}

struct ConvTraits {
  static const char* direction(const Problem& p) {
    return kDirectionNames[static_cast<int>(p.direction)];
  }
  static std::string describe(const OpCall&, const Problem& p) {
    const ConvParams& g = p.params;
    return fmt::format(
        "conv {} {} batch {} groups {} channels {} and {} map {}x{}x{} window {}x{}x{}",
        direction(p), name(p.dtype), g.batch, g.groups, g.big_channels, g.small_channels, g.in[0],
        g.in[1], g.in[2], g.window[0], g.window[1], g.window[2]);
  }
  static std::string notes(const OpCall&, const Problem&) { return {}; }
  static ShapeClass shape_class(const OpCall&, const Problem& p) {
    const ConvParams& g = p.params;
    ShapeClass shape{static_cast<int64_t>(p.direction),
                     static_cast<int64_t>(p.dtype),
                     size_class(g.batch),
                     size_class(g.groups),
                     size_class(g.big_channels),
                     size_class(g.small_channels),
                     g.big_strides[4] == 1,
                     g.small_strides[4] == 1};
    for (size_t d = 0; d < 3; ++d)
      for (const int64_t n :
           {size_class(g.in[d]), g.window[d], g.stride[d], g.padding[d], g.dilation[d]})
        shape.add(n);
    return shape;
  }
  static std::string shape_text(const ShapeClass& s) {
    std::string text = fmt::format("{} {} {} {}x{}x{}", kDirectionNames[static_cast<size_t>(s[0])],
                                   name(static_cast<DType>(s[1])), s[2], s[3], s[4], s[5]);
    for (size_t at = 8; at < s.numbers().size(); at += 5)
      text += fmt::format(" {}/{}/{}/{}/{}", s[at], s[at + 1], s[at + 2], s[at + 3], s[at + 4]);
    return text + (s[6] ? "" : " strided") + (s[7] ? "" : " to strided");
  }
  static Map out_map(const Problem& p) {
    return p.direction == Direction::Forward ? small_map(p)
           : p.direction == Direction::Data  ? big_map(p)
                                             : weight_map(p);
  }
  static std::vector<ResultPart> results(const OpCall&, const Problem& p) {
    const ConvParams& g = p.params;
    const int64_t window = g.window[0] * g.window[1] * g.window[2];
    const int64_t terms = p.direction == Direction::Forward ? g.big_channels * window
                          : p.direction == Direction::Data
                              ? g.small_channels * window
                              : g.batch * g.out[0] * g.out[1] * g.out[2];
    const Extent e = out_map(p).reach();
    return {{0, e.high - e.low, p.dtype, terms}};
  }
  static Scratch redirect(const OpCall& call, Problem& p) {
    const Map out = out_map(p);
    const Extent e = out.reach();
    const int64_t item = size_of(p.dtype);
    Scratch memory(call.scratch(static_cast<uint64_t>((e.high - e.low) * item)));
    p.*out.address = memory.address() - static_cast<uint64_t>(e.low * item);
    p.shared = nullptr;  // each attempt does all of its work, and leaves nothing to the call
    return memory;
  }
};
using Algorithms = AlgorithmList<Problem, ConvTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "conv", conv_operators(),
      {&kPointwise, &kPointwiseWeight, &kGroupedChannels, &kGrouped, &kDepthwise, &kWinograd,
       &kDirect, &kWeightTiles, &kWinogradGpu, &kImplicit, &kImplicitWeight, &kColumns, &kGeneral});
  return list;
}

}  // namespace

void run_convolution(const OpCall& call, const Problem& p) {
  if (!is_floating(p.dtype)) return algorithms().run_one(call, p, kGeneral);
  algorithms().run(call, p);
}

const AlgorithmFamily& conv_algorithms() { return algorithms().family(); }

MemoryRange memory_of_big(const Problem& p) { return memory_of(p, big_map(p)); }
MemoryRange memory_of_small(const Problem& p) { return memory_of(p, small_map(p)); }
MemoryRange memory_of_weight(const Problem& p) { return memory_of(p, weight_map(p)); }
MemoryRange memory_of_bias(const Problem& p) {
  if (!p.bias) return nullptr;
  const ConvParams& g = p.params;
  const int64_t channels =
      g.groups * (p.direction == Direction::Forward ? g.small_channels : g.big_channels);
  const Extent e = extent(Dims{channels}, Dims{g.bias_stride});
  return {*p.bias, e.low * size_of(p.dtype), e.high * size_of(p.dtype)};
}

bool whole_vectors(tb_address address, DType type, std::initializer_list<int64_t> strides) {
  const auto is_whole = [](int64_t stride) { return stride % 4 == 0; };
  return address % static_cast<uint64_t>(4 * size_of(type)) == 0 &&
         std::ranges::all_of(strides, is_whole);
}

}  // namespace ocltensor::opencl::conv
