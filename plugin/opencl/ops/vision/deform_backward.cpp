// torchvision::_deform_conv2d_backward: the gradients of columns, and what follows from them.
#include "call/divide_up.h"
#include "deform.h"
#include "ops/index/index.h"
#include "ops/index/runs.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::vision {
namespace {

constexpr reduce::Reduction kSum{1, {{"a", reduce::kAdd, "0", "x"}}};

// The gradients of a pass's columns, from those of its results.
void make_column_gradients(const OpCall& call, const Pass& pass, tb_address weight,
                           tb_address result) {
  const Deform& deform = pass.deform;
  for (int64_t group = 0; group < deform.groups; ++group) {
    const Matrices m = matrices(pass, weight, result, group);
    matmul::run_matmul(call, {.types = pass.type,
                              .batch = pass.count,
                              .m = deform.depth(),
                              .n = deform.positions,
                              .k = deform.outputs / deform.groups,
                              .a = matmul::transposed(m.weight),
                              .b = m.result,
                              .c = m.columns});
  }
}

// Adds what a pass's images, one after another, contribute to the gradient of the weight.
void add_weight_gradient(const OpCall& call, const Pass& pass, tb_address weight,
                         tb_address result) {
  const Deform& deform = pass.deform;
  for (int64_t i = 0; i < pass.count; ++i)
    for (int64_t group = 0; group < deform.groups; ++group) {
      Matrices m = matrices(pass, weight, result, group);
      m.result.address = moved(m.result.address, i * m.result.batch, pass.type);
      m.columns.address = moved(m.columns.address, i * m.columns.batch, pass.type);
      matmul::Problem product{.types = pass.type,
                              .batch = 1,
                              .m = deform.outputs / deform.groups,
                              .n = deform.depth(),
                              .k = deform.positions,
                              .a = m.result,
                              .b = matmul::transposed(m.columns),
                              .c = m.weight};
      if (pass.first + i > 0) product.end.add(product.c);
      matmul::run_matmul(call, product);
    }
}

void find_slopes(const OpCall& call, const Pass& pass, TensorView offset, TensorView mask) {
  const Deform& deform = pass.deform;
  const auto [p, division] =
      pass.cut(call, pass.count * deform.p.groups * deform.taps * deform.positions);
  call.launch(kernels::vision::deform_backward::slopes, deform.defines(pass.type),
              {.slope = offset,
               .factor = deform.masked ? MemoryRange(mask) : MemoryRange(nullptr),
               .columns = pass.column_tensor(),
               .image = pass.image,
               .offset = pass.offset,
               .mask = pass.mask,
               .p = p})
      .run(division.global, division.local);
}

// The gradient of a pass's images, from those of its columns.
struct ImageGradient {
  const Pass& pass;
  TensorView out;  // of all images
};

// Each work-item owns some channels of an image and goes through all taps.
void run_channels(const OpCall& call, const ImageGradient& what) {
  const Pass& pass = what.pass;
  const DeformParams& g = pass.deform.p;
  constexpr int64_t kItems = 64;
  const int64_t parts = divide_up(kItems, pass.count * g.groups);
  const int64_t share = divide_up(g.group_channels, parts);
  const LocalTensor images = copy::narrow(what.out, 0, pass.first, pass.count);
  index::Target target(call, images, {0, 1, 2, 3});
  const auto [p, division] =
      pass.cut(call, pass.count * g.groups * divide_up(g.group_channels, share), share);
  call.launch(kernels::vision::deform_backward::image_gradient, pass.deform.defines(pass.type),
              {.out = target.view(),
               .columns = pass.column_tensor(),
               .offset = pass.offset,
               .mask = pass.mask,
               .p = p})
      .run(division.global, division.local);
  target.finish();
}

// What the taps of a group of offsets read is sorted by its place, and added up in that order.
void add_by_places(const OpCall& call, const ImageGradient& what, int64_t group) {
  const Pass& pass = what.pass;
  const Deform& deform = pass.deform;
  const int64_t channels = deform.p.group_channels;
  const int64_t sources = pass.count * deform.taps * deform.positions, entries = 4 * sources;
  const DType type = compute_type(deform.type);
  const Scratch keys = call.scratch(static_cast<uint64_t>(entries) * 8),
                weights = call.scratch(static_cast<uint64_t>(entries * size_of(type)));
  const LocalTensor key_tensor(keys.address(), DType::Int64, Dims{entries}),
      weight_tensor(weights.address(), type, Dims{entries});
  auto [p, division] = pass.cut(call, sources);
  p.group = group;
  call.launch(kernels::vision::deform_backward::taps, deform.defines(pass.type),
              {.key = key_tensor,
               .weight = weight_tensor,
               .offset = pass.offset,
               .mask = pass.mask,
               .p = p})
      .run(division.global, division.local);
  const LocalTensor columns = copy::narrow(pass.column_tensor(), 1, group * channels, channels);
  const Contiguous source(call, copy::permuted(columns, {0, 2, 3, 1}));
  const LocalTensor images = copy::narrow(what.out, 0, pass.first, pass.count);
  index::Target target(call, copy::narrow(images, 1, group * channels, channels), {0, 2, 3, 1});
  copy::fill_tensor(call, target.view(), 0);
  index::Accumulation sums{target.view(), source.view(), key_tensor};
  sums.length = entries;
  sums.block = channels;
  sums.target_blocks = pass.count * deform.plane;
  const TensorView factors = weight_tensor.view();
  sums.factors = &factors;
  sums.factors_each = 4;
  index::accumulate_runs_gpu(call, sums);
  target.finish();
}
void run_places(const OpCall& call, const ImageGradient& what) {
  for (int64_t group = 0; group < what.pass.deform.p.groups; ++group)
    add_by_places(call, what, group);
}

constinit const AlgorithmFor<ImageGradient> kChannels(
    {.id = "deform_backward.channels",
     .description = "some channels of an image for each work-item, which goes through all taps",
     .style = DeviceStyle::Cpu,
     .last_resort = true},
    Steps<takes_all<ImageGradient>, run_channels>());
constinit const AlgorithmFor<ImageGradient> kPlaces(
    {.id = "deform_backward.places",
     .description = "what taps read is sorted by its place",
     .style = DeviceStyle::Gpu,
     .last_resort = true},
    Steps<takes_all<ImageGradient>, run_places>());

struct Traits {
  static std::string describe(const OpCall& call, const ImageGradient& what) {
    return vision::describe(call, what.pass.deform);
  }
};
using Algorithms = AlgorithmList<ImageGradient, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("deform_backward", kDeformOperators, {&kChannels, &kPlaces});  // leaked
  return list;
}

