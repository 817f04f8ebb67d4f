// CPU fallback for operators that a device declines: off unless OCLTENSOR_ENABLE_FALLBACK=1.
#pragma once

#include <span>
#include <string>

#include "base/operators.h"
#include "ocltensor/tensor.h"

namespace ocltensor::detail {

// Why a backend declined a call.
struct Declined {
  uint32_t reason;  // TB_REASON_*
  std::string text;
};

// Throws the declined operator's error if fallback is off. `what` describes the arguments.
void check_fallback_allowed(const std::string& name, Device device, const Declined& declined,
                            const std::string& what);
// Counts a fallback that has succeeded, and warns of an operator's first.
void count_fallback(const std::string& name, Device device, const Declined& declined,
                    const std::string& what);

// A fallback in the traces, logs and statistics of the backend that declined.
class TracedFallback {
 public:
  TracedFallback(const std::string& name, Device device);
  ~TracedFallback();
  TracedFallback(const TracedFallback&) = delete;

 private:
  const tb_profiler_api* profiler_ = nullptr;  // set while a call is open there
};

// Runs the operator on the CPU, on copies, and stores the results in `outs`. Outputs whose shape
// depends on data are replaced by new tensors of the device.
void fall_back(const Operator& op, Device device, std::span<const tb_value> args,
               std::span<Tensor> outs, const Declined& declined);

}  // namespace ocltensor::detail
