// Runs the proofs of kernels, and remembers their verdicts on disk.
#include "proofs.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "call/providers.h"
#include "runtime/driver/process_end.h"
#include "runtime/program/disk_cache.h"
#include "runtime/program/dry_run.h"
#include "runtime/program/program.h"
#include "runtime/queue/proving.h"

namespace ocltensor::opencl {
namespace {

// A stream for a test alone: it waits for none of the programs that the call's stream still needs,
// and a failure of other work is not taken for the kernel's.
class TestStream {
 public:
  explicit TestStream(Device& device) : device_(device) {
    {
      const std::lock_guard lock(idle().mutex);
      std::vector<Stream*>& streams = idle().streams[&device];
      if (!streams.empty()) stream_ = std::exchange(streams.back(), nullptr), streams.pop_back();
    }
    if (stream_ == nullptr) stream_ = &device.create_stream();
  }
  ~TestStream() {
    const std::lock_guard lock(idle().mutex);
    idle().streams[&device_].push_back(stream_);
  }
  TestStream(const TestStream&) = delete;
  Stream& operator*() const { return *stream_; }

 private:
  struct Idle {
    std::mutex mutex;
    std::map<const Device*, std::vector<Stream*>> streams;
  };
  static Idle& idle() {
    static Idle& all = *new Idle;  // leaked: threads may outlive exit handlers
    return all;
  }
  Device& device_;
  Stream* stream_ = nullptr;
};

// What the cache on disk knows: that a kernel is right, that one of its source is, what was wrong
// with it, and that a test of it met an error that may pass.
struct Keys {
  disk_cache::Key right, right_source, wrong, suspect;
};
Keys keys_of(const Capabilities& caps, const ProofTest& test, const Defines& defines) {
  const std::string driver = caps.identity() + "\n", source = expand(test.source);
  const std::string kernel = driver + defines.source() + source;
  return {disk_cache::key_of("proven\n" + kernel),
          disk_cache::key_of("proven source\n" + driver + source),
          // A test may be mended, too.
          disk_cache::key_of("wrong\n" OCLTENSOR_VERSION "\n" + kernel),
          disk_cache::key_of("suspect\n" OCLTENSOR_VERSION "\n" + kernel)};
}
void note(const disk_cache::Key& key, const std::string& text = "ok") {
  disk_cache::store(key, {text.begin(), text.end()});
}

void compile_ahead(const OpCall& call, const ProofTest& test, const void* what) {
  test.likely(call, what, [&](const Source& source, const Defines& defines) {
    ProgramCache& programs = call.device().programs();
    const auto program = programs.find(source, defines);
    if (!programs.has(*program)) programs.request(*program);
  });
}

struct Verdict {
  std::string wrong;    // empty: the kernel is right
  bool is_kept = true;  // in later processes
};

// An error of the driver, or a lost device, may be another kernel's or process's fault: the second
// time it is taken for this one's.
void suspect(const Keys& keys, const std::string& error) {
  note(disk_cache::contains(keys.suspect) ? keys.wrong : keys.suspect, error);
}

// Whatever the test's stream meets is the kernel's fault, but for lack of memory and a lost device.
Verdict run_test(const OpCall& call, const ProofTest& test, const Keys& keys, const void* what) {
  const proving::Testing testing;
  const TestStream stream(call.device());
  try {
    return {test.wrong(OpCall(call.op(), *stream, call.policy()), what)};
  } catch (const Error& error) {
    if (error.status() == TB_E_DEVICE_LOST) suspect(keys, error.what());
    if (error.status() == TB_E_OUT_OF_MEMORY || error.status() == TB_E_DEVICE_LOST) throw;
    return {error.what(), error.native() == CL_BUILD_PROGRAM_FAILURE};
  }
}

void decide(Proof& proof, ProofFamily& family, const ProofTest& test, const Defines& defines,
            const Keys& keys, const Verdict& verdict) {
  const std::string& wrong = verdict.wrong;
  if (wrong.empty()) {
    note(keys.right);
    note(keys.right_source);
    family.has_right = true;
  } else {
    if (verdict.is_kept)
      note(keys.wrong, wrong);
    else
      suspect(keys, wrong);
    logging::warning("tune", "the kernel {} is not used, because its test failed: {}\n{}",
                     test.source.path, wrong, defines.source());
  }
  proof.state.store(wrong.empty() ? Proof::Right : Proof::Wrong, std::memory_order_release);
}

// Whether a provider knows that its kernels are right with this driver.
bool is_known(const Capabilities& caps) {
  return std::ranges::any_of(providers(), [&](const Provider* provider) {
    return provider->trusts_driver != nullptr && provider->trusts_driver(caps);
  });
}

// A kernel whose test met an error is tested before its next use; without a cache that remembers it
// all are.
bool may_go_on(const OpCall& call, ProofFamily& family, const Keys& keys) {
  if (proving::is_testing() || !defers_builds(call.stream())) return false;
  if (disk_cache::usable_folder().empty()) return false;
  if (!family.has_right && (is_known(call.caps()) || disk_cache::contains(keys.right_source)))
    family.has_right = true;
  return family.has_right && !disk_cache::contains(keys.suspect);
}

// Has launches wait for the test: false if no thread can run it. The call's arguments are gone when
// it runs.
bool begin(const OpCall& call, Proof& proof, ProofFamily& family, const ProofTest& test,
           const Defines& defines, const Keys& keys, std::shared_ptr<const void> what) {
  static std::mutex& beginning = *new std::mutex;  // leaked, as above
  const std::lock_guard lock(beginning);
  if (proof.state != Proof::Unknown) return true;  // by another thread
  try {
    proving::begin(call.device().programs().find(test.source, defines),
                   [&op = call.op(), &device = call.device(), &policy = call.policy(), &proof,
                    &family, &test, defines, keys, what = std::move(what)]() -> std::string {
                     Verdict verdict;
                     { const std::lock_guard begun(beginning); }
                     try {
                       verdict = run_test(OpCall(op, device.default_stream(), policy), test, keys,
                                          what.get());
                     } catch (const std::exception& error) {  // no verdict
                       proof.state = Proof::Unknown;
                       return error.what();
                     }
                     if (is_process_ending()) return "the process is ending";
                     decide(proof, family, test, defines, keys, verdict);
                     return verdict.wrong;
                   });
  } catch (const std::system_error&) {
    return false;
  }
  proof.state.store(Proof::Due, std::memory_order_release);
  return true;
}

}  // namespace

bool is_proven(const OpCall& call, Proof& proof, ProofFamily& family, const ProofTest& test,
               const Defines& defines, const void* what, KeepWhat keep) {
  const Keys keys = keys_of(call.caps(), test, defines);
  if (disk_cache::contains(keys.right)) {
    family.has_right = true;
    proof.state = Proof::Right;
    return true;
  }
  if (const auto kept = disk_cache::load(keys.wrong)) {
    logging::warning("tune",
                     "the kernel {} is not used, because its test failed in an earlier process: "
                     "{}\nDelete {} to test it again",
                     test.source.path, std::string(kept->begin(), kept->end()),
                     disk_cache::path_of(keys.wrong));
    proof.state = Proof::Wrong;
    return false;
  }
  if (call.stream().is_recording()) return false;  // nothing runs now: another kernel does it
  if (call.stream().rehearsal().is_on() || DryRun::is_on()) {
    // What is missing is noted, and the test's first read then throws: there is no verdict.
    const Verdict verdict{test.wrong(OpCall(call.op(), call.stream(), call.policy()), what)};
    decide(proof, family, test, defines, keys, verdict);
    return verdict.wrong.empty();
  }
  if (test.defers && may_go_on(call, family, keys) &&
      begin(call, proof, family, test, defines, keys, keep(what)))
    return true;
  if (!family.has_test.exchange(true) && test.likely != nullptr && defers_builds(call.stream()))
    compile_ahead(call, test, what);
  const Verdict verdict = run_test(call, test, keys, what);
  decide(proof, family, test, defines, keys, verdict);
  return verdict.wrong.empty();
}

}  // namespace ocltensor::opencl
