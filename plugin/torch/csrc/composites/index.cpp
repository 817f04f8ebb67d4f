// ATen's indexing operators, composed of the plugin's gather, scatter, index and nonzero.
#include <ATen/native/IndexingUtils.h>

#include "base/iteration.h"
#include "composite.h"
#include "operators/register_kernels.h"

namespace torch_ocl {
namespace {

using OptionalTensors = c10::List<std::optional<at::Tensor>>;

PluginOperator plugin_index("index.Tensor_out");

// A vector of indices along `dim`, repeated over the other dimensions of `like`.
at::Tensor spread(const at::Tensor& index, int64_t dim, const at::Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[static_cast<size_t>(dim)] = index.numel();
  return index.reshape(shape).expand(like.sizes());
}

void check_vector_index(const char* name, const at::Tensor& self, const at::Tensor& index,
                        const at::Tensor& source, int64_t dim) {
  TORCH_CHECK_INDEX(index.dim() <= 1, name, ": Index should have dimension 1 or 0 (got ",
                    index.dim(), ")");
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), name,
              ": self and source expected to have the same dtype, but got (self) ",
              self.scalar_type(), " and (source) ", source.scalar_type());
  TORCH_CHECK_INDEX(index.numel() == source.size(dim), name, ": Number of indices (", index.numel(),
                    ") should be equal to source.size(dim): (", source.size(dim),
                    "), for dim: ", dim);
}

at::Tensor& index_copy_out(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                           const at::Tensor& source, at::Tensor& out) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong,
                    "index_copy_(): Expected a long tensor for index, but got ",
                    index.scalar_type());
  const at::Tensor from = at_least_1d(source);
  dim = at::maybe_wrap_dim(dim, self.dim());
  check_vector_index("index_copy_()", self, index, from, dim);
  at::native::resize_output(out, self.sizes());
  if (!out.is_same(self)) out.copy_(self);
  if (index.numel() > 0) at_least_1d(out).scatter_(dim, spread(index, dim, from), from);
  return out;
}

at::Tensor& index_reduce_out(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                             const at::Tensor& source, c10::string_view reduce, bool include_self,
                             at::Tensor& out) {
  const at::Tensor from = at_least_1d(source);
  dim = at::maybe_wrap_dim(dim, self.dim());
  check_vector_index("index_reduce()", self, index, from, dim);
  at::native::resize_output(out, self.sizes());
  if (!out.is_same(self)) out.copy_(self);
  if (index.numel() > 0)
    at_least_1d(out).scatter_reduce_(dim, spread(index, dim, from), from, reduce, include_self);
  return out;
}

// index_fill_ accepts negative indices. scatter does not, but advanced indexing does.
void fill_at(const at::Tensor& self, int64_t dim, const at::Tensor& index,
             const at::Tensor& value) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong,
                    "index_fill_(): Expected dtype int64 for index.");
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  at::Tensor target = at_least_1d(self);
  dim = at::maybe_wrap_dim(dim, target.dim());
  OptionalTensors indices;
  for (int64_t d = 0; d < dim; ++d) indices.push_back(std::nullopt);
  indices.push_back(index.reshape({-1}));
  at::_index_put_impl_(target, indices, value, false, true);
}

at::Tensor& index_fill_scalar_(at::Tensor& self, int64_t dim, const at::Tensor& index,
                               const at::Scalar& value) {
  TORCH_CHECK(self.is_complex() || !value.isComplex(),
              "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  fill_at(self, dim, index, at::full({}, value, self.options()));
  return self;
}

at::Tensor& index_fill_tensor_(at::Tensor& self, int64_t dim, const at::Tensor& index,
                               const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0,
              "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  fill_at(self, dim, index, value.to(self.options()));
  return self;
}

at::Tensor take(const at::Tensor& self, const at::Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong,
              "take(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0,
                    "take(): tried to take from an empty tensor");
  OptionalTensors indices;
  indices.push_back(index);
  return at::index(self.reshape({-1}), indices);
}

at::Tensor& take_out(const at::Tensor& self, const at::Tensor& index, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "take(): self and out expected to have the same dtype, but got self.dtype = ",
              self.scalar_type(), " and out.dtype = ", out.scalar_type());
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  return deliver(out, self.take(index));
}

