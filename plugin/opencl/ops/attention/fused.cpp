// The operators of attention that return no weights, forward and backward, and their lists of
// algorithms.
#include "fused.h"

#include <cmath>

#include "ops/copy/copy.h"

namespace ocltensor::opencl::attention {
namespace {

struct FusedTraits {
  static std::string describe(const OpCall& call, const FusedProblem& p) {
    return fmt::format("attention {} {} x {} heads, {} queries, {} keys of {}{}{}",
                       name(call.args().tensor(Arg::query).dtype()), p.batch, p.heads, p.queries,
                       p.keys, p.depth, p.block.causal ? ", causal" : "",
                       p.block.mask ? ", masked" : "");
  }
  static std::string notes(const OpCall&, const FusedProblem&) { return {}; }
  static ShapeClass shape_class(const OpCall& call, const FusedProblem& p) {
    return {static_cast<int64_t>(call.args().tensor(Arg::query).dtype()),
            size_class(p.batch),
            size_class(p.heads),
            p.groups(),
            size_class(p.queries),
            size_class(p.keys),
            size_class(p.depth),
            p.block.causal,
            p.block.mask.has_value(),
            p.block.dropout > 0};
  }
  static std::string shape_text(const ShapeClass& s) {
    return fmt::format("{} {}x{}/{}x{}x{}x{} {}{}{}", name(static_cast<DType>(s[0])), s[1], s[2],
                       s[3], s[4], s[5], s[6], s[7] ? "c" : "", s[8] ? "m" : "", s[9] ? "d" : "");
  }
  static uint64_t size(const OutputPlace& out) {
    return static_cast<uint64_t>(numel(out.sizes) * size_of(out.dtype) + 255) / 256 * 256;
  }
  static std::vector<ResultPart> results(const OpCall&, const FusedProblem& p) {
    std::vector<ResultPart> parts;
    uint64_t next = 0;
    for (const OutputPlace& out : p.outs) {
      parts.push_back({next, numel(out.sizes), out.dtype, std::max({p.queries, p.keys, p.depth})});
      next += size(out);
    }
    return parts;
  }
  static Scratch redirect(const OpCall& call, FusedProblem& p) {
    uint64_t bytes = 0;
    for (const OutputPlace& out : p.outs) bytes += size(out);
    Scratch memory(call.scratch(bytes));
    tb_address next = memory.address();
    for (OutputPlace& out : p.outs) {
      out.address = next;
      out.strides = contiguous_strides(out.sizes);
      next += size(out);
    }
    return memory;
  }
};
using Algorithms = AlgorithmList<FusedProblem, FusedTraits>;

Algorithms& forward() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "attention_forward", attention_operators(),
      {&kSplitForward, &kFlashForward, &kTilesForward, &kBlocksForward});
  return list;
}
Algorithms& backward() {
  static Algorithms& list = *new Algorithms("attention_backward", attention_operators(),
                                            {&kFlashBackward, &kBlocksBackward});
  return list;
}

FusedProblem problem_of(const OpCall& call) {
  const auto& args = call.args();
  const TensorView q = args.tensor(Arg::query);
  const TensorView k = args.tensor(Arg::key);
  FusedProblem p{};
  p.type = compute_type(q.dtype());
  p.batch = q.size(0);
  p.heads = q.size(1);
  p.key_heads = k.size(1);
  p.queries = q.size(2);
  p.keys = k.size(2);
  p.depth = q.size(3);
  p.width = args.tensor(Arg::value).size(3);
  p.scale = args.optional_real(Arg::scale).value_or(1 / std::sqrt(static_cast<double>(p.depth)));
  p.block.type = p.type;
  p.block.batch = {p.batch, p.heads};
  p.block.all_queries = p.queries;
  p.block.all_keys = p.keys;
  p.block.mask = args.optional_tensor(Arg::attn_bias);
  p.block.dropout = args.real(Arg::dropout_p);
  p.block.causal = args.boolean(Arg::is_causal);
  p.block.seed = static_cast<uint64_t>(args.integer(Arg::philox_seed));
  p.block.offset = static_cast<uint64_t>(args.integer(Arg::philox_offset));
  for (size_t i = 0; i < call.out_count(); ++i) {
    const TensorView out = call.out(i);
    p.outs[i] = {out.address(), out.dtype(), Dims(out.sizes()), Dims(out.strides())};
  }
  return p;
}

void check_shapes(const OpCall& call) {
  const auto specs = call.op().infer(call.args());
  for (size_t i = 0; i < specs.size(); ++i)
    check(call.out(i).dtype() == specs[i].dtype &&
              (call.out(i).numel() == 0 || Dims(call.out(i).sizes()) == specs[i].sizes),
          "{}: output {} must be {} of shape {}, or empty if it is not wanted", call.name(), i,
          name(specs[i].dtype), to_string(specs[i].sizes));
}

}  // namespace

const AlgorithmFamily& attention_forward_algorithms() { return forward().family(); }
const AlgorithmFamily& attention_backward_algorithms() { return backward().family(); }

void fused_attention(OpCall& call) {
  check_shapes(call);
  const FusedProblem p = problem_of(call);
  call.accept();
  if (p.batch * p.heads * p.queries == 0) return;
  if (p.keys == 0) {
    copy::fill_tensor(call, call.out(0), 0);
    return copy::fill_tensor(call, call.out(1), -INFINITY);
  }
  forward().run(call, p);
}

void fused_attention_backward(OpCall& call) {
  check_shapes(call);
  const FusedProblem p = problem_of(call);
  call.accept();
  if (p.batch * p.heads * p.queries * p.keys != 0) return backward().run(call, p);
  for (size_t i = 0; i < call.out_count(); ++i)
    if (call.wants(i)) copy::fill_tensor(call, call.out(i), 0);
}

}  // namespace ocltensor::opencl::attention
