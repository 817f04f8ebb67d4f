// Proofs of kernels that rely on more than OpenCL C promises: each specialisation is tested once
// per driver, against exact results, before it is used.
#pragma once

#include <array>
#include <atomic>
#include <functional>

#include "call/op_call.h"

namespace ocltensor::opencl {

// The state of one kernel's proof on one device. Zero-initialised: unknown.
struct Proof {
  enum State : uint8_t { Unknown, Right, Wrong };
  std::atomic<uint8_t> state{Unknown};
};

// Takes a program that is likely to be needed.
using ReportProgram = std::function<void(const Source&, const Defines&)>;

// How a kernel's specialisations are tested.
struct ProofTest {
  const Source& source;
  // Returns what was wrong with `what`, or an empty text. Runs on a stream of its own.
  std::string (*wrong)(const OpCall& call, const void* what);
  // Reports the programs that a model which uses `what` is likely to use, too, in the order of
  // their first use: builder processes compile them while the host waits for the first test.
  // Optional.
  void (*likely)(const OpCall& call, const void* what, const ReportProgram& report) = nullptr;
};

// Whether the kernel of `test.source` and `defines` is right. The first call runs the test, unless
// the cache on disk says that it has passed with this driver. A wrong kernel, or one that does not
// compile, is logged as a warning and not used any more. `tested`: kernels of this source that have
// been tested on the device.
bool is_proven(const OpCall& call, Proof& proof, const ProofTest& test, const Defines& defines,
               const void* what, std::atomic<uint32_t>& tested);

// The states of the proofs of a kernel's specialisations, on every device.
template <size_t kVariants>
class Proofs {
 public:
  // As is_proven(), for specialisation `variant`; defines() is called the first time only.
  template <typename MakeDefines>
  bool hold(const OpCall& call, size_t variant, const ProofTest& test, MakeDefines&& defines,
            const void* what) {
    const auto device = static_cast<size_t>(call.device().index());
    if (device >= kMostDevices) return false;
    Proof& proof = proofs_[device][variant];
    const uint8_t state = proof.state.load(std::memory_order_relaxed);
    if (state != Proof::Unknown) [[likely]]
      return state == Proof::Right;
    return is_proven(call, proof, test, defines(), what, tested_[device]);
  }

 private:
  static constexpr size_t kMostDevices = 16;
  std::array<std::array<Proof, kVariants>, kMostDevices> proofs_{};
  std::array<std::atomic<uint32_t>, kMostDevices> tested_{};
};

}  // namespace ocltensor::opencl
