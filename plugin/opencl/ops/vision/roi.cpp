// Pooling of regions and its gradients: torchvision's roi_align, roi_pool, ps_roi_align and
// ps_roi_pool.
#include <algorithm>

#include "call/divide_up.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/vision.h"
#include "ops/copy/copy.h"
#include "ops/index/index.h"
#include "roi_params.h"
#include "vision.h"

namespace ocltensor::opencl::vision {
namespace {

// How an operator pools: see kernels/include/roi.h.
struct Pooling {
  bool sampled, per_bin;
  bool indexed() const { return !sampled || per_bin; }  // it has a second result
};

// The call's arguments and the kernels' parameters.
struct Regions {
  Regions(const OpCall& call, Pooling how, TensorView pooled)
      : how(how), rois(call.args().tensor(Arg::rois)), type(pooled.dtype()) {
    const Args& args = call.args();
    p.rois = rois.size(0);
    p.scale = scalar_bits(args.real(Arg::spatial_scale), type);
    p.pooled[0] = static_cast<int32_t>(args.integer(Arg::pooled_height));
    p.pooled[1] = static_cast<int32_t>(args.integer(Arg::pooled_width));
    if (!how.sampled) return;
    const int64_t samples = args.integer(Arg::sampling_ratio);
    p.samples = static_cast<int32_t>(std::clamp<int64_t>(samples, 0, INT32_MAX));
    p.aligned = how.per_bin || args.boolean(Arg::aligned);
  }
  void set_images(const OpCall& call, std::span<const int64_t> sizes) {
    constexpr int64_t kMost = int64_t{1} << 24;  // numbers that float32 tells apart
    if (sizes[0] >= kMost || sizes[2] >= kMost || sizes[3] >= kMost ||
        sizes[2] * sizes[3] >= INT32_MAX)
      unsupported(TB_REASON_SIZE, "{}: images of {} are too large", call.name(), to_string(sizes));
    p.batch = sizes[0];
    p.channels = sizes[1];
    for (size_t d = 0; d < 2; ++d) p.size[d] = static_cast<int32_t>(sizes[2 + d]);
  }
  int64_t bins() const { return int64_t{p.pooled[0]} * p.pooled[1]; }
  int64_t plane() const { return int64_t{p.size[0]} * p.size[1]; }
  Defines defines() const {
    Defines d;
    return d.type(define::A, type)
        .set(define::SAMPLED, how.sampled)
        .set(define::PER_BIN, how.per_bin);
  }
  struct Work {
    RoiParams p;
    Division division;
  };
  Work cut(const OpCall& call, int64_t pieces, int64_t share = 1) const {
    Work work{p, divide(call.caps(), pieces)};
    work.p.pieces = pieces;
    work.p.per_item = work.division.per_item;
    work.p.share = share;
    return work;
  }

