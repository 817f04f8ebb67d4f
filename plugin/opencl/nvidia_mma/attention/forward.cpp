// Attention on matrix units by mma.sync, forward: kernels/nvidia_mma/attention/forward.cl.
#include "attention.h"
#include "call/divide_up.h"
#include "call/proofs.h"
#include "kernels/nvidia_mma/attention.h"
#include "nvidia_mma/provider.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

int64_t local_bytes(const Capabilities& caps, const AttentionForm& f) {
  return (f.kept() + 2 * f.streamed) * f.row_bytes() + emulation_bytes(caps, f);
}

// Two fragments of a warp share what it reads of keys and values, if tiles so large are enough to
// fill the device. Chunks on their way in registers (7.5) leave no room for them.
bool takes_form(const OpCall& call, const attention::FusedProblem& p, const AttentionForm& f) {
  const Capabilities& caps = call.caps();
  if (f.depth < std::max(p.depth, p.width) || local_bytes(caps, f) > most_local_memory(caps))
    return false;
  if (f.fragments == 1) return true;
  return generation(caps) >= 80 &&
         p.batch * p.heads * divide_up(p.queries, f.kept()) >= caps.compute_units;
}

bool is_form_proven(const OpCall& call, const MmaForward& v) {
  // leaked: streams may end after static objects
  static auto& proofs = *new Proofs<attention::kKinds * kForwardForms.size()>;
  static constexpr ProofTest kTest{kernel_sources::nvidia_mma_attention_forward, wrong_mma_forward,
                                   report_likely_backward};
  return proofs.hold(
      call, v.form * attention::kKinds + v.kind.index(), kTest,
      [&] { return v.defines(call.caps()); }, &v);
}

Planned<MmaForward> plan(const OpCall& call, const attention::FusedProblem& p) {
  Planned<attention::Kind> kind = attention_kind(call, p);
  if (kind.reason() != nullptr) return kind.reason();
  const attention::OutputPlace& out = p.outs[0];
  if (!out.wanted()) return "the result is not wanted";
  if (p.width > 1 && out.strides[3] != 1) return "the columns of the result are not neighbours";
  MmaForward v{kind.plan(), 0};
  for (; v.form < kForwardForms.size(); ++v.form)
    if (takes_form(call, p, kForwardForms[v.form]) && is_form_proven(call, v)) return v;
  return "the kernels failed their tests on this driver";
}

void run(const OpCall& call, const attention::FusedProblem& p, const MmaForward& v) {
  const auto& args = call.args();
  enqueue_mma_forward(call, p, v,
                      {args.tensor(Arg::query), args.tensor(Arg::key), args.tensor(Arg::value)});
}

}  // namespace

Defines MmaForward::defines(const Capabilities& caps) const {
  return attention_defines(caps, kind, kForwardForms[form]);
}

void enqueue_mma_forward(const OpCall& call, const attention::FusedProblem& p, const MmaForward& v,
                         const ForwardOperands& operands) {
  const AttentionForm& form = kForwardForms[v.form];
  const attention::VectorOperand query(call, operands.query, kVector),
      key(call, operands.key, kVector), value(call, operands.value, kVector);
  const LocalTensor logsumexp = p.outs[1].tensor();
  ContiguousOutput sums(call, logsumexp);
  const FlashParams f = attention::forward_params(p, query, key, value);
  const int64_t groups = p.batch * p.heads * divide_up(p.queries, form.kept());
  call.launch(kernels::nvidia_mma::attention::forward::attention_mma, v.defines(call.caps()),
              {.out = p.outs[0].tensor(),
               .sums = p.outs[1].wanted() ? MemoryRange(sums.view()) : nullptr,
               .query = query,
               .key = key,
               .value = value,
               .mask = memory_of_mask(p.block),
               .p = f})
      .run({groups * form.items(), 1, 1}, {form.items(), 1, 1});
  sums.finish();
}

std::string wrong_mma_forward(const OpCall& call, const void* what) {
  const MmaForward& v = *static_cast<const MmaForward*>(what);
  attention::AttentionProof proof(call, v.kind, proof_shape(kForwardForms[v.form].depth));
  return attention::wrong_forward(
      proof, [&](const attention::FusedProblem& p, const attention::ProofOperands& o) {
        enqueue_mma_forward(call, p, v, {o.query, o.key, o.value});
      });
}

constinit const attention::FusedAlgorithm kAttentionForward(
    {.id = "attention_forward.mma",
     .description = "matrix units by mma.sync, scores in registers",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaMma},
    Steps<plan, run>(), attention::pass_over_few_queries);

}  // namespace ocltensor::opencl::nvidia_mma
