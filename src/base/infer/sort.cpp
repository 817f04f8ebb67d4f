// Inference for sort, topk, searchsorted and rows that offsets say.
#include "common.h"

namespace ocltensor::infer {

Specs sort(const Args& args) {
  const auto self = args.tensor(Arg::self);
  (void)wrap_dim(args.integer(Arg::dim), self.ndim());
  return {spec(self.dtype(), self.sizes()), spec(DType::Int64, self.sizes())};
}

Specs topk(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const int64_t k = args.integer(Arg::k);
  const int64_t dim = wrap_dim(args.integer(Arg::dim), self.ndim());
  const int64_t length = self.ndim() == 0 ? 1 : self.size(dim);
  check(k >= 0 && k <= length, "topk: k must be between 0 and {}, got {}", length, k);
  Dims sizes = self.sizes();
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = k;
  return {spec(self.dtype(), sizes), spec(DType::Int64, sizes)};
}

namespace {

Specs one_of_rows(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const int64_t dim = wrap_dim(args.integer(Arg::dim), self.ndim());
  DimMask mask;
  if (self.ndim() > 0) mask.set(static_cast<size_t>(dim));
  check_reducible(args, self, mask);
  const Dims sizes = reduced_sizes(self.sizes(), mask, args.boolean(Arg::keepdim));
  return {spec(self.dtype(), sizes), spec(DType::Int64, sizes)};
}

}  // namespace

Specs median(const Args& args) { return one_of_rows(args); }
Specs mode(const Args& args) { return one_of_rows(args); }

Specs kthvalue(const Args& args) {
  const auto self = args.tensor(Arg::self);
  Specs specs = one_of_rows(args);
  const int64_t k = args.integer(Arg::k), dim = wrap_dim(args.integer(Arg::dim), self.ndim());
  check(k >= 1 && k <= (self.ndim() == 0 ? 1 : self.size(dim)),
        "kthvalue(): selected number k out of range for dimension {}", dim);
  return specs;
}

Specs searchsorted(const Args& args) {
  const auto sequence = args.tensor(Arg::sorted_sequence);
  const auto self = args.tensor(Arg::self);
  check_same_type(args, sequence, self);
  check(sequence.ndim() > 0, "searchsorted: the sorted sequence must have a dimension");
  if (sequence.ndim() > 1) {
    bool fits = self.ndim() == sequence.ndim();
    for (int64_t d = 0; fits && d + 1 < self.ndim(); ++d) fits = self.size(d) == sequence.size(d);
    check(fits,
          "searchsorted: the sorted sequence must have one dimension or the values' leading "
          "dimensions, got {} and {}",
          to_string(sequence.sizes()), to_string(self.sizes()));
  }
  if (!args.is_none(Arg::side)) {
    const auto side = args.string(Arg::side);
    check(side == "left" || side == "right", "searchsorted: side must be left or right, got {}",
          side);
  }
  if (const auto sorter = args.optional_tensor(Arg::sorter))
    check(sorter->dtype() == DType::Int64 && Dims(sorter->sizes()) == Dims(sequence.sizes()),
          "searchsorted: sorter must be int64 and of the sorted sequence's shape {}",
          to_string(sequence.sizes()));
  return {spec(args.boolean(Arg::out_int32) ? DType::Int32 : DType::Int64, self.sizes())};
}

Specs rows_of(const Args& args) {
  const auto offsets = args.tensor(Arg::offsets);
  const int64_t count = args.integer(Arg::count);
  check_index_type(args, offsets);
  check(offsets.ndim() > 0 && offsets.size(-1) > 0,
        "{}: there must be an offset for each row, got offsets of shape {}",
        args.schema().full_name(), to_string(offsets.sizes()));
  check(count >= 0, "{}: count must not be negative, got {}", args.schema().full_name(), count);
  Dims sizes = offsets.sizes();
  sizes.back() = count;
  return {spec(DType::Int64, sizes)};
}

Specs histogramdd(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const auto edges = args.whole_list(Arg::bins);
  check(self.ndim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  check(static_cast<int64_t>(edges.size()) == self.size(-1) && !edges.empty(),
        "torch.histogramdd: expected {} sequences of bin edges, but got {}", self.size(-1),
        edges.size());
  Dims bins;
  for (const TensorView edge : edges) {
    check_same_type(args, self, edge);
    check(edge.ndim() == 1 && edge.size(0) >= 2,
          "torch.histogramdd: bin edges should be a vector of at least two elements");
    bins.push_back(edge.size(0) - 1);
  }
  if (const auto weight = args.optional_tensor(Arg::weight)) {
    check_same_type(args, self, *weight);
    check(weight->numel() * self.size(-1) == self.numel(),
          "torch.histogramdd: weight should have one element per point, got shape {}",
          to_string(weight->sizes()));
  }
  return {spec(self.dtype(), bins)};
}

}  // namespace ocltensor::infer