at::Tensor& put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source,
                 bool accumulate) {
  TORCH_CHECK(index.scalar_type() == at::kLong,
              "put_(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(source.scalar_type() == self.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ",
              self.scalar_type(), " and source.dtype = ", source.scalar_type());
  TORCH_CHECK(source.numel() == index.numel(),
              "put_(): Expected source and index to have the same number of elements, but got "
              "source.numel() = ",
              source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0,
                    "put_(): Tried to put elements into an empty tensor");
  if (index.numel() == 0) return self;
  at::Tensor flat = self.contiguous().view({-1});
  OptionalTensors indices;
  indices.push_back(index.reshape({-1}));
  at::_index_put_impl_(flat, indices, source.reshape({-1}), accumulate, false);
  if (!self.is_contiguous()) self.copy_(flat.view(self.sizes()));
  return self;
}

// The i-th true element of the mask takes the i-th element of the source.
at::Tensor& masked_scatter_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter_: expected self and source to have same dtypes but got ",
              self.scalar_type(), " and ", source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool,
              "masked_scatter_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  const at::Tensor chosen = mask.expand(self.sizes());
  if (self.numel() == 0) return self;
  if (source.numel() == 0) {
    TORCH_CHECK(!chosen.any().item<bool>(),
                "Number of elements of source < number of ones in mask");
    return self;
  }
  // Where the source has fewer elements than are chosen, the device reports the index.
  const at::Tensor from = chosen.reshape({-1}).cumsum(0).sub_(1).clamp_min_(0);
  const at::Tensor picked = source.reshape({-1}).index_select(0, from).view(self.sizes());
  return self.copy_(at::where(chosen, picked, self));
}

// Element i appears repeats[i] times. Negative repeats, and a size that is not their sum, are
// reported by the device where the host does not read them.
at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<c10::SymInt> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  if (repeats.size(0) == 0) return at::empty_like(repeats);
  if (!output_size) TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
  const at::Tensor begins = at::constant_pad_nd(repeats.cumsum(0), {1, 0}, 0);
  const int64_t total = output_size ? plain(*output_size) : begins[-1].item<int64_t>();
  return row_of_each(begins, total, {true, true}).to(repeats.scalar_type());
}

// Window i begins at i * step: every gradient is added to the element that unfold read.
at::Tensor unfold_backward(const at::Tensor& grad, c10::SymIntArrayRef sizes, int64_t dim,
                           int64_t size, int64_t step) {
  at::Tensor result = at::zeros(C10_AS_INTARRAYREF_SLOW(sizes), grad.options());
  if (result.dim() == 0) return result.add_(grad.sum());
  dim = at::maybe_wrap_dim(dim, result.dim());
  const auto numbers = grad.options().dtype(at::kLong);
  const at::Tensor starts = at::arange(grad.size(dim), numbers).mul_(step);
  const at::Tensor place = starts.unsqueeze(1).add(at::arange(size, numbers)).reshape({-1});
  return result.index_add_(dim, place, grad.movedim(-1, dim + 1).flatten(dim, dim + 1));
}

