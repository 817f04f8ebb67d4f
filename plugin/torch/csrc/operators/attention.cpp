// torch.nn.functional.scaled_dot_product_attention by the plugin's fused kernels: the choice of the
// backend, forward and backward.
#include "attention.h"

#include <ATen/Context.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/library.h>
#include <torch/version.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/config.h"
#include "base/name_patterns.h"
#include "base/philox.h"
#include "fallback.h"
#include "operator.h"
#include "runtime/generator.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
namespace config = ocltensor::config;

// Why the fused kernels do not take these arguments; nullptr if they do.
const char* refusal(const Tensor& query, const Tensor& key, const Tensor& value,
                    const MaybeTensor& mask, double dropout, bool grouped) {
  for (const Tensor* t : {&query, &key, &value}) {
    if (t->is_nested() || t->layout() != at::kStrided) return "nested or sparse tensors";
  }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14
  // Since 2.14 PyTorch gives tensors without a batch one of size 1 before it calls the operator.
  if (query.dim() == 3 && key.dim() == 3 && value.dim() == 3)
    return refusal(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), mask, dropout,
                   grouped);
#endif
  for (const Tensor* t : {&query, &key, &value}) {
    if (t->dim() != 4) return "tensors of other than 4 dimensions";
    if (!at::isFloatingType(t->scalar_type()) || t->dtype() != query.dtype())
      return "types that differ or are not floating-point";
    if (t->sym_size(0) != query.sym_size(0)) return "batches that broadcast";
  }
  if (query.scalar_type() == at::kDouble && lacks_float64(query)) return "float64";
  if (key.sym_size(1) != value.sym_size(1)) return "key and value of different numbers of heads";
  if (!grouped && key.sym_size(1) != query.sym_size(1)) return "heads that broadcast";
  if (key.sym_size(1) == 0 || query.sym_size(3) == 0) return "heads of size 0";
  if (mask.has_value() && mask->defined()) {
    if (mask->requires_grad() && at::GradMode::is_enabled()) return "a mask with a gradient";
    if (mask->is_nested()) return "a nested mask";
  }
  if (dropout >= 1) return "dropout of everything";
  return nullptr;
}

// The settings that the choice of the backend depends on; read per thread, once after each change.
struct AdapterPolicy {
  bool verbose;
  bool fused_attention_disabled;
};
const AdapterPolicy& adapter_policy() {
  static thread_local AdapterPolicy policy{};
  static thread_local uint64_t generation = 0;
  const uint64_t now = config::generation();
  if (generation != now) {
    const ocltensor::NamePatterns algorithms(config::get_string(config::Knob::DisabledAlgorithms));
    const ocltensor::NamePatterns operators(config::get_string(config::Knob::DisabledOperations));
    policy.verbose = config::get_int(config::Knob::Verbose) > 0;
    policy.fused_attention_disabled =
        algorithms.find("attention.fused") != nullptr ||
        operators.find_operator("_scaled_dot_product_fused_attention_overrideable.out") != nullptr;
    generation = now;
  }
  return policy;
}

// How often each way to compute attention was chosen, and which was the last.
struct Chosen {
  std::atomic<uint64_t> fused{0}, math{0};
  std::atomic<const char*> last{""};
};
Chosen& chosen() {
  static Chosen& c = *new Chosen;  // leaked: threads may run while the process ends
  return c;
}

