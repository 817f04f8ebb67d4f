// Proofs of kernels that rely on more than OpenCL C promises: each specialisation is tested once
// per driver, against exact results, before it is used.
#pragma once

#include <array>
#include <atomic>

#include "call/op_call.h"

namespace ocltensor::opencl {

// The state of one kernel's proof on one device. Zero-initialised: unknown.
struct Proof {
  enum State : uint8_t { Unknown, Right, Wrong };
  std::atomic<uint8_t> state{Unknown};
};

// Whether the kernel of `source` and `defines` is right. The first call runs `test`, unless the
// cache on disk says that it has passed with this driver; `test` returns what was wrong, or an
// empty text. A wrong kernel, or one that does not compile, is logged as a warning and not used any
// more.
bool is_proven(const OpCall& call, Proof& proof, const Source& source, const Defines& defines,
               std::string (*test)(const OpCall& call, const void* what), const void* what);

// The states of the proofs of a kernel's specialisations, on every device.
template <size_t kVariants>
class Proofs {
 public:
  // As is_proven(), for specialisation `variant`; defines() is called the first time only.
  template <typename MakeDefines>
  bool hold(const OpCall& call, size_t variant, const Source& source, MakeDefines&& defines,
            std::string (*test)(const OpCall& call, const void* what), const void* what) {
    const auto device = static_cast<size_t>(call.device().index());
    if (device >= kMostDevices) return false;
    Proof& proof = proofs_[device][variant];
    const uint8_t state = proof.state.load(std::memory_order_relaxed);
    if (state != Proof::Unknown) [[likely]]
      return state == Proof::Right;
    return is_proven(call, proof, source, defines(), test, what);
  }

 private:
  static constexpr size_t kMostDevices = 16;
  std::array<std::array<Proof, kVariants>, kMostDevices> proofs_{};
};

}  // namespace ocltensor::opencl
