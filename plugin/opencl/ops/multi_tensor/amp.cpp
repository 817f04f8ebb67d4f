// Loss scaling.
#include "call/division.h"
#include "kernel_sources.h"
#include "multi_tensor.h"

namespace ocltensor::opencl {
namespace {

void unscale_op(OpCall& call) {
  check_outputs(call);
  const auto self = call.args().whole_list(0);
  for (size_t i = 1; i < 3; ++i)
    if (call.args().tensor(i).dtype() != DType::Float32)
      unsupported(TB_REASON_DTYPE, "{}: found_inf and inv_scale must be float32", call.name());
  if (self.empty()) return call.accept();
  const DType type = self[0].dtype();
  TensorLists tensors(call, compute_type(type), 1);
  tensors.share(0, call.args().tensor(1));
  tensors.share(1, call.args().tensor(2));
  for (const TensorView t : self) {
    if (t.dtype() != type)
      unsupported(TB_REASON_DTYPE, "{}: gradients must be of one type, got {} and {}", call.name(),
                  name(type), name(t.dtype()));
    tensors.add(std::array{Role{t, true, true}});
  }
  tensors.check_apart();
  call.accept();
  Defines d;
  d.type("A", type).set("UNSCALE", 1);
  tensors.run(kernel_sources::multi_tensor_amp, "unscale", d);
}

void update_scale_op(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  call.accept();
  Defines d;
  d.type("COMPUTE", DType::Float32).set("ROLES", int64_t{0});
  Launch launch = call.launch(kernel_sources::multi_tensor_amp, "update_scale", d);
  for (size_t i = 0; i < 3; ++i) bind(launch, args.tensor(i));
  launch.value(static_cast<float>(args.real(3))).value(static_cast<float>(args.real(4)));
  launch.value(args.integer(5)).run({1, 1, 1}, {1, 1, 1});
}

constexpr OpEntry kOperators[] = {{"_amp_foreach_non_finite_check_and_unscale_", unscale_op},
                                  {"_amp_update_scale_", update_scale_op}};

}  // namespace

std::span<const OpEntry> amp_operators() { return kOperators; }

}  // namespace ocltensor::opencl
