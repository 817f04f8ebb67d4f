// Attention on matrix units by mma.sync, backward: statistics of every query, then one pass for the
// gradients of key and value and one for that of query (kernels/nvidia_mma/attention/backward.cl).
#include <cstring>

#include "attention.h"
#include "attention_mma_backward_params.h"
#include "call/divide_up.h"
#include "call/proofs.h"
#include "call/scalar_bits.h"
#include "kernels/nvidia_mma/attention.h"
#include "nvidia_mma/provider.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

constexpr int64_t kGroup = 128, kLanes = 8;  // work-items of backward_rows.cl, and those of a row
constexpr int64_t kPadding = 64;             // a multiple of every form's kept and streamed rows

int64_t local_bytes(const Capabilities& caps, const BackwardForm& f) {
  const int64_t streamed = 2 * f.streamed * f.row_bytes() + f.streamed * 8;
  return 2 * f.kept() * f.row_bytes() + f.stages * streamed + emulation_bytes(caps, f);
}

bool takes_form(const Capabilities& caps, const attention::FusedProblem& p, const BackwardForm& f) {
  return f.depth >= std::max(p.depth, p.width) && local_bytes(caps, f) <= most_local_memory(caps) &&
         (f.stages == 1 || generation(caps) >= 80);
}

bool is_form_proven(const OpCall& call, const MmaBackward& v) {
  // leaked: streams may end after static objects
  static auto& proofs = *new Proofs<attention::kKinds * kBackwardForms.size()>;
  static constexpr ProofTest kTest{kernel_sources::nvidia_mma_attention_backward,
                                   wrong_mma_backward};
  return proofs.hold(
      call, v.form * attention::kKinds + v.kind.index(), kTest,
      [&] { return v.defines(call.caps(), 0); }, &v);
}

Planned<MmaBackward> plan(const OpCall& call, const attention::FusedProblem& p) {
  Planned<attention::Kind> kind = attention_kind(call, p);
  if (kind.reason() != nullptr) return kind.reason();
  for (const attention::OutputPlace& out : p.outs)
    if (out.wanted() && out.sizes[3] > 1 && out.strides[3] != 1)
      return "the columns of a result are not neighbours";
  MmaBackward v{kind.plan(), 0};
  for (; v.form < kBackwardForms.size(); ++v.form)
    if (takes_form(call.caps(), p, kBackwardForms[v.form]) && is_form_proven(call, v)) return v;
  return "the kernels failed their tests on this driver";
}

void run(const OpCall& call, const attention::FusedProblem& p, const MmaBackward& v) {
  const auto& args = call.args();
  const Contiguous sums(call, args.tensor(Arg::logsumexp));
  enqueue_mma_backward(call, p, v,
                       {args.tensor(Arg::grad_out), args.tensor(Arg::query), args.tensor(Arg::key),
                        args.tensor(Arg::value), args.tensor(Arg::out), sums.view().address()});
}

int64_t padded_rows(const attention::FusedProblem& p) {
  return divide_up(p.queries, kPadding) * kPadding;
}

// What both passes read.
struct Passes {
  const attention::FusedProblem& p;
  const MmaBackward& v;
  const attention::VectorOperand &query, &key, &value, &grad;
  const Scratch& statistics;
};

AttentionMmaBackwardParams pass_params(const Passes& b, int64_t pass) {
  const FlashParams all = attention::flash_params(b.p);
  const FlashTensor keys[] = {b.key.strides(), b.value.strides()};
  const FlashTensor queries[] = {b.query.strides(), b.grad.strides()};
  AttentionMmaBackwardParams q{};
  q.scores = all.scores;
  for (size_t i = 0; i < 2; ++i) {
    q.kept[i] = pass == 0 ? keys[i] : queries[i];
    q.streamed[i] = pass == 0 ? queries[i] : keys[i];
  }
  q.out[0] = attention::strides_of(b.p.outs[pass == 0 ? 1 : 0]);
  q.out[1] = attention::strides_of(b.p.outs[2]);
  q.heads = b.p.heads;
  q.groups = b.p.groups();
  q.depth = b.p.depth;
  q.width = b.p.width;
  q.padded = padded_rows(b.p);
  q.scale = all.scale;
  q.wanted[0] = b.p.outs[pass == 0 ? 1 : 0].wanted();
  q.wanted[1] = b.p.outs[2].wanted();
  return q;
}

