// Attention with its weights: scores by one matrix product, their softmax in place, and a second
// product. 16-bit types are computed in float32. Heads that share a key are rows of one product.
#include "attention.h"

#include <cmath>

#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "scores.h"

namespace ocltensor::opencl::attention {
namespace {

struct Shape {
  Dims batch, weights, output;
  int64_t queries, keys, depth, width;
};

Shape shape_of(const OpCall& call) {
  const auto specs = call.op().infer(call.args());
  Shape s{};
  s.output = specs[0].sizes;
  s.weights = specs[1].sizes;
  s.batch = Dims(std::span(s.weights.data(), s.weights.size() - 2));
  s.queries = s.weights[s.weights.size() - 2];
  s.keys = s.weights.back();
  s.depth = call.args().tensor(Arg::query).size(-1);
  s.width = s.output.back();
  check(Dims(call.out(0).sizes()) == s.output && call.out(0).dtype() == specs[0].dtype,
        "{}: the output must be {} of shape {}", call.name(), name(specs[0].dtype),
        to_string(s.output));
  check(call.out(1).numel() == 0 ||
            (Dims(call.out(1).sizes()) == s.weights && call.out(1).dtype() == specs[1].dtype),
        "{}: the attention weights must be {} of shape {}", call.name(), name(specs[1].dtype),
        to_string(s.weights));
  return s;
}

void decline_what_is_missing(const OpCall& call, const Shape& s) {
  if (call.args().real(Arg::dropout_p) > 0)
    unsupported(TB_REASON_ARGUMENT, "attention with dropout is not supported");
  if (!(Dims(std::span(s.output.data(), s.output.size() - 2)) == s.batch))
    unsupported(TB_REASON_ARGUMENT,
                "attention: values with more batches than queries and keys are not supported");
}

// A mask for each matrix of scores, one after the other.
LocalTensor spread_mask(const OpCall& call, const Shape& s, std::vector<Scratch>& memory) {
  const TensorView mask = call.args().tensor(Arg::attn_mask);
  memory.push_back(call.scratch(static_cast<uint64_t>(numel(s.weights) * mask.itemsize())));
  copy_tensor(call, LocalTensor(memory.back().address(), mask.dtype(), s.weights), mask);
  return {memory.back().address(), mask.dtype(), Dims{numel(s.batch), s.queries, s.keys}};
}

// The batch dimensions of key or value: where heads are grouped, with their own number of heads.
Dims own_batch(const OpCall& call, const Shape& s, TensorView tensor) {
  Dims batch = s.batch;
  if (call.args().boolean(Arg::enable_gqa)) batch.back() = tensor.size(-3);
  return batch;
}

// The operands are the call's arguments.
void run_products(const OpCall& call, const Shape& s) {
  const TensorView query = call.args().tensor(Arg::query);
  const TensorView key = call.args().tensor(Arg::key);
  const TensorView value = call.args().tensor(Arg::value);
  const DType type = compute_type(query.dtype());
  const double scale =
      call.args().optional_real(Arg::scale).value_or(1 / std::sqrt(static_cast<double>(s.depth)));
  const Dims key_batch = own_batch(call, s, key);
  const Dims value_batch = own_batch(call, s, value);
  const Operand q(call, query, s.batch, type);
  const Operand k(call, key, key_batch, type);
  const Operand v(call, value, value_batch, type);
  Result weights(call, call.out(1), s.weights, type);
  const tb_address w = weights.view().address();
  const auto product = [&](const Dims& shared, int64_t n, int64_t depth, tb_address a,
                           matmul::Matrix b, tb_address c, double alpha) {
    const int64_t batch = numel(shared);
    const int64_t m = numel(s.batch) / batch * s.queries;  // all query rows that share a head
    matmul::run_matmul(call, {type,
                              batch,
                              m,
                              n,
                              depth,
                              {a, m * depth, depth, 1},
                              b,
                              {c, m * n, n, 1},
                              {.alpha = alpha}});
  };
  product(key_batch, s.keys, s.depth, q.address(), {k.address(), s.keys * s.depth, 1, s.depth}, w,
          scale);
  ScoreBlock block{w, type, s.batch};
  block.matrices = numel(s.batch);
  block.queries = s.queries;
  block.keys = s.keys;
  block.all_queries = s.queries;
  block.causal = call.args().boolean(Arg::is_causal);
  block.mask = call.args().optional_tensor(Arg::attn_mask);
  std::vector<Scratch> of_mask;
  std::optional<LocalTensor> masks;
  if (s.batch.size() > ATTENTION_BATCH_RANK) {
    if (block.mask) block.mask = masks.emplace(spread_mask(call, s, of_mask)).view();
    block.batch = {block.matrices};
  }
  softmax_scores(call, block);
  if (call.wants(0)) {
    Result out(call, call.out(0), s.output, type);
    product(value_batch, s.width, s.keys, w, {v.address(), s.keys * s.width, s.width, 1},
            out.view().address(), 1);
    out.finish();
  }
  weights.finish();
}

constinit const AlgorithmFor<Shape> kProducts(
    {.id = "attention_weights.products",
     .description = "two matrix products around a softmax in place",
     .last_resort = true},
    Steps<takes_all<Shape>, run_products>());

struct Traits {
  static std::string describe(const OpCall& call, const Shape& s) {
    return fmt::format("{} {} x {} x {}, {} keys", call.name(), numel(s.batch), s.queries, s.depth,
                       s.keys);
  }
};
using Algorithms = AlgorithmList<Shape, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("attention_weights", attention_operators(), {&kProducts});  // leaked
  return list;
}

void attention(OpCall& call) {
  const Shape s = shape_of(call);
  decline_what_is_missing(call, s);
  call.accept();
  if (numel(s.batch) * s.queries == 0) return;
  if (s.keys == 0) return copy::fill_tensor(call, call.out(0), 0);
  algorithms().run(call, s);
}

constexpr OpEntry kOperators[] = {
    {"_scaled_dot_product_attention_math.out", attention},
    {"_scaled_dot_product_fused_attention_overrideable.out", fused_attention},
    {"_scaled_dot_product_fused_attention_overrideable_backward.out", fused_attention_backward}};

}  // namespace

std::span<const OpEntry> attention_operators() { return kOperators; }

const AlgorithmFamily& attention_weights_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::attention
