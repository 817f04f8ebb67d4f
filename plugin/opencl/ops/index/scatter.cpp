// scatter and its reductions, index_add, embedding's gradient: turns each into an accumulation.
#include "call/division.h"
#include "call/order_with_last.h"
#include "index.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::index {
namespace {

LocalTensor with_sizes(TensorView tensor, std::span<const int64_t> sizes) {
  return copy::view_of(tensor, Dims(sizes), Dims(tensor.strides()), 0);
}

// What the argument `reduce` means; scatter_reduce.two (`two`) has other names for it.
Combine reduction(const OpCall& call, bool two) {
  const std::string_view name = call.args().string(Arg::reduce);
  if (name == (two ? "sum" : "add")) return Combine::Sum;
  if (name == (two ? "prod" : "multiply")) return Combine::Product;
  if (two && name == "mean") return Combine::Mean;
  if (two && name == "amax") return Combine::Max;
  if (two && name == "amin") return Combine::Min;
  fail(TB_E_INVALID, "{}: '{}' is not a reduction: use {}", call.name(), name,
       two ? "sum, prod, mean, amax or amin" : "add or multiply");
}

// The groups are the positions in all dimensions but `dim`, which comes last in the target.
void scatter_into(OpCall& call, Combine how, bool include_self) {
  const LocalTensor self = copy::as_moved(call, copy::at_least_1d(call.args().tensor(Arg::self)));
  const LocalTensor index = copy::at_least_1d(call.args().tensor(Arg::index));
  const LocalTensor out = copy::as_moved(call, copy::at_least_1d(call.out(0)));
  const int64_t rank = self.view().ndim();
  const int64_t dim = wrap_dim(call.args().integer(Arg::dim), rank);
  const bool one = call.args().has(Arg::value);  // one number for all places
  check(!one || is_complex(out.dtype()) || call.args().number(Arg::value).imaginary() == 0,
        "{}: a complex number cannot be converted to {}", call.name(), name(out.dtype()));
  call.accept();
  if (!call.wants(0)) return;
  const Dims order = order_with_last(rank, dim);
  Target target(call, out, order);
  target.start_from(self, order);
  if (index.view().numel() > 0) {
    const int64_t size = self.view().sizes()[static_cast<size_t>(dim)];
    const LocalTensor keyed = copy::permuted(index, order);
    const Dims sizes(keyed.view().sizes());
    const Scratch memory = call.scratch(static_cast<uint64_t>(numel(sizes)) * 8);
    const LocalTensor keys(memory.address(), DType::Int64, sizes);
    Dims base(target.view().strides());
    base.back() = 0;
    move_indexed(
        call, {keys, keys, base, keyed, Dims(keyed.view().strides()), size, 1, false, false, dim},
        Move::Keys);
    const Scratch number = call.scratch(one ? 8 : 0);
    const LocalTensor single(number.address(), compute_type(call.out(0).dtype()), Dims{1});
    if (one) copy::fill_tensor(call, single, call.args().number(Arg::value));
    const LocalTensor source =
        one ? single
            : copy::permuted(
                  with_sizes(copy::at_least_1d(call.args().tensor(Arg::src)), index.view().sizes()),
                  order);
    const Contiguous dense(call, copy::as_moved(call, source));
    Accumulation what{target.view(), dense.view(), keys};
    what.length = sizes.back();
    what.groups = numel(sizes) / what.length;
    what.one_source = one;
    what.how = how;
    what.include_self = include_self;
    accumulate(call, what);
  }
  target.finish();
}

void scatter(OpCall& call) {
  check_outputs(call);
  scatter_into(call, Combine::Replace, true);
}
void scatter_add(OpCall& call) {
  check_outputs(call);
  scatter_into(call, Combine::Sum, true);
}
void scatter_reduce(OpCall& call) {
  check_outputs(call);
  const Combine how = reduction(call, false);
  if (is_complex(call.out(0).dtype()) && how != Combine::Sum)
    unsupported(TB_REASON_DTYPE, "{} multiplies no complex numbers", call.name());
  scatter_into(call, how, true);
}
void scatter_reduce_two(OpCall& call) {
  check_outputs(call);
  scatter_into(call, reduction(call, true), call.args().boolean(Arg::include_self));
}

// The index as int64 keys, NOWHERE (index/move.cl) where it is out of range.
Scratch keys_of(const OpCall& call, TensorView index, int64_t size, int64_t dim) {
  Scratch memory = call.scratch(static_cast<uint64_t>(index.numel()) * 8);
  const LocalTensor keys(memory.address(), DType::Int64, Dims(index.sizes()));
  move_indexed(call,
               {keys, keys, Dims(index.sizes().size(), 0), index, Dims(index.strides()), size, 1,
                false, false, dim},
               Move::Keys);
  return memory;
}

void index_add(OpCall& call) {
  check_outputs(call);
  const LocalTensor self = copy::at_least_1d(call.args().tensor(Arg::self));
  const LocalTensor index = copy::at_least_1d(call.args().tensor(Arg::index));
  const LocalTensor source = copy::at_least_1d(call.args().tensor(Arg::source));
  const LocalTensor out = copy::at_least_1d(call.out(0));
  const int64_t rank = self.view().ndim();
  const int64_t dim = wrap_dim(call.args().integer(Arg::dim), rank);
  const Scalar alpha = call.args().scalar(Arg::alpha);
  call.accept();
  if (!call.wants(0)) return;
  Dims order;
  for (int64_t d = 0; d < rank; ++d) order.push_back(d);
  Target target(call, out, order);
  target.start_from(self, order);
  const int64_t size = self.view().sizes()[static_cast<size_t>(dim)];
  if (source.view().numel() > 0) {
    const Scratch memory = keys_of(call, index, size, dim);
    const Contiguous dense(call, source);
    const auto sizes = self.view().sizes();
    const LocalTensor keys(memory.address(), DType::Int64, Dims(index.view().sizes()));
    Accumulation what{target.view(), dense.view(), keys};
    what.groups = numel(sizes.first(static_cast<size_t>(dim)));
    what.block = numel(sizes.subspan(static_cast<size_t>(dim) + 1));
    what.length = index.view().numel();
    what.target_blocks = size;
    what.shared_keys = true;
    what.alpha = alpha;
    accumulate(call, what);
  }
  target.finish();
}

constexpr elementwise::Formula kDropPadding{"drop_padding", elementwise::FormulaForm::Vector,
                                            "(a == s0) ? K(LONG_MAX) : a"};

// Keys that equal `padding` become NOWHERE.
void drop_padding(const OpCall& call, TensorView keys, int64_t padding) {
  const elementwise::ElementwiseInput input{&keys, 0, false};
  const Scalar parameter = padding;
  elementwise::launch_elementwise(
      call, keys, {&kDropPadding, DType::Int64, DType::Int64, false, {&input, 1}, {&parameter, 1}});
}

void embedding_backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(Arg::grad_output);
  const LocalTensor index = copy::at_least_1d(call.args().tensor(Arg::indices));
  const int64_t padding = call.args().integer(Arg::padding_idx);
  const bool by_frequency = call.args().boolean(Arg::scale_grad_by_freq);
  call.accept();
  if (!call.wants(0)) return;
  Target target(call, call.out(0), {0, 1});
  copy::fill_tensor(call, target.view(), 0);
  if (index.view().numel() > 0) {
    const int64_t rows = call.args().integer(Arg::num_weights);
    const Scratch memory = keys_of(call, index, rows, 0);
    const LocalTensor keys(memory.address(), DType::Int64, Dims{index.view().numel()});
    if (padding >= 0) drop_padding(call, keys, padding);
    const Contiguous dense(call, gradient);
    Accumulation what{target.view(), dense.view(), keys};
    what.length = index.view().numel();
    what.block = gradient.size(-1);
    what.target_blocks = rows;
    what.how = by_frequency ? Combine::Mean : Combine::Sum;
    what.include_self = !by_frequency;
    accumulate(call, what);
  }
  target.finish();
}

constexpr OpEntry kOperators[] = {
    {"scatter.src_out", scatter, true, true, true},
    {"scatter.value_out", scatter, true, true, true},
    {"scatter.reduce_out", scatter_reduce, true},
    {"scatter.value_reduce_out", scatter_reduce, true},
    {"scatter_add.out", scatter_add, true},
    {"scatter_reduce.two_out", scatter_reduce_two},
    {"index_add.out", index_add, true},
    {"embedding_dense_backward.out", embedding_backward},
};

}  // namespace

std::span<const OpEntry> scatter_operators() { return kOperators; }

}  // namespace ocltensor::opencl::index
