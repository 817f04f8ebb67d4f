// Shape arithmetic shared by the inference functions.
#include "common.h"

namespace ocltensor::infer {

DimMask dim_mask(std::span<const int64_t> dims, int64_t rank) {
  if (dims.empty()) return first_dims(static_cast<size_t>(rank));
  DimMask mask;
  for (int64_t dim : dims) {
    const auto d = static_cast<size_t>(wrap_dim(dim, rank));
    check(!mask[d], "dimension {} appears more than once in the list of dimensions", d);
    mask.set(d);
  }
  return mask;
}

Dims reduced_sizes(std::span<const int64_t> sizes, DimMask mask, bool keepdim) {
  Dims result;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!mask[d])
      result.push_back(sizes[d]);
    else if (keepdim)
      result.push_back(1);
  }
  return result;
}

void check_reducible(const Args& args, TensorView self, DimMask mask) {
  for (int64_t d = 0; d < self.ndim(); ++d)
    check(!mask[static_cast<size_t>(d)] || self.size(d) != 0,
          "{}: cannot reduce dimension {} of size 0 of a tensor of shape {}: the operation has no "
          "identity",
          args.schema().full_name(), d, to_string(self.sizes()));
}

Dims spatial(const Args& args, Arg a, size_t count, std::span<const int64_t> fallback) {
  const auto given = args.ints(a);
  if (given.empty() && !fallback.empty()) return fallback;
  check(given.size() == 1 || given.size() == count, "{}: argument '{}' must have 1 or {} entries",
        args.schema().full_name(), name(a), count);
  return given.size() == count ? Dims(given) : Dims(count, given[0]);
}

int64_t pooled_size(int64_t input, int64_t kernel, int64_t padding, int64_t stride,
                    int64_t dilation, bool ceil_mode) {
  check(kernel > 0 && stride > 0 && dilation > 0,
        "pooling needs a kernel, stride and dilation above 0, got {}, {} and {}", kernel, stride,
        dilation);
  check(padding >= 0 && padding <= ((kernel - 1) * dilation + 1) / 2,
        "pooling padding must be at least 0 and at most half of the effective kernel size, got {} "
        "for kernel {}",
        padding, kernel);
  const int64_t reach = input + 2 * padding - dilation * (kernel - 1) - 1;
  const int64_t numerator = reach + (ceil_mode ? stride - 1 : 0);
  int64_t size = (numerator >= 0 ? numerator / stride : -((-numerator + stride - 1) / stride)) + 1;
  // The last window must start inside the input or its left padding.
  if (ceil_mode && (size - 1) * stride >= input + padding) --size;
  check(size > 0, "pooling of size {} with kernel {} and padding {} has no output", input, kernel,
        padding);
  return size;
}

Factors factors_of(const Args& args) {
  constexpr Factors kNames[] = {{Arg::batch1, Arg::batch2}, {Arg::mat1, Arg::mat2},
                                {Arg::mat, Arg::vec},       {Arg::self, Arg::mat2},
                                {Arg::self, Arg::vec},      {Arg::self, Arg::tensor}};
  for (const Factors factors : kNames)
    if (args.has(factors.a) && args.has(factors.b)) return factors;
  fail(TB_E_INTERNAL, "{} is no product", args.schema().full_name());
}

std::optional<double> resampling_scale(const Args& args, size_t from_last) {
  constexpr Arg kNames[] = {Arg::scales_w, Arg::scales_h, Arg::scales_d};
  return args.optional_real(args.has(Arg::scales) ? Arg::scales : kNames[from_last]);
}

void check_floating(const Args& args, TensorView tensor) {
  check(is_floating(tensor.dtype()), "{} needs a floating-point tensor, got {}",
        args.schema().full_name(), name(tensor.dtype()));
}

void check_floating_or_int64(const Args& args, TensorView tensor) {
  if (tensor.dtype() != DType::Int64) check_floating(args, tensor);
}

void check_same_type(const Args& args, TensorView a, TensorView b) {
  check(a.dtype() == b.dtype(), "{} needs tensors of one type, got {} and {}",
        args.schema().full_name(), name(a.dtype()), name(b.dtype()));
}

void check_index_type(const Args& args, TensorView index) {
  check(index.dtype() == DType::Int64 || index.dtype() == DType::Int32,
        "{}: indices must be int64 or int32, got {}", args.schema().full_name(),
        name(index.dtype()));
}

}  // namespace ocltensor::infer
