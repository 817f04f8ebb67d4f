// Inference for gather, scatter, advanced indexing, embedding and selection.
#include "common.h"

namespace ocltensor::infer {
namespace {

int64_t at_least_1d(TensorView t) { return std::max<int64_t>(t.ndim(), 1); }
int64_t size_or_1(TensorView t, int64_t d) { return t.ndim() == 0 ? 1 : t.size(d); }

// Throws if `index` is larger than `other` in a dimension besides `free` (-1: in any).
void check_fits(const Args& args, TensorView index, TensorView other, int64_t free,
                const char* what) {
  check(at_least_1d(index) == at_least_1d(other),
        "{}: index and {} must have the same number of dimensions, got {} and {}",
        args.schema().full_name(), what, to_string(index.sizes()), to_string(other.sizes()));
  for (int64_t d = 0; d < at_least_1d(index); ++d)
    check(d == free || size_or_1(index, d) <= size_or_1(other, d),
          "{}: index of shape {} is larger than {} of shape {} in dimension {}",
          args.schema().full_name(), to_string(index.sizes()), what, to_string(other.sizes()), d);
}

// The shape of self[indices]. The indices' common shape replaces the indexed dimensions if these
// are adjacent; otherwise it comes first.
Dims indexed_sizes(const Args& args, TensorView self,
                   const std::vector<std::optional<TensorView>>& indices) {
  Dims common;
  Dims result;
  int64_t dim = 0;
  int first = -1;
  bool adjacent = true;
  bool ended = false;
  for (const auto& index : indices) {
    const int64_t covers = !index || index->dtype() != DType::Bool ? 1 : index->ndim();
    check(dim + covers <= self.ndim(), "{}: too many indices for a tensor of {} dimensions",
          args.schema().full_name(), self.ndim());
    if (!index) {
      result.push_back(self.size(dim++));
      if (first >= 0) ended = true;
      continue;
    }
    if (index->dtype() == DType::Bool || index->dtype() == DType::UInt8)
      unsupported(TB_REASON_ARGUMENT,
                  "{}: the shape of a mask's result depends on data: turn masks into indices "
                  "with nonzero first",
                  args.schema().full_name());
    check_index_type(args, *index);
    if (first < 0) first = static_cast<int>(result.size());
    if (ended) adjacent = false;
    common = broadcast(common, index->sizes());
    ++dim;
  }
  for (; dim < self.ndim(); ++dim) result.push_back(self.size(dim));
  const size_t at = adjacent && first >= 0 ? static_cast<size_t>(first) : 0;
  for (size_t i = 0; i < common.size(); ++i) result.insert(at + i, common[i]);
  return result;
}

}  // namespace

Specs embedding(const Args& args) {
  const auto weight = args.tensor(Arg::weight);
  const auto indices = args.tensor(Arg::indices);
  check(weight.ndim() == 2, "embedding: weight must have 2 dimensions, got {}", weight.ndim());
  check_index_type(args, indices);
  Dims sizes = indices.sizes();
  sizes.push_back(weight.size(1));
  return {spec(weight.dtype(), sizes)};
}

Specs embedding_dense_backward(const Args& args) {
  const auto grad = args.tensor(Arg::grad_output);
  const auto indices = args.tensor(Arg::indices);
  check_index_type(args, indices);
  Dims expected = indices.sizes();
  check(grad.ndim() == indices.ndim() + 1,
        "embedding_dense_backward: grad_output of shape {} does not fit indices of shape {}",
        to_string(grad.sizes()), to_string(expected));
  expected.push_back(grad.size(-1));
  check(Dims(grad.sizes()) == expected,
        "embedding_dense_backward: grad_output must have shape {}, got {}", to_string(expected),
        to_string(grad.sizes()));
  check(args.integer(Arg::num_weights) >= 0,
        "embedding_dense_backward: num_weights must not be negative");
  return {spec(grad.dtype(), Dims{args.integer(Arg::num_weights), grad.size(-1)})};
}

Specs gather(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto index = args.tensor(Arg::index);
  const int64_t dim = wrap_dim(args.integer(Arg::dim), self.ndim());
  if (index.numel() != 0) {  // ATen takes an empty index of any type and rank
    check_index_type(args, index);
    check_fits(args, index, self, dim, "self");
  }
  return {spec(self.dtype(), index.sizes())};
}

Specs index(const Args& args) {
  const auto self = args.tensor(Arg::self);
  return {spec(self.dtype(), indexed_sizes(args, self, args.tensors(Arg::indices)))};
}

Specs index_add(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto index = args.tensor(Arg::index);
  const auto source = args.tensor(Arg::source);
  const int64_t dim = wrap_dim(args.integer(Arg::dim), self.ndim());
  check_index_type(args, index);
  check_same_type(args, self, source);
  check(index.ndim() <= 1, "index_add: index must be a vector, got {} dimensions", index.ndim());
  check(at_least_1d(self) == at_least_1d(source) && size_or_1(source, dim) == index.numel(),
        "index_add: source of shape {} does not fit {} indices into dimension {} of shape {}",
        to_string(source.sizes()), index.numel(), dim, to_string(self.sizes()));
  for (int64_t d = 0; d < self.ndim(); ++d)
    check(d == dim || size_or_1(source, d) == self.size(d),
          "index_add: source of shape {} and self of shape {} must agree but for dimension {}",
          to_string(source.sizes()), to_string(self.sizes()), dim);
  return {spec(self.dtype(), self.sizes())};
}

Specs index_put(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto values = args.tensor(Arg::values);
  check_same_type(args, self, values);
  const auto indices = args.tensors(Arg::indices);
  bool masks = false;
  for (const auto& i : indices)
    masks |= i && (i->dtype() == DType::Bool || i->dtype() == DType::UInt8);
  if (!masks)
    (void)broadcast_strides(values.sizes(), values.strides(), indexed_sizes(args, self, indices));
  return {spec(self.dtype(), self.sizes())};
}

Specs index_select(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto index = args.tensor(Arg::index);
  const int64_t dim = wrap_dim(args.integer(Arg::dim), self.ndim());
  check_index_type(args, index);
  check(index.ndim() <= 1, "index_select: index must be a vector, got {} dimensions", index.ndim());
  check(self.ndim() > 0 || index.numel() == 1,
        "index_select: a zero-dimensional tensor takes one index, got {}", index.numel());
  Dims sizes = self.sizes();
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = index.numel();
  return {spec(self.dtype(), sizes)};
}

Specs masked_select(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto mask = args.tensor(Arg::mask);
  check(mask.dtype() == DType::Bool, "masked_select: mask must be bool, got {}",
        name(mask.dtype()));
  return {spec(self.dtype(), Dims{numel(broadcast(self.sizes(), mask.sizes()))})};
}

Specs nonzero(const Args& args) {
  const auto self = args.tensor(Arg::self);
  return {spec(DType::Int64, Dims{self.numel(), self.ndim()})};
}

Specs nonzero_static(const Args& args) {
  const int64_t size = args.integer(Arg::size);
  check(size >= 0, "nonzero_static: 'size' must be an non-negative integer, got {}", size);
  return {spec(DType::Int64, Dims{size, args.tensor(Arg::self).ndim()})};
}

Specs scatter(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto index = args.tensor(Arg::index);
  const int64_t dim = wrap_dim(args.integer(Arg::dim), self.ndim());
  if (index.numel() != 0) {  // ATen takes an empty index of any type
    check_index_type(args, index);
    check_fits(args, index, self, dim, "self");
    if (args.has(Arg::src)) check_fits(args, index, args.tensor(Arg::src), -1, "src");
  }
  if (args.has(Arg::src)) check_same_type(args, self, args.tensor(Arg::src));
  return {spec(self.dtype(), self.sizes())};
}

}  // namespace ocltensor::infer
