// Inference for torchvision's operators: boxes, pooling of regions, deformable convolution.
#include "common.h"

namespace ocltensor::infer {
namespace {

void check_shape(const Args& args, const char* what, TensorView tensor, const Dims& expected) {
  check(Dims(tensor.sizes()) == expected, "{}: {} must have shape {}, got {}",
        args.schema().full_name(), what, to_string(expected), to_string(tensor.sizes()));
}

// The shape of the bins of regions: [regions, channels, height, width], where images have
// `channels`. Position-sensitive bins have channels of their own.
Dims bins_of(const Args& args, int64_t channels, bool position_sensitive) {
  const auto rois = args.tensor(Arg::rois);
  const std::string& name = args.schema().full_name();
  check(rois.ndim() == 2 && rois.size(1) == 5,
        "{}: rois must have shape as Tensor[K, 5], got shape {}", name, to_string(rois.sizes()));
  const int64_t height = args.integer(Arg::pooled_height), width = args.integer(Arg::pooled_width);
  check(height >= 0 && width >= 0, "{}: there cannot be {} x {} bins", name, height, width);
  if (position_sensitive) {
    check(height * width > 0 && channels % (height * width) == 0,
          "{}: input channels must be a multiple of pooling height * pooling width, got {} "
          "channels and {} x {} bins",
          name, channels, height, width);
    channels /= height * width;
  }
  return {rois.size(0), channels, height, width};
}

Dims pooled_sizes(const Args& args, bool position_sensitive) {
  const auto input = args.tensor(Arg::input);
  check_floating(args, input);
  check_same_type(args, input, args.tensor(Arg::rois));
  check(input.ndim() == 4, "{}: expected images of 4 dimensions, got shape {}",
        args.schema().full_name(), to_string(input.sizes()));
  return bins_of(args, input.size(1), position_sensitive);
}

Specs gradient_of_images(const Args& args, bool position_sensitive) {
  const auto grad = args.tensor(Arg::grad);
  check_floating(args, grad);
  check_same_type(args, grad, args.tensor(Arg::rois));
  const int64_t channels = args.integer(Arg::channels);
  check_shape(args, "grad", grad, bins_of(args, channels, position_sensitive));
  return {spec(grad.dtype(), Dims{args.integer(Arg::batch_size), channels,
                                  args.integer(Arg::height), args.integer(Arg::width)})};
}

struct Lengths {
  Arg stride, padding, dilation;
};

// The number of a window's positions along dimension 2 + d.
int64_t positions(const Args& args, int64_t d, const Lengths& a) {
  const int64_t stride = args.integer(a.stride), padding = args.integer(a.padding),
                dilation = args.integer(a.dilation);
  const std::string& name = args.schema().full_name();
  check(stride > 0, "{}: stride must be positive, got {}", name, stride);
  check(padding >= 0, "{}: padding must not be negative, got {}", name, padding);
  check(dilation > 0, "{}: dilation must be positive, got {}", name, dilation);
  const int64_t window = dilation * (args.tensor(Arg::weight).size(2 + d) - 1) + 1;
  const int64_t room = args.tensor(Arg::input).size(2 + d) + 2 * padding - window;
  check(room >= 0, "{}: Calculated output size too small: a window of {} in images of shape {}",
        name, window, to_string(args.tensor(Arg::input).sizes()));
  return room / stride + 1;
}

// Checks the arguments of a deformable convolution; returns the shape of its result.
Dims deformed_sizes(const Args& args) {
  const auto input = args.tensor(Arg::input), weight = args.tensor(Arg::weight),
             offset = args.tensor(Arg::offset), mask = args.tensor(Arg::mask),
             bias = args.tensor(Arg::bias);
  const std::string& name = args.schema().full_name();
  check_floating(args, input);
  for (const TensorView& other : {weight, offset, mask, bias}) check_same_type(args, input, other);
  check(input.ndim() == 4 && weight.ndim() == 4,
        "{}: input and weight must have 4 dimensions, got shapes {} and {}", name,
        to_string(input.sizes()), to_string(weight.sizes()));
  const int64_t groups = args.integer(Arg::groups), shared = args.integer(Arg::offset_groups);
  check(groups > 0 && weight.size(1) * groups == input.size(1) && weight.size(0) % groups == 0,
        "{}: a weight of shape {} in {} groups does not fit an input of {} channels", name,
        to_string(weight.sizes()), groups, input.size(1));
  check(shared > 0 && input.size(1) % shared == 0,
        "{}: {} channels cannot be divided in {} groups of offsets", name, input.size(1), shared);
  check(weight.size(2) > 0 && weight.size(3) > 0, "{}: the weight has an empty window of {} x {}",
        name, weight.size(2), weight.size(3));
  const int64_t height = positions(args, 0, {Arg::stride_h, Arg::pad_h, Arg::dilation_h});
  const int64_t width = positions(args, 1, {Arg::stride_w, Arg::pad_w, Arg::dilation_w});
  const int64_t taps = shared * weight.size(2) * weight.size(3);
  check_shape(args, "offset", offset, {input.size(0), 2 * taps, height, width});
  if (args.boolean(Arg::use_mask))
    check_shape(args, "mask", mask, {input.size(0), taps, height, width});
  check_shape(args, "bias", bias, {weight.size(0)});
  return {input.size(0), weight.size(0), height, width};
}

}  // namespace

// As many boxes are kept as overlap no better one: at most all.
Specs nms(const Args& args) {
  const auto dets = args.tensor(Arg::dets), scores = args.tensor(Arg::scores);
  const std::string& name = args.schema().full_name();
  check(dets.ndim() == 2, "{}: boxes should be a 2d tensor, got {}D", name, dets.ndim());
  check(dets.size(1) == 4, "{}: boxes should have 4 elements in dimension 1, got {}", name,
        dets.size(1));
  check(scores.ndim() == 1, "{}: scores should be a 1d tensor, got {}D", name, scores.ndim());
  check(dets.size(0) == scores.size(0),
        "{}: boxes and scores should have same number of elements in dimension 0, got {} and {}",
        name, dets.size(0), scores.size(0));
  check_floating(args, dets);
  check_same_type(args, dets, scores);
  return {spec(DType::Int64, Dims{dets.size(0)})};
}

Specs deform_conv2d(const Args& args) {
  return {spec(args.tensor(Arg::input).dtype(), deformed_sizes(args))};
}
Specs deform_conv2d_backward(const Args& args) {
  const auto grad = args.tensor(Arg::grad);
  check_same_type(args, grad, args.tensor(Arg::input));
  check_shape(args, "grad", grad, deformed_sizes(args));
  Specs specs;
  for (const Arg a : {Arg::input, Arg::weight, Arg::offset, Arg::mask, Arg::bias})
    specs.push_back(spec(grad.dtype(), args.tensor(a).sizes()));
  return specs;
}

Specs roi_align(const Args& args) {
  return {spec(args.tensor(Arg::input).dtype(), pooled_sizes(args, false))};
}
Specs roi_pool(const Args& args) {
  const Dims sizes = pooled_sizes(args, false);
  return {spec(args.tensor(Arg::input).dtype(), sizes), spec(DType::Int32, sizes)};
}
Specs roi_backward(const Args& args) { return gradient_of_images(args, false); }

Specs ps_roi(const Args& args) {
  const Dims sizes = pooled_sizes(args, true);
  return {spec(args.tensor(Arg::input).dtype(), sizes), spec(DType::Int32, sizes)};
}
Specs ps_roi_backward(const Args& args) { return gradient_of_images(args, true); }

}  // namespace ocltensor::infer
