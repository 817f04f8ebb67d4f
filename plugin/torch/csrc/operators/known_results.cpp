// A word for each operator: what its arguments were, and the type of its result.
#include "known_results.h"

#include <atomic>
#include <memory>

#include "arguments.h"
#include "operator.h"

namespace torch_ocl {
namespace {

constexpr uint64_t kTypeBits = 0xff;  // the lowest ones of a word

std::atomic<uint64_t>& word_of(const ocltensor::Operator& op) {
  static auto* const words =
      new std::atomic<uint64_t>[ocltensor::operators().size()] {};  // leaked: used by any thread
  return words[static_cast<size_t>(op.schema.index)];
}

}  // namespace

uint64_t known_key(const ocltensor::Operator& op, const Arguments& in) {
  constexpr size_t kMost = 6;
  const auto values = in.values();
  const auto tensors = in.tensors();
  // A whole exponent is refused by its value.
  if (!op.is(ocltensor::kPointwise) || op.is(ocltensor::kWholeExponent) || tensors.empty() ||
      values.size() > kMost)
    return 0;
  const at::Tensor& first = *tensors.front();
  for (const at::Tensor* t : tensors) {
    const bool alike = at::isFloatingType(t->scalar_type()) && t->is_contiguous() &&
                       (t == &first || t->sizes().equals(first.sizes()));
    if (!alike) return 0;
  }
  uint64_t key = 1;
  size_t next = 0;
  for (const tb_value& value : values) {
    uint64_t word = value.tag;
    if (value.tag == TB_TENSOR) {
      if (next == tensors.size()) return 0;  // a scalar tensor that was moved to the device
      word = 64 + static_cast<uint64_t>(tensors[next++]->scalar_type());
    } else if (value.tag != TB_NONE && value.tag != TB_BOOL && value.tag != TB_INT &&
               value.tag != TB_FLOAT) {
      return 0;
    }
    key = key << 8 | word;
  }
  return next == tensors.size() ? key << 8 : 0;
}

void remember_result(const ocltensor::Operator& op, uint64_t key, at::ScalarType result) {
  word_of(op).store(key | static_cast<uint8_t>(result), std::memory_order_relaxed);
}

bool has_known_result(const ocltensor::Operator& op, uint64_t key, const Arguments& in,
                      ocltensor::OutputMode mode, at::Tensor& out, tb_tensor& described) {
  const uint64_t last = word_of(op).load(std::memory_order_relaxed);
  if ((last & ~kTypeBits) != key) return false;
  const auto type = static_cast<at::ScalarType>(last & kTypeBits);
  const at::Tensor& first = *in.tensors().front();
  if (mode == ocltensor::OutputMode::Allocate) {
    out = make_tensor(first.sizes(), {}, type, first.device().index());
    described = describe_output(out);
    return true;
  }
  if (out.device() != first.device() || out.scalar_type() != type || out.is_conj() ||
      out.is_neg() || !out.is_contiguous() || !out.sizes().equals(first.sizes()))
    return false;
  described = describe_output(out);
  ocltensor::TensorSpec spec;
  spec.dtype = dtype_of(type);
  return ocltensor::may_write(op, described, spec, in.values(), mode);
}

}  // namespace torch_ocl
