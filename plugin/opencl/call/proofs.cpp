// Runs the proofs of kernels, and remembers on disk which passed.
#include "proofs.h"

#include <map>
#include <mutex>

#include "base/log.h"
#include "runtime/ahead/build_requests.h"
#include "runtime/program/disk_cache.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

// Tests have a stream of their own: they wait for none of the programs that the call's stream still
// needs, and a failure of earlier work is not taken for the kernel's.
Stream& test_stream(Device& device) {
  static std::mutex& mutex = *new std::mutex;  // leaked: threads may outlive exit handlers
  static auto& streams = *new std::map<const Device*, Stream*>;
  const std::lock_guard lock(mutex);
  Stream*& stream = streams[&device];
  if (stream == nullptr) stream = &device.create_stream();
  return *stream;
}

void compile_ahead(const OpCall& call, const ProofTest& test, const void* what) {
  test.likely(call, what, [&](const Source& source, const Defines& defines) {
    if (!call.device().programs().has(source, defines))
      build_ahead::request(call.caps(), call.device().index(),
                           {source.path, build_ahead::on_one_line(defines.source())});
  });
}

}  // namespace

bool is_proven(const OpCall& call, Proof& proof, const ProofTest& test, const Defines& defines,
               const void* what, std::atomic<uint32_t>& tested) {
  const auto key = disk_cache::key_of("proven\n" + call.caps().identity() + "\n" +
                                      defines.source() + expand(test.source));
  if (disk_cache::contains(key)) {
    proof.state = Proof::Right;
    return true;
  }
  if (call.stream().is_recording()) return false;  // nothing runs now: another kernel does it
  const bool rehearses = call.stream().rehearsal().is_on();
  if (tested++ == 0 && test.likely != nullptr && call.stream().has_launch_thread() && !rehearses)
    compile_ahead(call, test, what);
  // One test at a time: a failure is raised by the stream's next wait, whoever waits. Recursive, as
  // a test may need another kernel's proof.
  static std::recursive_mutex& testing = *new std::recursive_mutex;  // leaked, as above
  const std::lock_guard alone(testing);
  std::string wrong;
  try {
    wrong = rehearses ? test.wrong(call, what)
                      : test.wrong(OpCall(call, test_stream(call.device())), what);
  } catch (const Error& error) {
    if (error.status() == TB_E_OUT_OF_MEMORY || error.status() == TB_E_DEVICE_LOST || rehearses)
      throw;
    wrong = error.what();
  }
  if (wrong.empty()) disk_cache::store(key, {'o', 'k'});
  if (!wrong.empty())
    logging::warning("tune", "the kernel {} is not used, because its test failed: {}\n{}",
                     test.source.path, wrong, defines.source());
  proof.state = wrong.empty() ? Proof::Right : Proof::Wrong;
  return wrong.empty();
}

}  // namespace ocltensor::opencl