  Pooling how;
  TensorView rois;
  DType type;
  RoiParams p{};
};

// ---- forward
void run_bins(const OpCall& call, const Regions& regions) {
  const Contiguous image(call, call.args().tensor(Arg::input)), rois(call, regions.rois);
  ContiguousOutput out(call, call.out(0));
  std::optional<ContiguousOutput> index;
  if (regions.how.indexed()) index.emplace(call, call.out(1));
  const int64_t share = regions.how.per_bin ? 1 : by_style<int64_t>(call, 16, 1);
  Defines d = regions.defines();
  d.set(define::SHARE, share).set(define::INDEXED, index.has_value());
  const int64_t each = regions.how.per_bin ? regions.p.channels
                                           : divide_up(regions.p.channels, share) * regions.bins();
  const auto [p, division] = regions.cut(call, regions.p.rois * each);
  call.launch(kernels::vision::roi_forward::forward, d,
              {.out = out.view(),
               .index = index ? MemoryRange(*index) : MemoryRange(nullptr),
               .image = image.view(),
               .rois = rois.view(),
               .faults = call.fault(FaultKind::Index, 0),
               .p = p})
      .run(division.global, division.local);
  out.finish();
  if (index) index->finish();
}

constinit const AlgorithmFor<Regions> kBins(
    {.id = "roi.bins",
     .description = "a work-item takes a bin, and some channels of it",
     .last_resort = true},
    Steps<takes_all<Regions>, run_bins>());

// ---- backward
struct Gradient {
  const Regions& regions;
  TensorView of_bins;
  const MemoryRange& argmax;
};

// Each work-item owns some channels of an image and goes through all regions.
void run_channels(const OpCall& call, const Gradient& what) {
  const Regions& regions = what.regions;
  const Contiguous gradient(call, what.of_bins), rois(call, regions.rois);
  index::Target target(call, call.out(0), {0, 1, 2, 3});
  constexpr int64_t kItems = 64;
  const int64_t share =
      divide_up(regions.p.channels, divide_up(kItems, std::max<int64_t>(1, regions.p.batch)));
  const auto [p, division] =
      regions.cut(call, regions.p.batch * divide_up(regions.p.channels, share), share);
  call.launch(kernels::vision::roi_backward_cpu::backward, regions.defines(),
              {.out = target.view(),
               .gradient = gradient.view(),
               .rois = rois.view(),
               .argmax = what.argmax,
               .p = p})
      .run(division.global, division.local);
  target.finish();
}

// Each work-item owns an element of some channels and looks for regions that read it.
void run_elements(const OpCall& call, const Gradient& what) {
  constexpr int64_t kNumbers = 7;  // NUMBERS of roi_backward_gpu.cl
  const Regions& regions = what.regions;
  const Contiguous gradient(call, what.of_bins), rois(call, regions.rois);
  ContiguousOutput out(call, call.out(0));
  const Scratch places = call.scratch(
      static_cast<uint64_t>(regions.p.rois * kNumbers * size_of(compute_type(regions.type))));
  const int64_t share = regions.how.per_bin ? 1 : 8;
  Defines d = regions.defines();
  d.set(define::SHARE, share);
  namespace kernel = kernels::vision::roi_backward_gpu;
  const auto listing = regions.cut(call, regions.p.rois);
  if (regions.p.rois > 0)
    call.launch(kernel::regions, d, {.out = places, .rois = rois.view(), .p = listing.p})
        .run(listing.division.global, listing.division.local);
  const auto [p, division] =
      regions.cut(call, regions.p.batch * divide_up(regions.p.channels, share) * regions.plane());
  call.launch(kernel::backward, d,
              {.out = out.view(),
               .gradient = gradient.view(),
               .regions = places,
               .argmax = what.argmax,
               .p = p})
      .run(division.global, division.local);
  out.finish();
}

constinit const AlgorithmFor<Gradient> kChannels(
    {.id = "roi_backward.channels",
     .description = "some channels of an image for each work-item, which goes through all regions",
     .style = DeviceStyle::Cpu,
     .last_resort = true},
    Steps<takes_all<Gradient>, run_channels>());
constinit const AlgorithmFor<Gradient> kElements(
    {.id = "roi_backward.elements",
     .description = "an element of some channels for each work-item, which looks for its regions",
     .style = DeviceStyle::Gpu,
     .last_resort = true},
    Steps<takes_all<Gradient>, run_elements>());

std::string describe(const OpCall& call, const Regions& r) {
  return fmt::format("{} {} {} regions in {} x {} bins of {} images [{}, {}, {}]", call.name(),
                     name(r.type), r.p.rois, r.p.pooled[0], r.p.pooled[1], r.p.batch, r.p.channels,
                     r.p.size[0], r.p.size[1]);
}
struct Traits {
  static std::string describe(const OpCall& call, const Regions& regions) {
    return vision::describe(call, regions);
  }
  static std::string describe(const OpCall& call, const Gradient& what) {
    return vision::describe(call, what.regions);
  }
};
using Algorithms = AlgorithmList<Regions, Traits>;
using BackwardAlgorithms = AlgorithmList<Gradient, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("roi", kRoiOperators, {&kBins});  // leaked
  return list;
}
BackwardAlgorithms& backward_algorithms() {
  static BackwardAlgorithms& list =
      *new BackwardAlgorithms("roi_backward", kRoiOperators, {&kChannels, &kElements});  // leaked
  return list;
}

template <Pooling how>
void forward(OpCall& call) {
  check_outputs(call);
  const TensorView input = call.args().tensor(Arg::input);
  Regions regions(call, how, input);
  regions.set_images(call, input.sizes());
  call.accept();
  if (call.wants(0)) algorithms().run(call, regions);
}

template <Pooling how>
void backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(Arg::grad);
  Regions regions(call, how, gradient);
  regions.set_images(call, call.out(0).sizes());
  call.accept();
  if (!call.wants(0)) return;
  if (gradient.numel() == 0) return copy::fill_tensor(call, call.out(0), 0);
  std::optional<Contiguous> argmax;
  if (!how.sampled && !how.per_bin) argmax.emplace(call, call.args().tensor(Arg::argmax));
  const MemoryRange places = argmax ? MemoryRange(*argmax) : MemoryRange(nullptr);
  backward_algorithms().run(call, {regions, gradient, places});
}

constexpr Pooling kAlign{true, false}, kPool{false, false}, kPsAlign{true, true},
    kPsPool{false, true};
constexpr OpEntry kOperators[] = {
    {"torchvision::roi_align.out", forward<kAlign>},
    {"torchvision::_roi_align_backward.out", backward<kAlign>},
    {"torchvision::roi_pool.out", forward<kPool>},
    {"torchvision::_roi_pool_backward.out", backward<kPool>},
    {"torchvision::ps_roi_align.out", forward<kPsAlign>},
    {"torchvision::_ps_roi_align_backward.out", backward<kPsAlign>},
    {"torchvision::ps_roi_pool.out", forward<kPsPool>},
    {"torchvision::_ps_roi_pool_backward.out", backward<kPsPool>},
};

}  // namespace

constinit const std::span<const OpEntry> kRoiOperators = kOperators;

const AlgorithmFamily& roi_algorithms() { return algorithms().family(); }
const AlgorithmFamily& roi_backward_algorithms() { return backward_algorithms().family(); }

}  // namespace ocltensor::opencl::vision
