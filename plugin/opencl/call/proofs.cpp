// Runs the proofs of kernels, and remembers on disk which passed.
#include "proofs.h"

#include "base/log.h"
#include "runtime/program/disk_cache.h"

namespace ocltensor::opencl {

bool is_proven(const OpCall& call, Proof& proof, const Source& source, const Defines& defines,
               std::string (*test)(const OpCall& call, const void* what), const void* what) {
  const auto key = disk_cache::key_of("proven\n" + call.caps().identity() + "\n" +
                                      defines.source() + expand(source));
  if (disk_cache::contains(key)) {
    proof.state = Proof::Right;
    return true;
  }
  if (call.stream().is_recording()) return false;  // nothing runs now: another kernel does it
  call.stream().synchronize();  // so that a failure of earlier work is not taken for this kernel's
  std::string wrong;
  try {
    wrong = test(call, what);
  } catch (const Error& error) {
    if (error.status() == TB_E_OUT_OF_MEMORY || error.status() == TB_E_DEVICE_LOST ||
        call.stream().rehearsal().is_on())
      throw;
    wrong = error.what();
  }
  if (wrong.empty()) disk_cache::store(key, {'o', 'k'});
  if (!wrong.empty())
    logging::warning("tune", "the kernel {} is not used, because its test failed: {}\n{}",
                     source.path, wrong, defines.source());
  proof.state = wrong.empty() ? Proof::Right : Proof::Wrong;
  return wrong.empty();
}

}  // namespace ocltensor::opencl
