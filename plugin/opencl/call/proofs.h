// Proofs of kernels that rely on more than OpenCL C promises: each specialisation is tested once
// per driver, against exact results, before it is used.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <type_traits>

#include "call/op_call.h"

namespace ocltensor::opencl {

// The state of one kernel's proof on one device. Zero-initialised: unknown.
struct Proof {
  enum State : uint8_t {
    Unknown,
    Right,
    Wrong,
    Due,  // launches wait for the verdict
  };
  std::atomic<uint8_t> state{Unknown};
};

// What is known of the proofs of all specialisations of a source on one device.
struct ProofFamily {
  std::atomic<bool> has_test{false};   // one has been tested, or is
  std::atomic<bool> has_right{false};  // one is right, or all are with such a driver
};

// Takes a program that is likely to be needed.
using ReportProgram = std::function<void(const Source&, const Defines&)>;

// How a kernel's specialisations are tested.
struct ProofTest {
  const Source& source;
  // Returns what was wrong with `what`, or an empty text. Runs on a stream of its own, perhaps
  // after the call in a thread of its own: `call` has neither arguments nor outputs.
  std::string (*wrong)(const OpCall& call, const void* what);
  // Reports the programs that a model which uses `what` is likely to use, too, in the order of
  // their first use: builder processes compile them while the host waits for the first test.
  // Optional.
  void (*likely)(const OpCall& call, const void* what, const ReportProgram& report) = nullptr;
  // Whether launches may wait for the test once another kernel of the source is right. Not where
  // that says little: instructions differ between the specialisations, or no such device has been
  // tried.
  bool defers = true;
};

// A copy of `what` that the test may be given later.
using KeepWhat = std::shared_ptr<const void> (*)(const void* what);

// Whether the kernel of `test.source` and `defines` may be used. The first call runs the test,
// unless the cache on disk has its verdict with this driver; or it lets the host go on, and
// launches wait for the test (runtime/queue/proving.h), if another kernel of the source is right on
// this driver, or all are known to be: then a failure, which the host meets as an error, is
// improbable; a test may forbid it. A wrong kernel, or one that does not compile, is logged as a
// warning and not used any more.
bool is_proven(const OpCall& call, Proof& proof, ProofFamily& family, const ProofTest& test,
               const Defines& defines, const void* what, KeepWhat keep);

// The states of the proofs of a kernel's specialisations, on every device. Objects must live as
// long as the process.
template <size_t kVariants>
class Proofs {
 public:
  // As is_proven(), for specialisation `variant`; defines() is called the first time only.
  template <typename MakeDefines, typename What>
  bool hold(const OpCall& call, size_t variant, const ProofTest& test, MakeDefines&& defines,
            const What* what) {
    static_assert(std::is_trivially_copyable_v<What>);
    const auto device = static_cast<size_t>(call.device().index());
    if (device >= kMostDevices) return false;
    Proof& proof = proofs_[device][variant];
    const uint8_t state = proof.state.load(std::memory_order_acquire);
    if (state != Proof::Unknown) [[likely]]
      return state != Proof::Wrong;
    return is_proven(call, proof, families_[device], test, defines(), what,
                     [](const void* given) -> std::shared_ptr<const void> {
                       return std::make_shared<const What>(*static_cast<const What*>(given));
                     });
  }

 private:
  static constexpr size_t kMostDevices = 16;
  std::array<std::array<Proof, kVariants>, kMostDevices> proofs_{};
  std::array<ProofFamily, kMostDevices> families_{};
};

}  // namespace ocltensor::opencl