int64_t take(bool fused, c10::ScalarType type, const char* reason) {
  const char* id = fused ? "attention.fused" : "attention.math";
  (fused ? chosen().fused : chosen().math).fetch_add(1, std::memory_order_relaxed);
  chosen().last.store(id, std::memory_order_relaxed);
  if (adapter_policy().verbose) [[unlikely]] {
    const std::string line =
        c10::str("[ocltensor] choice: attention ", type, ": ", id,
                 fused ? "" : c10::str("; not attention.fused: ", reason), "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  return static_cast<int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

int64_t choose(const Tensor& query, const Tensor& key, const Tensor& value, const MaybeTensor& mask,
               double dropout, bool, std::optional<double>, bool grouped) {
  const at::Context& context = at::globalContext();
  const bool fused_allowed = context.userEnabledOverrideableSDP() ||
                             context.userEnabledFlashSDP() || context.userEnabledMemEfficientSDP();
  const char* reason = refusal(query, key, value, mask, dropout, grouped);
  if (adapter_policy().fused_attention_disabled) reason = "any tensors, as it is switched off";
  if (fused_allowed && reason == nullptr) return take(true, query.scalar_type(), nullptr);
  TORCH_CHECK(context.userEnabledMathSDP(),
              "ocl: no enabled backend takes this scaled_dot_product_attention: the fused one ",
              fused_allowed ? "does not support " : "is disabled", fused_allowed ? reason : "",
              ", and SDPBackend.MATH is disabled");
  return take(false, query.scalar_type(),
              fused_allowed ? reason : "no kind of fused attention is enabled");
}

using Forward =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Forward fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        const MaybeTensor& bias, double dropout, bool causal, bool debug_mask,
                        std::optional<double> scale) {
  static PluginOperator& forward =
      *new PluginOperator("_scaled_dot_product_fused_attention_overrideable.out");
  TORCH_CHECK(!debug_mask, "ocl: attention has no debug mask");
  PhiloxNumbers numbers{0, 0};
  if (dropout > 0)
    numbers = take_numbers(query.device().index(),
                           static_cast<uint64_t>(query.size(0) * query.size(1)) *
                               philox_dropout_counters(static_cast<uint64_t>(query.size(2)),
                                                       static_cast<uint64_t>(key.size(2))));
  auto outs =
      call_plugin<2>(forward, query, key, value, bias, dropout, causal, scale,
                     static_cast<int64_t>(numbers.seed), static_cast<int64_t>(numbers.offset));
  const auto host = at::TensorOptions(at::kLong);
  return {outs[0],
          outs[1],
          Tensor(),
          Tensor(),
          query.sym_size(2),
          key.sym_size(2),
          at::scalar_tensor(static_cast<int64_t>(numbers.seed), host),
          at::scalar_tensor(static_cast<int64_t>(numbers.offset), host),
          Tensor()};
}

// The parameters of ATen's operator.
std::tuple<Tensor, Tensor, Tensor, Tensor> fused_attention_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& bias, std::array<bool, 4> wanted, const Tensor& out, const Tensor& logsumexp,
    const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double dropout, bool causal,  // NOLINT
    const Tensor& seed, const Tensor& offset, std::optional<double> scale) {
  static PluginOperator& backward =
      *new PluginOperator("_scaled_dot_product_fused_attention_overrideable_backward.out");
  TORCH_CHECK_NOT_IMPLEMENTED(!wanted[3],
                              "ocl: the fused attention gives no gradient of its mask; use "
                              "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)");
  if (!grad.defined()) return {};
  const MaybeTensor mask = bias.defined() ? MaybeTensor(bias) : std::nullopt;
  auto grads = call_plugin<3>(backward, grad, query, key, value, mask, out, logsumexp, dropout,
                              causal, scale, seed.item<int64_t>(), offset.item<int64_t>());
  for (size_t i = 0; i < 3; ++i)
    if (!wanted[i]) grads[i] = Tensor();
  return {grads[0], grads[1], grads[2], Tensor()};
}

}  // namespace

std::string attention_refusal(const Tensor& query, const Tensor& key, const Tensor& value,
                              const MaybeTensor& mask, double dropout, bool grouped) {
  for (const Tensor* t : {&query, &key, &value})
    if (t->device().type() != kOcl) return "tensors that are not on ocl";
  const char* reason = refusal(query, key, value, mask, dropout, grouped);
  return reason == nullptr ? "" : reason;
}

std::vector<AttentionWay> attention_ways() {
  const std::string last = chosen().last.load(std::memory_order_relaxed);
  return {{"attention.fused", chosen().fused.load(), last == "attention.fused",
           adapter_policy().fused_attention_disabled, false, "blocks of scores"},
          {"attention.math", chosen().math.load(), last == "attention.math", false, true,
           "matrix products and softmax"}};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", TORCH_FN(choose));
  m.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(fused_attention));
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward",
         TORCH_FN(fused_attention_backward));
}

}  // namespace torch_ocl

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_ocl::choose)
}  // namespace at::native
