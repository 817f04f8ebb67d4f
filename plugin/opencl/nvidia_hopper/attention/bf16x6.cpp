// float32 attention on Hopper's matrix units: the blocks of scores of blocks.h, with products of
// three bf16 parts. Operands are split once; the softmax and its derivative write the bf16 parts of
// weights themselves. If a number cannot be split, products in plain float32, which are always
// enqueued as well, do the work.
#include <algorithm>
#include <array>
#include <optional>

#include "attention.h"
#include "call/divide_up.h"
#include "nvidia_hopper/matmul/bf16_parts.h"
#include "nvidia_hopper/provider.h"
#include "ops/attention/blocks.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kVector = 8;  // lines of bf16 parts are multiples of this many elements

const char* refuse_shape(const OpCall& call, const attention::FusedProblem& p) {
  if (call.args().tensor(Arg::query).dtype() != DType::Float32) return "not float32";
  if (p.depth % kVector != 0 || p.width % kVector != 0 || p.width == 0)
    return "a head is not 8, 16, .. wide";
  if (std::min(p.keys, p.block.causal ? p.queries : p.keys) < kVector) return "few keys";
  constexpr int64_t kMost = int64_t{1} << 31;
  if (p.batch * p.heads * std::max(p.queries, p.keys) * std::max(p.depth, p.width) > kMost)
    return "the sizes need 64 bits";
  return nullptr;
}

// Collects the reasons against a problem's products, which have several shapes: a block may be
// smaller than others, or have fewer keys.
class ProductsToRefuse final : public attention::Products {
 public:
  explicit ProductsToRefuse(const OpCall& call) : call_(call) {}
  void multiply(const matmul::Problem& product, attention::MatrixId /*a*/,
                attention::MatrixId /*b*/) override {
    if (reason_ == nullptr) reason_ = refuse_bf16_part_product(call_, product);
  }
  const char* reason() const { return reason_; }

 private:
  const OpCall& call_;
  const char* reason_ = nullptr;
};

const char* refuse_forward(const OpCall& call, const attention::FusedProblem& p) {
  if (const char* reason = refuse_shape(call, p)) return reason;
  ProductsToRefuse products(call);
  attention::list_forward_products(call, p, products);
  return products.reason();
}
const char* refuse_backward(const OpCall& call, const attention::FusedProblem& p) {
  if (const char* reason = refuse_shape(call, p)) return reason;
  ProductsToRefuse products(call);
  attention::list_backward_products(call, p, products);
  return products.reason();
}

const char* pass_over(const OpCall& call, const attention::FusedProblem& p) {
  if (call.policy().allow_tf32) return "TF32 is allowed";
  constexpr int64_t kLeastScores = int64_t{1} << 21;  // below, launches take most of the time
  const bool few = p.batch * p.heads * p.queries * p.keys < kLeastScores;
  return few || p.queries < 64 || p.keys < 128 ? "splitting would take longer than it saves"
                                               : nullptr;
}

// Scratch memory for the bf16 parts of a float tensor. The parts of a matrix in that tensor have
// the matrix's layout, except that their lines are longer.
class Bf16Parts {
 public:
  // `lines` lines of `line` elements each.
  Bf16Parts(const OpCall& call, tb_address floats, int64_t lines, int64_t line)
      : floats_(floats),
        lines_(lines),
        line_(line),
        padded_(divide_up(line, kVector) * kVector),
        memory_(call.scratch(static_cast<uint64_t>(lines * padded_ * 6))) {}

  tb_address address() const { return memory_.address(); }
  Bf16PartTensor tensor() const { return {floats_, memory_.address(), lines_ * line_}; }
  Bf16PartMatrix of(const matmul::Matrix& m) const {
    const auto longer = [this](int64_t stride) {
      return stride == 1 ? 1 : stride / line_ * padded_;
    };
    const auto at = static_cast<int64_t>(m.address - floats_) / 4;
    const int64_t batch = longer(m.batch);
    return {memory_.address() + static_cast<uint64_t>(longer(at) * 2), batch, longer(m.row),
            longer(m.col), lines_ * padded_ / batch};
  }

