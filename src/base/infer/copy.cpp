// Inference for copies, fills and constructors.
#include <algorithm>
#include <cmath>

#include "../promotion.h"
#include "common.h"

namespace ocltensor::infer {
namespace {

// Padding has two numbers for each padded dimension. There are one or two others.
void check_rank(const Args& args, int64_t rank) {
  const auto padding = args.ints(Arg::padding);
  check(padding.size() == 2 || padding.size() == 4 || padding.size() == 6,
        "{}: padding needs 2, 4 or 6 numbers, got {}", args.schema().full_name(), padding.size());
  const auto dims = static_cast<int64_t>(padding.size() / 2);
  check(rank == dims + 1 || rank == dims + 2,
        "{}: expected a tensor of {} or {} dimensions to pad {} of them, got {}",
        args.schema().full_name(), dims + 1, dims + 2, dims, rank);
}

// The sizes after padding (sign 1), or before it (-1).
Dims padded(std::span<const int64_t> sizes, std::span<const int64_t> padding, int64_t sign) {
  Dims result(sizes);
  for (size_t k = 0; 2 * k < padding.size(); ++k)
    result[result.size() - 1 - k] += sign * (padding[2 * k] + padding[2 * k + 1]);
  return result;
}

// `sizes`: before padding. What is read has to be there.
void check_padding(const Args& args, std::span<const int64_t> sizes) {
  const std::string& name = args.schema().full_name();
  check_rank(args, static_cast<int64_t>(sizes.size()));
  const auto padding = args.ints(Arg::padding);
  const std::string_view mode = args.string(Arg::mode);
  check(mode == "reflect" || mode == "replicate", "{}: there is no mode '{}'", name, mode);
  for (size_t k = 0; 2 * k < padding.size(); ++k) {
    const int64_t size = sizes[sizes.size() - 1 - k];
    const int64_t before = padding[2 * k], after = padding[2 * k + 1];
    check(size > 0 && size + before + after > 0, "{}: padding {} leaves nothing of {} elements",
          name, to_string(padding), size);
    check(mode != "reflect" || std::max(before, after) < size,
          "{}: padding {} does not reflect in {} elements", name, to_string(padding), size);
  }
}

}  // namespace

Specs arange(const Args& args) {
  const Scalar start = args.scalar(Arg::start);
  const Scalar end = args.scalar(Arg::end);
  const Scalar step = args.scalar(Arg::step);
  const bool integers = !start.is_float() && !end.is_float() && !step.is_float();
  const double by = step.as_double();
  check(by != 0, "arange: step must not be zero");
  check(std::isfinite(start.as_double()) && std::isfinite(end.as_double()),
        "arange: the range from {} to {} is not finite", start.as_double(), end.as_double());
  const double range = integers ? static_cast<double>(end.as_int() - start.as_int())
                                : end.as_double() - start.as_double();
  check(range == 0 || (range > 0) == (by > 0),
        "arange: the range from {} to {} does not fit a step of {}", start.as_double(),
        end.as_double(), by);
  const double count = std::ceil(range / by);
  check(count < 0x1p63, "arange: {} elements are too many", count);
  return {spec(integers ? DType::Int64 : DType::Float32, Dims{static_cast<int64_t>(count)})};
}

Specs cat(const Args& args) {
  const auto tensors = args.tensors(Arg::tensors);
  check(!tensors.empty(), "cat needs at least one tensor");
  PromotionState type;
  std::optional<TensorView> first;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].has_value(), "cat: the tensor at position {} is absent", i);
    check(tensors[i]->ndim() > 0,
          "cat: the zero-dimensional tensor at position {} has no dimension to join", i);
    type.add(*tensors[i]);
    // As in ATen, a vector without elements may be joined with any shape.
    if (!first && !(tensors[i]->ndim() == 1 && tensors[i]->numel() == 0)) first = tensors[i];
  }
  if (!first) return {spec(type.result(), Dims{0})};
  Dims sizes = first->sizes();
  const auto dim = static_cast<size_t>(wrap_dim(args.integer(Arg::dim), first->ndim()));
  sizes[dim] = 0;
  for (const auto& t : tensors) {
    if (t->ndim() == 1 && t->numel() == 0) continue;
    Dims other = t->sizes();
    check(other.size() == sizes.size(),
          "cat: tensors must have the same number of dimensions, got {} and {}",
          to_string(first->sizes()), to_string(other));
    for (size_t d = 0; d < sizes.size(); ++d)
      check(d == dim || other[d] == sizes[d],
            "cat: tensors must agree in all dimensions but {}, got {} and {}", dim,
            to_string(first->sizes()), to_string(other));
    sizes[dim] += other[dim];
  }
  return {spec(type.result(), sizes)};
}

Specs copy(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto src = args.tensor(Arg::src);
  (void)broadcast_strides(src.sizes(), src.strides(), self.sizes());
  return {spec(self.dtype(), self.sizes())};
}

Specs eye(const Args& args) {
  check(args.integer(Arg::n) >= 0 && args.integer(Arg::m) >= 0,
        "eye: sizes must not be negative, got {} and {}", args.integer(Arg::n),
        args.integer(Arg::m));
  return {spec(DType::Float32, Dims{args.integer(Arg::n), args.integer(Arg::m)})};
}

Specs flip(const Args& args) {
  const auto self = args.tensor(Arg::self);
  if (!args.ints(Arg::dims).empty()) (void)dim_mask(args.ints(Arg::dims), self.ndim());
  return {spec_like(self.dtype(), self)};
}

Specs linspace(const Args& args) {
  check(args.integer(Arg::steps) >= 0, "linspace: the number of steps must not be negative, got {}",
        args.integer(Arg::steps));
  return {spec(DType::Float32, Dims{args.integer(Arg::steps)})};
}

Specs fill(const Args& args) {
  const auto self = args.tensor(Arg::self);
  if (args.value(Arg::value).tag == TB_COMPLEX)
    check(is_complex(self.dtype()) || args.number(Arg::value).imaginary() == 0,
          "fill: a complex number cannot be converted to {}", ocltensor::name(self.dtype()));
  return {spec(self.dtype(), self.sizes())};
}

Specs pad(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto padding = args.ints(Arg::padding);
  check_padding(args, self.sizes());
  return {spec(self.dtype(), padded(self.sizes(), padding, 1))};
}

Specs pad_backward(const Args& args) {
  const auto grad = args.tensor(Arg::grad_output);
  if (!is_complex(grad.dtype())) check_floating(args, grad);
  check_rank(args, grad.ndim());
  const Dims sizes = padded(grad.sizes(), args.ints(Arg::padding), -1);
  check_padding(args, sizes);
  return {spec(grad.dtype(), sizes)};
}

Specs triangle(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check(self.ndim() >= 2, "{} needs a tensor of at least 2 dimensions, got {}", args.schema().name,
        self.ndim());
  return {spec(self.dtype(), self.sizes())};
}

Specs roll(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto shifts = args.ints(Arg::shifts);
  const auto dims = args.ints(Arg::dims);
  check(!shifts.empty(), "roll needs at least one shift");
  check(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
        "roll: shifts and dimensions must align, got {} and {}", to_string(shifts),
        to_string(dims));
  if (self.ndim() == 0 && !dims.empty())
    throw RangeError(
        fmt::format("Dimension specified as {} but tensor has no dimensions", dims[0]));
  for (int64_t d : dims) (void)wrap_dim(d, self.ndim());
  return {spec(self.dtype(), self.sizes())};
}

}  // namespace ocltensor::infer
