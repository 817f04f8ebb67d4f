// The rules of an operator's call that all hosts share, over descriptions of its tensors: which
// tensors count as numbers, which outputs are written directly, allocated, converted or refused,
// and what may fall back to the CPU. Hosts only describe, allocate, resize and copy.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "operators.h"

namespace ocltensor {

inline constexpr size_t kMostOutputs = 8;

// Visits the tensors among the arguments, those in lists as well, each with the argument's
// position.
template <typename Visit>
void for_each_tensor(std::span<const tb_value> args, Visit&& visit) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].tag == TB_TENSOR) {
      visit(i, *static_cast<const tb_tensor*>(args[i].as.p));
    } else if (args[i].tag == TB_TENSOR_LIST) {
      const auto* list = static_cast<const tb_tensor* const*>(args[i].as.p);
      for (uint32_t k = 0; k < args[i].count; ++k)
        if (list[k] != nullptr) visit(i, *list[k]);
    }
  }
}

// ---- devices and scalar tensors
// All tensors of a call are on one device. Pointwise operators also take tensors without dimensions
// on the CPU: scalar tensors.
inline bool takes_scalar_tensors(const Operator& op) { return op.is(kPointwise); }

// Throws TB_E_INVALID with a text that names two devices of one call.
[[noreturn]] void refuse_devices(std::string_view op, std::string_view one,
                                 std::string_view another);
[[noreturn]] void refuse_output_device(std::string_view op, std::string_view output,
                                       std::string_view arguments);

// A scalar tensor is passed to a backend as a number if type promotion gives the same result as for
// a tensor without dimensions, since a tensor would need a copy to the device. Whether it does
// depends on the call's tensors on the device.
class ScalarTensorRule {
 public:
  void add(int64_t ndim, DType type) {  // a tensor of the device
    have_dimensions_ = have_dimensions_ && ndim > 0;
    inexact_ = inexact_ || is_floating(type) || is_complex(type);
  }
  // True if a scalar tensor of this type may be passed as a number.
  bool is_number(DType scalar) const {
    if (!have_dimensions_) return false;
    return scalar == DType::Bool || scalar == DType::Int64 || scalar == DType::Float32 ||
           scalar == DType::Complex64 ||
           ((scalar == DType::Float64 || scalar == DType::Complex128) && inexact_);
  }

 private:
  bool have_dimensions_ = true;
  bool inexact_ = false;
};

// ---- memory
// Whether the elements of two tensors share memory. Maybe: the address ranges overlap, but strides
// leave gaps, or the same bytes are read as two types; such cases are not computed exactly.
enum class Overlap : uint8_t { None, Same, Partial, Maybe };
Overlap overlap(const tb_tensor& a, const tb_tensor& b);

// ---- outputs
enum class OutputMode : uint8_t {
  Allocate,  // x(...): outputs are allocated, except for given ones
  Resize,    // x.out(..., out): given ones get the result's shape
  Keep,      // x_(self, ...): the output is `self`, whose shape and type stay
};

// Checks a given output's type against the inferred one. For constructors, `spec` takes the
// output's type.
void check_output_type(const Operator& op, const tb_tensor& out, TensorSpec& spec);
// Throws if the result's shape is not that of the output, which cannot be resized.
void check_kept_shape(const Operator& op, const tb_tensor& out, const TensorSpec& spec);
// True if the operator may write into `out` itself; false if it must write into a temporary, which
// is then copied. Throws where ATen refuses the overlap.
bool may_write(const Operator& op, const tb_tensor& out, const TensorSpec& spec,
               std::span<const tb_value> args, OutputMode mode);
void check_disjoint(const Operator& op, std::span<const tb_tensor* const> outs);

// Runs an operator whose outputs were inferred. `host` provides, for output i:
//   const tb_tensor* given(i)    the caller's tensor as a kernel would write to it; null: none
//   bool is_writable(i)          false: kernels cannot write to it as described (a lazy conjugate)
//   void resize(i, spec)         the caller's tensor gets the result's shape
//   void use(i)                  makes the caller's tensor the target, which the backend writes to
//   void make(i, spec)           makes a new tensor the target
//   void run()                   runs the operator on the targets
//   std::span<const int64_t> target_sizes(i)
//   void store(i)                copies the target to the caller's tensor, with conversion
//   void take(i)                 returns the target as the result
template <typename Host>
void run_with_outputs(const Operator& op, OutputMode mode, std::span<const tb_value> args,
                      std::span<TensorSpec> specs, Host& host) {
  const bool dynamic = op.is(kDataDependentShape);
  std::array<const tb_tensor*, kMostOutputs> given;
  std::array<bool, kMostOutputs> direct;
  size_t given_count = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    given[i] = host.given(i);
    if (given[i] == nullptr) continue;
    ++given_count;
    check_output_type(op, *given[i], specs[i]);
    if (dynamic || same({given[i]->sizes, given[i]->ndim}, specs[i].sizes)) continue;
    if (mode == OutputMode::Keep) check_kept_shape(op, *given[i], specs[i]);
    host.resize(i, specs[i]);
    given[i] = host.given(i);
  }
  if (given_count > 1) check_disjoint(op, std::span(given).first(specs.size()));
  for (size_t i = 0; i < specs.size(); ++i) {
    TensorSpec& spec = specs[i];
    direct[i] = given[i] != nullptr && may_write(op, *given[i], spec, args, mode) && !dynamic &&
                host.is_writable(i);
    if (dynamic) {  // the backend resizes once it knows the sizes
      if (!spec.sizes.empty()) spec.sizes[0] = 0;
      spec.strides.clear();
    }
    if (direct[i])
      host.use(i);
    else
      host.make(i, spec);
  }
  host.run();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (given[i] == nullptr) {
      host.take(i);
    } else if (!direct[i]) {
      if (dynamic) {
        specs[i].sizes = Dims(host.target_sizes(i));
        host.resize(i, specs[i]);
      }
      host.store(i);
    }
  }
}

// ---- fallback
// Why a declined call may not run on the CPU, whatever the settings allow; null: it may.
const char* fallback_obstacle(const Operator& op);
// True if the operator changes this argument; a fallback copies it back.
inline bool changes_argument(const Operator& op, size_t argument) {
  return op.schema.inputs[argument].written;
}

}  // namespace ocltensor
