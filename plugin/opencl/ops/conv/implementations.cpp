// The ordered list of convolution implementations, and what they share.
#include "base/log.h"
#include "conv.h"

namespace ocltensor::opencl {
namespace {

constexpr const ConvImplementation* kImplementations[] = {
    &kConvPointwise, &kConvGrouped, &kConvDirect, &kConvWeightTiles, &kConvColumns, &kConvGeneral};

void bind_tensor(Launch& launch, tb_address address, DType dtype, int64_t outer, int64_t channels,
                 const int64_t (&spatial)[3], const int64_t (&strides)[5]) {
  const Dims sizes{outer, channels, spatial[0], spatial[1], spatial[2]};
  if (numel(sizes) == 0) return (void)launch.memory(0, 0, 0);
  const Extent e = extent(sizes, std::span<const int64_t>(strides));
  launch.memory(address, e.low * size_of(dtype), e.high * size_of(dtype));
}

}  // namespace

void run_convolution(const OpCall& call, const ConvProblem& p) {
  if (!is_floating(p.dtype)) return kConvGeneral.run(call, p);
  for (const ConvImplementation* implementation : kImplementations) {
    const char* reason = implementation->refuse(call, p);
    if (reason == nullptr) return implementation->run(call, p);
    logging::debug("conv", "{} {}: not {}: {}", name(p.dtype),
                   kConvDirectionNames[static_cast<int>(p.direction)], implementation->name,
                   reason);
  }
}

void bind_big(Launch& launch, const ConvProblem& p) {
  const ConvParams& g = p.params;
  bind_tensor(launch, p.big, p.dtype, g.batch, g.groups * g.big_channels, g.in, g.big_strides);
}
void bind_small(Launch& launch, const ConvProblem& p) {
  const ConvParams& g = p.params;
  bind_tensor(launch, p.small, p.dtype, g.batch, g.groups * g.small_channels, g.out,
              g.small_strides);
}
void bind_weight(Launch& launch, const ConvProblem& p) {
  const ConvParams& g = p.params;
  bind_tensor(launch, p.weight, p.dtype, g.groups * g.small_channels, g.big_channels, g.window,
              g.weight_strides);
}
void bind_bias(Launch& launch, const ConvProblem& p) {
  if (!p.bias) return (void)launch.memory(0, 0, 0);
  const ConvParams& g = p.params;
  const int64_t channels =
      g.groups * (p.direction == ConvDirection::Forward ? g.small_channels : g.big_channels);
  const Extent e = extent(Dims{channels}, Dims{g.bias_stride});
  launch.memory(*p.bias, e.low * size_of(p.dtype), e.high * size_of(p.dtype));
}

}  // namespace ocltensor::opencl
