// segment_reduce: reduces runs along one dimension, given by lengths or offsets, to one element
// each.
#include <limits>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Given = std::optional<Tensor>;

bool has(const Given& tensor) { return tensor.has_value() && tensor->defined(); }

// ATen's other names of two reductions.
c10::string_view plain_name(c10::string_view reduce) {
  if (reduce == "amax") return "max";
  return reduce == "amin" ? "min" : reduce;
}

// Where segments of these lengths begin, and where the last one ends.
Tensor ends_of(const Tensor& lengths, int64_t axis) {
  const Tensor long_ones = lengths.to(at::kLong);
  return at::constant_pad_nd(long_ones.cumsum(axis), {1, 0}, 0);
}

// The lengths of the segments along the last dimension, and the segment of each element of `data`;
// elements before the first and after the last segment count as one more.
struct Segments {
  Tensor lengths, place;
  int64_t count;
};

Segments segments(const Tensor& data, const Given& lengths, const Given& offsets, int64_t axis) {
  TORCH_CHECK(has(lengths) || has(offsets),
              "segment_reduce(): Either lengths or offsets must be defined.");
  Segments s;
  s.lengths = has(lengths) ? *lengths : offsets->diff();
  TORCH_CHECK(s.lengths.dim() == axis + 1, "segment_reduce(): axis ", axis,
              " should be the last dimension of lengths, which has shape ", s.lengths.sizes());
  s.count = s.lengths.size(axis);
  const Tensor begins = has(lengths) ? ends_of(s.lengths, axis) : *offsets;
  Tensor place = row_of_each(begins, data.size(axis), {false, false});
  if (!has(lengths)) place.masked_fill_(place.lt(0), s.count);
  while (place.dim() < data.dim()) place = place.unsqueeze(-1);
  s.place = place.expand(data.sizes());
  return s;
}

double start_of(c10::string_view reduce) {
  if (reduce == "max") return -std::numeric_limits<double>::infinity();
  if (reduce == "min") return std::numeric_limits<double>::infinity();
  return reduce == "prod" ? 1 : 0;
}

c10::string_view scatter_name(c10::string_view reduce) {
  if (reduce == "max") return "amax";
  if (reduce == "min") return "amin";
  TORCH_CHECK(reduce == "sum" || reduce == "mean" || reduce == "prod",
              "segment_reduce(): unsupported reduction ", reduce);
  return reduce == "prod" ? "prod" : "sum";
}

Tensor trailing(const Tensor& lengths, const Tensor& like) {
  Tensor t = lengths;
  while (t.dim() < like.dim()) t = t.unsqueeze(-1);
  return t;
}

// One result per segment, and one more for the elements after the last segment.
Tensor gathered(const Tensor& data, const Segments& s, int64_t axis, c10::string_view reduce,
                double start) {
  std::vector<int64_t> sizes = data.sizes().vec();
  sizes[static_cast<size_t>(axis)] = s.count + 1;
  return at::full(sizes, start, data.options())
      .scatter_reduce(axis, s.place, data, scatter_name(reduce), true);
}

Tensor segment_reduce(const Tensor& data, c10::string_view named, const Given& lengths,
                      const Given& indices, const Given& offsets, int64_t axis, bool unsafe,
                      const std::optional<at::Scalar>& initial) {
  axis = at::maybe_wrap_dim(axis, data.dim());
  const c10::string_view reduce = plain_name(named);
  TORCH_CHECK(!has(indices), "segment_reduce(): indices based reduction is not supported yet.");
  if (!unsafe && has(lengths)) {
    TORCH_CHECK(lengths->numel() == 0 || lengths->min().item<int64_t>() >= 0,
                "lengths contains negative value!");
    TORCH_CHECK(lengths->sum(-1).eq(data.size(axis)).all().item<bool>(),
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(",
                axis, ") when !unsafe.");
  }
  const Segments s = segments(data, lengths, offsets, axis);
  const double start = initial.has_value() ? initial->toDouble() : start_of(reduce);
  Tensor result = gathered(data, s, axis, reduce, start).narrow(axis, 0, s.count).contiguous();
  if (reduce != "mean") return result;
  const Tensor length = trailing(s.lengths, result);
  result.div_(length.clamp_min(1));
  if (!initial.has_value())
    result.masked_fill_(length.eq(0), std::numeric_limits<double>::quiet_NaN());
  return result;
}

// Expands a tensor of one number per segment to the segments' elements.
struct Backward {
  const Segments& s;
  int64_t axis;
  Tensor padded(const Tensor& x) const {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes[static_cast<size_t>(axis)] = 1;
    return at::cat({x, at::zeros(sizes, x.options())}, axis);
  }
  Tensor each(const Tensor& x) const { return padded(x).gather(axis, s.place); }
};

// The product of all other elements of the segment: beside one zero it is the product of the rest,
// beside two it is 0.
Tensor product_slope(const Backward& b, const Tensor& data, const Tensor& output, double start) {
  const Tensor zero = data.eq(0);
  const Tensor rest = gathered(data.masked_fill(zero, 1), b.s, b.axis, "prod", start);
  const Tensor zeros = gathered(zero.to(data.scalar_type()), b.s, b.axis, "sum", 0);
  const Tensor alone = zeros.gather(b.axis, b.s.place).eq(1);
  const Tensor others = rest.gather(b.axis, b.s.place);
  return at::where(zero, others.masked_fill(alone.logical_not(), 0), b.each(output) / data);
}

Tensor segment_reduce_backward(const Tensor& grad, const Tensor& output, const Tensor& data,
                               c10::string_view named, const Given& lengths, const Given& offsets,
                               int64_t axis, const std::optional<at::Scalar>& initial) {
  axis = at::maybe_wrap_dim(axis, data.dim());
  const c10::string_view reduce = plain_name(named);
  const Segments s = segments(data, lengths, offsets, axis);
  const Backward b{s, axis};
  const Tensor outer = b.each(grad);
  if (reduce == "sum") return outer;
  if (reduce == "mean") {
    const Tensor length = trailing(s.lengths, output).clamp_min(1).to(data.scalar_type());
    return b.each(grad / length);
  }
  if (reduce == "prod")
    return outer * product_slope(b, data, output, initial.has_value() ? initial->toDouble() : 1);
  // All elements that equal the extreme share its gradient.
  const Tensor hits = data.eq(b.each(output)).logical_or_(data.isnan()).to(data.scalar_type());
  const Tensor sharers = gathered(hits, s, axis, "sum", 0).gather(axis, s.place);
  return (outer * hits).div_(sharers.clamp_min(1));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("segment_reduce", TORCH_FN(segment_reduce));
  m.impl("_segment_reduce_backward", TORCH_FN(segment_reduce_backward));
}

}  // namespace torch_ocl
