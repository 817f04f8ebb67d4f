// Advanced indexing: self[indices] and self[indices] = values for any mix of integer indices, masks
// and dimensions without an index.
#include "call/division.h"
#include "index.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::index {
namespace {

bool is_mask(TensorView index) {
  return index.dtype() == DType::Bool || index.dtype() == DType::UInt8;
}

using OptionalIndices = std::vector<std::optional<TensorView>>;

// The indices brought to one integer index (or none) per dimension of self, and the shape of
// self[indices].
class IndexPlan {
 public:
  IndexPlan(const OpCall& call, TensorView self, const OptionalIndices& indices)
      : call_(call), self_(self) {
    for (const auto& index : indices) expand(index);
    check(views_.size() <= self.sizes().size(),
          "{}: too many indices for a tensor of {} dimensions", call.name(), self.ndim());
    views_.resize(self.sizes().size());
    size_t first = 0;
    size_t last = 0;
    for (size_t d = 0; d < views_.size(); ++d) {
      if (!views_[d]) {
        free_.push_back(static_cast<int64_t>(d));
        continue;
      }
      common_ = broadcast(common_, views_[d]->view().sizes());
      if (indexed_.empty()) first = d;
      last = d;
      indexed_.push_back(static_cast<int64_t>(d));
    }
    front_ = !indexed_.empty() && last - first + 1 == indexed_.size() ? first : 0;
    for (const int64_t d : free_) sizes_.push_back(self.sizes()[static_cast<size_t>(d)]);
    for (size_t k = 0; k < common_.size(); ++k) sizes_.insert(front_ + k, common_[k]);
  }

  const Dims& sizes() const { return sizes_; }      // of self[indices]
  const Dims& common() const { return common_; }    // the shape that the indices broadcast to
  const Dims& indexed() const { return indexed_; }  // dimensions of self that have an index
  const Dims& unindexed() const { return free_; }

  // Strides, for a loop over `sizes`, of a tensor laid out like self, and of one that has the
  // indices' common shape.
  Dims self_strides(std::span<const int64_t> strides) const {
    Dims result;
    for (const int64_t d : free_) result.push_back(strides[static_cast<size_t>(d)]);
    for (size_t k = 0; k < common_.size(); ++k) result.insert(front_ + k, 0);
    return result;
  }
  Dims common_strides(const Dims& strides) const {
    Dims result(free_.size(), 0);
    for (size_t k = 0; k < common_.size(); ++k) result.insert(front_ + k, strides[k]);
    return result;
  }
  // The dimensions of `sizes`, reordered so that those of the indices come first.
  Dims common_first() const {
    Dims order;
    for (size_t k = 0; k < common_.size(); ++k) order.push_back(static_cast<int64_t>(front_ + k));
    for (size_t k = 0; k < sizes_.size(); ++k)
      if (k < front_ || k >= front_ + common_.size()) order.push_back(static_cast<int64_t>(k));
    return order;
  }

  // The sum of index * step over the indexed dimensions: int64, row-major in the common shape.
  Scratch offsets(std::span<const int64_t> steps) const {
    Scratch memory = call_.scratch(static_cast<uint64_t>(numel(common_)) * 8);
    const LocalTensor out(memory.address(), DType::Int64, common_);
    Move mode = Move::Keys;
    for (size_t k = 0; k < indexed_.size(); ++k) {
      const auto d = static_cast<size_t>(indexed_[k]);
      const TensorView index = views_[d]->view();
      move_indexed(call_,
                   {out, out, Dims(common_.size(), 0), index,
                    broadcast_strides(index.sizes(), index.strides(), common_), self_.sizes()[d],
                    steps[k], true, false, indexed_[k]},
                   mode);
      mode = Move::AddKeys;
    }
    return memory;
  }

  // Moves elements between `direct`, of shape sizes(), and memory laid out like self.
  void move(TensorView direct, TensorView like_self, Move mode) const {
    const Dims base = self_strides(like_self.strides());
    if (indexed_.size() == 1) {
      const auto d = static_cast<size_t>(indexed_[0]);
      const TensorView index = views_[d]->view();
      const Dims strides =
          common_strides(broadcast_strides(index.sizes(), index.strides(), common_));
      return move_indexed(call_,
                          {direct, like_self, base, index, strides, self_.sizes()[d],
                           like_self.strides()[d], true, false, indexed_[0]},
                          mode);
    }
    Dims steps;
    for (const int64_t d : indexed_) steps.push_back(like_self.strides()[static_cast<size_t>(d)]);
    const Scratch memory = offsets(steps);
    const LocalTensor index(memory.address(), DType::Int64, common_);
    move_indexed(call_,
                 {direct, like_self, base, index, common_strides(contiguous_strides(common_)), 0, 1,
                  false, true},
                 mode);
  }

