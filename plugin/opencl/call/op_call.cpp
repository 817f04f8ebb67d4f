// Arguments and outputs of an operator call, checked once for every operator.
#include "op_call.h"

#include "base/arguments.h"

namespace ocltensor::opencl {
namespace {

constexpr tb_call kNothing{};

[[noreturn]] void decline_float64(const Capabilities& caps, const Operator& op) {
  unsupported(TB_REASON_DEVICE_FEATURE,
              "{} has no float64 (cl_khr_fp64): such tensors are stored, moved and converted "
              "there, but {} computes with them",
              caps.name, op.name);
}

// Checks that no operator has to repeat: types that the device cannot hold, more dimensions than
// the limit.
void check_tensor(const Capabilities& caps, const Operator& op, const OpEntry& entry,
                  const tb_tensor* tensor) {
  const DType dtype = check_described(tensor);
  if (!caps.fp64 && ((dtype == DType::Complex128 && !entry.moves_complex128) ||
                     (dtype == DType::Float64 && !entry.moves_float64)))
    decline_float64(caps, op);
  const bool taken = is_complex(dtype)                             ? entry.takes_complex
                     : is_wide_unsigned(dtype) || is_float8(dtype) ? entry.takes_all_types
                                                                   : true;
  if (!taken) unsupported(TB_REASON_DTYPE, "{} does not support {}", op.name, name(dtype));
  check_reach(*tensor, dtype);
}

}  // namespace

Scratch::~Scratch() {
  if (address_ == 0) return;
  try {
    stream_->device().memory().free(address_, stream_->id());
  } catch (const Error&) {  // after fork, or when the device is lost: the memory is gone anyway
  }
}

void Scratch::poison() const { fill(0xff); }
void Scratch::clear() const { fill(0); }
void Scratch::fill(uint8_t byte) const {
  if (bytes_ == 0) return;
  const Place place = resolve(address_, 0, static_cast<int64_t>(bytes_));
  stream_->fill(place.buffer, place.offset, &byte, 1, bytes_);
}

std::vector<std::byte> Scratch::read() const {
  std::vector<std::byte> bytes(bytes_);
  if (bytes_ == 0) return bytes;
  const Place place = resolve(address_, 0, static_cast<int64_t>(bytes_));
  stream_->read(bytes.data(), place.buffer, place.offset, bytes_, false);
  return bytes;
}

OpCall::OpCall(const tb_call& call, const Operator& op, Stream& stream, bool check_only,
               const OpEntry& entry, const Policy& policy)
    : raw_(call),
      op_(op),
      args_(op.schema, {call.args, call.arg_count}),
      stream_(stream),
      check_only_(check_only),
      policy_(policy) {
  check(call.arg_count == op.schema.inputs.size(), "{} takes {} arguments, got {}", op.name,
        op.schema.inputs.size(), call.arg_count);
  check((call.arg_count == 0 || call.args != nullptr) &&
            (call.out_count == 0 || call.outs != nullptr),
        "{}: the arguments or the outputs are NULL", op.name);
  check(call.out_count == op.schema.outputs.size() || op.schema.lists_outputs(),
        "{} has {} outputs, got {}", op.name, op.schema.outputs.size(), call.out_count);
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    const tb_value& v = call.args[i];
    check(points_somewhere(v), "{}: argument '{}' is a null pointer", op.name,
          op.schema.inputs[i].name);
    if (v.tag == TB_TENSOR) check_tensor(caps(), op, entry, static_cast<const tb_tensor*>(v.as.p));
    if (v.tag == TB_COMPLEX && !entry.takes_complex)
      unsupported(TB_REASON_DTYPE, "{} does not support complex numbers", op.name);
    if (v.tag == TB_TENSOR_LIST)
      for (uint32_t k = 0; k < v.count; ++k)
        if (const tb_tensor* t = static_cast<const tb_tensor* const*>(v.as.p)[k])
          check_tensor(caps(), op, entry, t);
  }
  for (uint32_t i = 0; i < call.out_count; ++i) check_tensor(caps(), op, entry, call.outs[i]);
}

OpCall::OpCall(const Operator& op, Stream& stream, const Policy& policy)
    : raw_(kNothing),
      op_(op),
      args_(op.schema, {}),
      stream_(stream),
      check_only_(false),
      policy_(policy) {}

void OpCall::need(DType type) const {
  if (lacks(type)) decline_float64(caps(), op_);
}

TensorView OpCall::out(size_t i) const {
  check(i < raw_.out_count, "{} has no output {}", name(), i);
  return TensorView(*raw_.outs[i]);
}

TensorView OpCall::resize_out(size_t i, std::span<const int64_t> sizes) {
  check(raw_.resize_out != nullptr, "{} needs a resize_out callback", name());
  resized_ = {};
  const tb_status status =
      raw_.resize_out(raw_.resize_context, static_cast<uint32_t>(i), sizes.data(),
                      static_cast<uint32_t>(sizes.size()), &resized_);
  if (status != TB_OK) fail(status, "{}: the host could not resize output {}", name(), i);
  return TensorView(resized_);
}

namespace {

std::vector<Scratch> memory_for_copy(const OpCall& call, TensorView tensor) {
  std::vector<Scratch> memory;
  if (!tensor.is_contiguous())
    memory.push_back(call.scratch(static_cast<uint64_t>(tensor.numel() * tensor.itemsize())));
  return memory;
}

}  // namespace

Contiguous::Contiguous(const OpCall& call, TensorView tensor)
    : memory_(memory_for_copy(call, tensor)),
      local_(memory_.empty() ? tensor.address() : memory_[0].address(), tensor.dtype(),
             Dims(tensor.sizes())) {
  if (!memory_.empty()) copy_tensor(call, local_.view(), tensor);
}

ContiguousOutput::ContiguousOutput(const OpCall& call, TensorView out)
    : call_(call),
      out_(out),
      memory_(memory_for_copy(call, out)),
      local_(memory_.empty() ? out.address() : memory_[0].address(), out.dtype(),
             Dims(out.sizes())) {}

void ContiguousOutput::finish() {
  if (!memory_.empty()) copy_tensor(call_, out_, local_.view());
}

}  // namespace ocltensor::opencl
