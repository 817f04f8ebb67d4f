// The dispatcher: device, outputs and backend of an operator's call.
#pragma once

#include <span>

#include "base/call_plan.h"
#include "host/core/backend.h"
#include "ocltensor/call.h"

namespace ocltensor {

// Runs an operator. Every TB_TENSOR in `args` (and in its lists) points to Tensor::abi() of a live
// tensor. The device is that of the tensors; without any, options.device. `outs` holds one entry
// per out argument: undefined ones are allocated, the others are checked, resized and written.
// Without a stream the device's current one is used.
void call(const Operator& op, const Stream& stream, std::span<const tb_value> args,
          std::span<Tensor> outs, const CallOptions& options = {});
void call(const Operator& op, std::span<const tb_value> args, std::span<Tensor> outs,
          const CallOptions& options = {});

namespace detail {

// Receives the shapes of data-dependent outputs.
struct Resizer {
  std::span<Tensor> outs;
  const Stream* stream;
};

// Passes the call to a backend unchanged: without inference, checks or fallback.
tb_status invoke(Backend& backend, const Operator& op, const Stream& stream,
                 std::span<const tb_value> args, std::span<const tb_tensor* const> outs,
                 Resizer* resizer, ErrorBuffer& error);

// Tells the tensor's backend that work on `stream` uses its memory.
void note_use(const TensorImpl& tensor, const Stream& stream);

// Visits all tensors among the arguments, those in lists as well.
template <typename Visit>
void for_each_tensor(std::span<const tb_value> args, Visit&& visit) {
  ocltensor::for_each_tensor(args, [&](size_t i, const tb_tensor& tensor) {
    visit(i, static_cast<const TensorImpl&>(tensor));
  });
}

// "add.out(float32[2, 3], 1)": for messages.
std::string describe(const Operator& op, std::span<const tb_value> args);

}  // namespace detail
}  // namespace ocltensor