 private:
  // A mask is replaced by the coordinates of its true elements, one index per dimension.
  void expand(const std::optional<TensorView>& index) {
    if (!index) return (void)views_.emplace_back();
    if (!is_mask(*index))
      return (void)views_.emplace_back(LocalTensor(index->address(), index->dtype(),
                                                   Dims(index->sizes()), Dims(index->strides())));
    Coordinates found = coordinates_of(call_, *index);
    for (int64_t d = 0; d < index->ndim(); ++d) {
      check(static_cast<int64_t>(views_.size()) < self_.ndim() &&
                index->size(d) == self_.size(static_cast<int64_t>(views_.size())),
            "{}: the shape of the mask, {}, does not match the indexed tensor, {}", call_.name(),
            to_string(index->sizes()), to_string(self_.sizes()));
      const tb_address address =
          found.memory.empty() ? 0 : found.memory[0].address() + static_cast<uint64_t>(d) * 8;
      views_.emplace_back(
          LocalTensor(address, DType::Int64, Dims{found.count}, Dims{index->ndim()}));
    }
    masks_.push_back(std::move(found));
  }

  const OpCall& call_;
  TensorView self_;
  std::vector<std::optional<LocalTensor>> views_;
  std::vector<Coordinates> masks_;
  Dims indexed_, free_, common_, sizes_;
  size_t front_ = 0;
};

void check_indices(const OpCall& call, const OptionalIndices& indices) {
  bool any = false;
  for (const auto& index : indices) {
    if (!index) continue;
    any = true;
    check(is_mask(*index) || index->dtype() == DType::Int64 || index->dtype() == DType::Int32,
          "{}: indices must be int64, int32 or bool, got {}", call.name(), name(index->dtype()));
    if (index->ndim() == 0 && is_mask(*index))
      unsupported(TB_REASON_ARGUMENT, "{}: a mask without dimensions is not supported",
                  call.name());
  }
  if (!any) unsupported(TB_REASON_ARGUMENT, "{}: there is no index", call.name());
}

void index_op(OpCall& call) {
  check_outputs(call);  // declines masks: the shape of their result depends on data
  const TensorView self = call.args().tensor(Arg::self);
  const auto indices = call.args().tensors(Arg::indices);
  check_indices(call, indices);
  const IndexPlan plan(call, self, indices);
  call.accept();
  if (!call.wants(0)) return;
  plan.move(call.out(0), self, Move::Take);
}

constexpr elementwise::Formula kWhere{"index_put", elementwise::FormulaForm::Vector,
                                      "(b != K(0)) ? c : a"};
constexpr elementwise::Formula kComplexWhere{"index_put", elementwise::FormulaForm::Lanes,
                                             "ctrue(b) ? c : a"};

// self[mask] = number needs no positions: it is a masked copy. Returns whether the call was of this
// form.
bool put_number(const OpCall& call, TensorView out, TensorView self, const OptionalIndices& indices,
                TensorView values) {
  if (values.numel() != 1 || call.args().boolean(Arg::accumulate)) return false;
  const TensorView* mask = nullptr;
  Dims strides;
  for (const auto& index : indices) {
    if (!index) {
      strides.push_back(0);
      continue;
    }
    if (mask != nullptr || !is_mask(*index)) return false;
    mask = &*index;
    for (int64_t d = 0; d < index->ndim(); ++d) {
      const auto at = static_cast<int64_t>(strides.size());
      check(at < self.ndim() && index->size(d) == self.size(at),
            "{}: the shape of the mask, {}, does not match the indexed tensor, {}", call.name(),
            to_string(index->sizes()), to_string(self.sizes()));
      strides.push_back(index->strides()[static_cast<size_t>(d)]);
    }
  }
  while (strides.size() < self.sizes().size()) strides.push_back(0);
  // Moved as floats where the type is one, so that a NaN stays a NaN.
  const LocalTensor spread(mask->address(), DType::Bool, Dims(self.sizes()), strides);
  const LocalTensor value(values.address(), values.dtype(), Dims(self.sizes()),
                          Dims(self.sizes().size(), 0));
  const TensorView mask_view = spread.view();
  const TensorView value_view = value.view();
  const elementwise::ElementwiseInput inputs[] = {
      {&self, 0, false}, {&mask_view, 0, true}, {&value_view, 0, false}};
  elementwise::launch_elementwise(call, out,
                                  {is_complex(self.dtype()) ? &kComplexWhere : &kWhere,
                                   compute_type(self.dtype()),
                                   self.dtype(),
                                   false,
                                   inputs,
                                   {}});
  return true;
}

void put_accumulated(const OpCall& call, const IndexPlan& plan, TensorView out, TensorView self,
                     TensorView values, bool sum) {
  Dims order = plan.indexed();
  for (const int64_t d : plan.unindexed()) order.push_back(d);
  Target target(call, out, order);
  target.start_from(self, order);
  Dims indexed_sizes;
  for (const int64_t d : plan.indexed())
    indexed_sizes.push_back(self.sizes()[static_cast<size_t>(d)]);
  const Scratch memory = plan.offsets(contiguous_strides(indexed_sizes));
  const LocalTensor keys(memory.address(), DType::Int64, Dims{numel(plan.common())});
  const Contiguous dense(call, copy::permuted(values, plan.common_first()));
  Accumulation what{target.view(), dense.view(), keys};
  what.length = numel(plan.common());
  what.target_blocks = numel(indexed_sizes);
  what.block = what.target_blocks == 0 ? 0 : self.numel() / what.target_blocks;
  what.how = sum ? Combine::Sum : Combine::Replace;
  accumulate(call, what);
  target.finish();
}

struct Put {
  const IndexPlan& plan;
  TensorView out, self, values;
  bool sum;
};

// Equal indices may race, which ATen allows.
const char* refuse_unordered(const OpCall& call, const Put& put) {
  if (put.sum) return "sums are added in order";
  return call.deterministic() ? "equal indices would race: deterministic" : nullptr;
}
void put_unordered(const OpCall& call, const Put& put) {
  copy_tensor(call, put.out, put.self);
  put.plan.move(put.values, put.out, Move::Put);
}
// The last of equal indices wins.
void put_ordered(const OpCall& call, const Put& put) {
  put_accumulated(call, put.plan, put.out, put.self, put.values, put.sum);
}

constinit const AlgorithmFor<Put> kUnordered({.id = "index_put.unordered",
                                              .description = "all at once",
                                              .style = DeviceStyle::Gpu},
                                             Steps<refuse_unordered, put_unordered>());
constinit const AlgorithmFor<Put> kOrdered({.id = "index_put.ordered",
                                            .description = "in the order of the values",
                                            .last_resort = true},
                                           Steps<takes_all<Put>, put_ordered>());

struct PutTraits {
  static std::string describe(const OpCall& call, const Put& put) {
    return fmt::format("{} {} values", call.name(), numel(put.plan.sizes()));
  }
};
using PutAlgorithms = AlgorithmList<Put, PutTraits>;

PutAlgorithms& put_algorithms() {
  static PutAlgorithms& list =
      *new PutAlgorithms("index_put", advanced_operators(), {&kUnordered, &kOrdered});  // leaked
  return list;
}

void index_put(OpCall& call) {
  check_outputs(call);
  const bool sum = call.args().boolean(Arg::accumulate);
  if (sum) call.need(call.out(0).dtype());
  const LocalTensor own = copy::as_moved(call, call.args().tensor(Arg::self));
  const LocalTensor target = copy::as_moved(call, call.out(0));
  const LocalTensor source = copy::as_moved(call, call.args().tensor(Arg::values));
  const TensorView self = own;
  const TensorView out = target;
  const TensorView values = source;
  const auto indices = call.args().tensors(Arg::indices);
  check_indices(call, indices);
  call.accept();
  if (!call.wants(0) || put_number(call, out, self, indices, values)) return;
  const IndexPlan plan(call, self, indices);
  const LocalTensor spread(values.address(), values.dtype(), plan.sizes(),
                           broadcast_strides(values.sizes(), values.strides(), plan.sizes()));
  if (numel(plan.sizes()) == 0) return copy_tensor(call, out, self);
  put_algorithms().run(call, {plan, out, self, spread, sum});
}

constexpr OpEntry kOperators[] = {{"index.Tensor_out", index_op, true, true, true},
                                  {"index_put.out", index_put, true, true, true},
                                  {"_index_put_impl.out", index_put, true, true, true}};

}  // namespace

const AlgorithmFamily& index_put_algorithms() { return put_algorithms().family(); }

std::span<const OpEntry> advanced_operators() { return kOperators; }

}  // namespace ocltensor::opencl::index