bool is_mask(const at::Tensor& index) {
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

// Replaces masks by the coordinates of their true elements (the host reads their number), and moves
// indices to the device of `self`.
OptionalTensors expand_masks(const at::Tensor& self, const OptionalTensors& indices) {
  at::native::checkIndexTensorTypes(indices, true);
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  OptionalTensors result;
  for (const std::optional<at::Tensor>& given : indices) {
    if (!given.has_value() || !given->defined()) {
      result.push_back(std::nullopt);
      continue;
    }
    if (!is_mask(*given)) {
      result.push_back(given->to(self.device()));
      continue;
    }
    if (given->scalar_type() == at::kByte)
      TORCH_WARN(
          "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
          "instead.");
    const auto first = static_cast<int64_t>(result.size());
    for (int64_t d = 0; d < given->dim(); ++d)
      TORCH_CHECK_INDEX(first + d < self.dim() && given->size(d) == self.size(first + d),
                        "The shape of the mask ", given->sizes(), " at index ", d,
                        " does not match the shape of the indexed tensor ", self.sizes(),
                        " at index ", first + d);
    const at::Tensor found = given->nonzero().to(self.device());
    for (int64_t d = 0; d < given->dim(); ++d) result.push_back(found.select(1, d));
  }
  TORCH_CHECK_INDEX(static_cast<int64_t>(result.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    result.size(), ")");
  return result;
}

// The shape to which the indices broadcast. If they do not broadcast, raises an IndexError, as ATen
// does.
std::vector<int64_t> common_shape(const OptionalTensors& indices) {
  std::vector<int64_t> common;
  for (const std::optional<at::Tensor>& index : indices) {
    if (!index.has_value()) continue;
    const at::IntArrayRef sizes = index->sizes();
    if (sizes.size() > common.size())
      common.insert(common.begin(), sizes.size() - common.size(), 1);
    const size_t shift = common.size() - sizes.size();
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t& have = common[shift + d];
      TORCH_CHECK_INDEX(have == sizes[d] || have == 1 || sizes[d] == 1,
                        "shape mismatch: indexing tensors could not be broadcast together: ", sizes,
                        " does not fit ", at::IntArrayRef(common));
      if (have == 1) have = sizes[d];
    }
  }
  return common;
}

// Sizes and strides of a selection from a permuted tensor, which keeps the order of the remaining
// dimensions; empty if the result is contiguous.
std::optional<std::pair<ocltensor::Dims, ocltensor::Dims>> selected_layout(
    const at::Tensor& self, const OptionalTensors& indices, const std::vector<int64_t>& common) {
  if (self.is_contiguous() || self.numel() == 0) return std::nullopt;
  std::vector<int64_t> chosen, rest;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool given = d < static_cast<int64_t>(indices.size()) && indices[d].has_value();
    (given ? chosen : rest).push_back(d);
  }
  if (rest.size() + common.size() > TB_MAX_RANK) return std::nullopt;
  const bool together =
      !chosen.empty() && chosen.back() - chosen.front() + 1 == static_cast<int64_t>(chosen.size());
  ocltensor::Dims sizes, strides;
  const auto put = [&](int64_t size, int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
  };
  const int64_t first = together ? chosen.front() : 0;  // else the indices come first
  for (const int64_t d : rest)
    if (d < first) put(self.size(d), self.stride(d));
  for (const int64_t size : common) put(size, 0);
  for (const int64_t d : rest)
    if (d >= first) put(self.size(d), self.stride(d));
  const ocltensor::Strided operand{sizes, strides};
  ocltensor::Dims result = ocltensor::elementwise_strides(sizes, std::span(&operand, 1));
  if (result.empty()) return std::nullopt;
  return std::pair(sizes, result);
}

at::Tensor index(const at::Tensor& self, const OptionalTensors& indices) {
  const OptionalTensors plain_indices = expand_masks(self, indices);
  const auto layout = selected_layout(self, plain_indices, common_shape(plain_indices));
  if (!layout.has_value())
    return Functional<at::_ops::index_Tensor, plugin_index>::call(self, plain_indices);
  const auto& [sizes, strides] = *layout;
  at::Tensor out = at::empty_strided({sizes.data(), sizes.size()}, {strides.data(), strides.size()},
                                     self.options());
  return Out<at::_ops::index_Tensor_out, plugin_index>::call(self, plain_indices, out);
}

at::Tensor& index_out(const at::Tensor& self, const OptionalTensors& indices, at::Tensor& out) {
  const OptionalTensors plain_indices = expand_masks(self, indices);
  (void)common_shape(plain_indices);
  return Out<at::_ops::index_Tensor_out, plugin_index>::call(self, plain_indices, out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("index_copy.out", TORCH_FN(index_copy_out));
  m.impl("index_reduce.out", TORCH_FN(index_reduce_out));
  m.impl("index_fill_.int_Scalar", TORCH_FN(index_fill_scalar_));
  m.impl("index_fill_.int_Tensor", TORCH_FN(index_fill_tensor_));
  m.impl("take", TORCH_FN(take));
  m.impl("take.out", TORCH_FN(take_out));
  m.impl("put_", TORCH_FN(put_));
  m.impl("masked_scatter_", TORCH_FN(masked_scatter_));
  m.impl("unfold_backward", TORCH_FN(unfold_backward));
  m.impl("repeat_interleave.Tensor", TORCH_FN(repeat_interleave));
  m.impl("index.Tensor", TORCH_FN(index));
  m.impl("index.Tensor_out", TORCH_FN(index_out));
}

}  // namespace torch_ocl
