// Loss scaling: _amp_foreach_non_finite_check_and_unscale_ and _amp_update_scale_.
#include "call/division.h"
#include "kernels/multi_tensor.h"
#include "multi_tensor.h"

namespace ocltensor::opencl::multi_tensor {
namespace {

void unscale_op(OpCall& call) {
  check_outputs(call);
  const auto self = call.args().whole_list(Arg::self);
  for (const Arg argument : {Arg::found_inf, Arg::inv_scale})
    if (call.args().tensor(argument).dtype() != DType::Float32)
      unsupported(TB_REASON_DTYPE, "{}: found_inf and inv_scale must be float32", call.name());
  if (self.empty()) return call.accept();
  const DType type = self[0].dtype();
  TensorLists tensors(call, compute_type(type), 1);
  tensors.share(0, call.args().tensor(Arg::found_inf));
  tensors.share(1, call.args().tensor(Arg::inv_scale));
  for (const TensorView t : self) {
    if (t.dtype() != type)
      unsupported(TB_REASON_DTYPE, "{}: gradients must be of one type, got {} and {}", call.name(),
                  name(type), name(t.dtype()));
    tensors.add(std::array{Role{t, true, true}});
  }
  tensors.check_disjoint();
  call.accept();
  Defines d;
  d.type(define::A, type).set(define::UNSCALE, 1);
  tensors.run(kernels::multi_tensor::amp::unscale, d);
}

void update_scale_op(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  call.accept();
  Defines d;
  d.type(define::COMPUTE, DType::Float32).set(define::ROLES, int64_t{0});
  call.launch(kernels::multi_tensor::amp::update_scale, d,
              {.scale = args.tensor(Arg::self),
               .tracker = args.tensor(Arg::growth_tracker),
               .found = args.tensor(Arg::found_inf),
               .growth = static_cast<float>(args.real(Arg::scale_growth_factor)),
               .backoff = static_cast<float>(args.real(Arg::scale_backoff_factor)),
               .interval = args.integer(Arg::growth_interval)})
      .run({1, 1, 1}, {1, 1, 1});
}

constexpr OpEntry kOperators[] = {{"_amp_foreach_non_finite_check_and_unscale_", unscale_op},
                                  {"_amp_update_scale_", update_scale_op}};

}  // namespace

std::span<const OpEntry> amp_operators() { return kOperators; }

}  // namespace ocltensor::opencl::multi_tensor