 private:
  tb_address floats_;
  int64_t lines_, line_, padded_;
  Scratch memory_;
};

// Splits operands at the start of a pass; the softmax and its derivative split a block's scores.
class Bf16PartProducts final : public attention::Products {
 public:
  Bf16PartProducts(const OpCall& call, const attention::FusedProblem& p)
      : call_(call),
        p_(p),
        word_(call.scratch(sizeof(uint32_t))),
        guard_{word_.address(), matmul::next_guard_value()} {}

  void start(const attention::MatrixAddresses& addresses) override {
    addresses_ = addresses;
    const int64_t queries = p_.batch * p_.heads * p_.queries;
    const int64_t keys = p_.batch * p_.key_heads * p_.keys;
    make(attention::MatrixId::Query, queries, p_.depth);
    make(attention::MatrixId::Key, keys, p_.depth);
    make(attention::MatrixId::Value, keys, p_.width);
    split_to_bf16_parts(call_, of(attention::MatrixId::Query).tensor(),
                        of(attention::MatrixId::Key).tensor(), guard_);
    Bf16PartTensor other{addresses[attention::MatrixId::Value],
                         of(attention::MatrixId::Value).address(), 0};  // an empty tensor
    if (has_gradients()) {
      make(attention::MatrixId::Grad, queries, p_.width);
      other = of(attention::MatrixId::Grad).tensor();
    }
    split_to_bf16_parts(call_, of(attention::MatrixId::Value).tensor(), other, guard_);
  }

  attention::ScoreBf16Parts begin(const attention::ScoreBlock& scores) override {
    const int64_t lines = scores.matrices * scores.queries;
    make(attention::MatrixId::Weights, lines, scores.keys);
    if (!has_gradients()) return {of(attention::MatrixId::Weights).address(), 0, guard_};
    make(attention::MatrixId::Gradients, lines, scores.keys);
    return {of(attention::MatrixId::Weights).address(),
            of(attention::MatrixId::Gradients).address(), guard_};
  }

  void multiply(const matmul::Problem& product, attention::MatrixId a,
                attention::MatrixId b) override {
    run_bf16_part_product(call_, product, of(a).of(product.a), of(b).of(product.b), guard_);
  }

 private:
  bool has_gradients() const { return addresses_[attention::MatrixId::Gradients] != 0; }
  std::optional<Bf16Parts>& place(attention::MatrixId matrix) {
    return bf16_parts_[static_cast<size_t>(matrix)];
  }
  const Bf16Parts& of(attention::MatrixId matrix) { return place(matrix).value(); }
  void make(attention::MatrixId matrix, int64_t lines, int64_t line) {
    place(matrix).emplace(call_, addresses_[matrix], lines, line);
  }

  const OpCall& call_;
  const attention::FusedProblem& p_;
  Scratch word_;
  matmul::Guard guard_;
  attention::MatrixAddresses addresses_;
  std::array<std::optional<Bf16Parts>, attention::kParts> bf16_parts_;
};

void run_forward(const OpCall& call, const attention::FusedProblem& p) {
  Bf16PartProducts products(call, p);
  attention::run_forward_blocks(call, p, products);
}
void run_backward(const OpCall& call, const attention::FusedProblem& p) {
  Bf16PartProducts products(call, p);
  attention::run_backward_blocks(call, p, products);
}

}  // namespace

constinit const attention::FusedAlgorithm kBf16x6Forward(
    {.id = "attention_forward.hopper_bf16x6",
     .description = "blocks of scores, float32 as three bfloat16",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaHopper},
    Steps<refuse_forward, run_forward>(), pass_over);
constinit const attention::FusedAlgorithm kBf16x6Backward(
    {.id = "attention_backward.hopper_bf16x6",
     .description = "blocks of scores, float32 as three bfloat16",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaHopper},
    Steps<refuse_backward, run_backward>(), pass_over);

}  // namespace ocltensor::opencl::nvidia_hopper