enum Output : size_t { OfInput, OfWeight, OfOffset, OfMask, OfBias };

void bias_gradient(const OpCall& call, TensorView grad) {
  constexpr uint32_t kImagesAndPositions = 0b1101;
  ContiguousOutput out(call, call.out(OfBias));
  const TensorView sums = out.view();
  reduce::launch_reduce(call, {&kSum,
                               compute_type(grad.dtype()),
                               Dims(grad.sizes()),
                               kImagesAndPositions,
                               {&grad},
                               {&sums}});
  out.finish();
}

void all_gradients(const OpCall& call, const Deform& deform, TensorView grad) {
  // Half precision is summed, and kept between the steps, in float32.
  const DType type = compute_type(deform.type);
  const Operand weight(call, deform.weight, type), result(call, grad, type);
  const bool copied = type != deform.type;
  const Scratch sums =
      call.scratch(copied ? static_cast<uint64_t>(deform.weight.numel() * size_of(type)) : 0);
  ContiguousOutput of_weight(call, call.out(OfWeight)), of_offset(call, call.out(OfOffset)),
      of_mask(call, call.out(OfMask));
  const LocalTensor weight_sums(copied ? sums.address() : of_weight.view().address(), type,
                                Dims(deform.weight.sizes()));
  for_each_pass(call, deform, type, [&](const Pass& pass) {
    make_column_gradients(call, pass, weight.address(), result.address());
    find_slopes(call, pass, of_offset.view(), of_mask.view());
    algorithms().run(call, {pass, call.out(OfInput)});
    make_columns(call, pass);
    add_weight_gradient(call, pass, weight_sums.view().address(), result.address());
  });
  if (copied) copy_tensor(call, of_weight.view(), weight_sums);
  of_weight.finish();
  of_offset.finish();
  if (deform.masked)
    of_mask.finish();
  else
    copy::fill_tensor(call, call.out(OfMask), 0);
  bias_gradient(call, grad);
}

}  // namespace

void deform_conv2d_backward(OpCall& call) {
  check_outputs(call);
  const Deform deform(call);
  const TensorView grad = call.args().tensor(Arg::grad);
  call.accept();
  if (grad.numel() > 0 && deform.channels > 0) return all_gradients(call, deform, grad);
  for (size_t i = 0; i < call.out_count(); ++i)
    if (call.wants(i)) copy::fill_tensor(call, call.out(i), 0);
}

const AlgorithmFamily& deform_backward_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::vision