void run_pass(const OpCall& call, const Passes& b, int64_t pass) {
  const attention::FusedProblem& p = b.p;
  const BackwardForm& form = kBackwardForms[b.v.form];
  const int64_t heads = p.batch * (pass == 0 ? p.key_heads : p.heads);
  const int64_t groups = heads * divide_up(pass == 0 ? p.keys : p.queries, form.kept());
  const auto result = [&p](size_t i) {
    return p.outs[i].wanted() ? MemoryRange(p.outs[i].tensor()) : nullptr;
  };
  const std::array<MemoryRange, 2> keys = {b.key, b.value}, queries = {b.query, b.grad};
  call.launch(
          kernels::nvidia_mma::attention::backward::attention_mma_backward,
          b.v.defines(call.caps(), pass),
          {.out = pass == 0 ? std::array{result(1), result(2)} : std::array{result(0), result(0)},
           .kept = pass == 0 ? keys : queries,
           .streamed = pass == 0 ? queries : keys,
           .statistics = b.statistics,
           .mask = memory_of_mask(p.block),
           .p = pass_params(b, pass)})
      .run({groups * form.items(), 1, 1}, {form.items(), 1, 1});
}

}  // namespace

Defines MmaBackward::defines(const Capabilities& caps, int64_t pass) const {
  Defines d = attention_defines(caps, kind, kBackwardForms[form]);
  return d.set(define::PASS, pass).set(define::STAGES, kBackwardForms[form].stages);
}

void enqueue_mma_backward(const OpCall& call, const attention::FusedProblem& p,
                          const MmaBackward& v, const BackwardOperands& operands) {
  const attention::VectorOperand query(call, operands.query, kVector),
      key(call, operands.key, kVector), value(call, operands.value, kVector),
      grad(call, operands.grad, kVector), out(call, operands.out, kVector);
  const int64_t rows = p.batch * p.heads * padded_rows(p);
  const Scratch statistics = call.scratch(static_cast<uint64_t>(rows) * 2 * sizeof(float));
  const AttentionMmaRowsParams params{out.strides(),
                                      grad.strides(),
                                      p.heads,
                                      p.queries,
                                      padded_rows(p),
                                      p.width,
                                      slot_bits(static_cast<float>(1 - p.block.dropout)),
                                      slot_bits(v.kind.sum_unit())};
  call.launch(kernels::nvidia_mma::attention::backward_rows::attention_mma_rows,
              Defines()
                  .type(define::TYPE, v.kind.type)
                  .set(define::LANES, kLanes)
                  .set(define::GROUP_SIZE, kGroup),
              {.rows = statistics,
               .sums = MemoryRange(operands.sums, 0, p.batch * p.heads * p.queries * 4),
               .out = out,
               .grad = grad,
               .p = params})
      .run({rows * kLanes, 1, 1}, {kGroup, 1, 1});
  const Passes passes{p, v, query, key, value, grad, statistics};
  if (p.outs[1].wanted() || p.outs[2].wanted()) run_pass(call, passes, 0);
  if (p.outs[0].wanted()) run_pass(call, passes, 1);
}

void report_likely_backward(const OpCall& call, const void* what, const ReportProgram& report) {
  const MmaForward& v = *static_cast<const MmaForward*>(what);
  MmaBackward b{v.kind, 0};
  while (kBackwardForms[b.form].depth != kForwardForms[v.form].depth) ++b.form;
  if (generation(call.caps()) < 80) ++b.form;  // one stage
  for (const int64_t pass : {0, 1})
    report(kernel_sources::nvidia_mma_attention_backward, b.defines(call.caps(), pass));
}

std::string wrong_mma_backward(const OpCall& call, const void* what) {
  const MmaBackward& v = *static_cast<const MmaBackward*>(what);
  attention::AttentionProof proof(call, v.kind, proof_shape(kBackwardForms[v.form].depth));
  return attention::wrong_backward(
      proof, [&](const attention::FusedProblem& p, const attention::BackwardProofOperands& o) {
        enqueue_mma_backward(call, p, v, {o.grad, o.query, o.key, o.value, o.out, o.sums});
      });
}

constinit const attention::FusedAlgorithm kAttentionBackward(
    {.id = "attention_backward.mma",
     .description = "matrix units by mma.sync, scores in registers",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaMma},
    Steps<plan, run>());

}  // namespace ocltensor::opencl::nvidia_mma
