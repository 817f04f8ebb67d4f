// Per-thread kernel objects. When a thread ends its objects pass to another thread, so that a
// thread's destructor makes no driver call.
#include "find_kernel.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/thread_owned.h"
#include "runtime/ahead/build_requests.h"
#include "runtime/device/device.h"
#include "runtime/driver/process_end.h"
#include "runtime/program/program.h"
#include "runtime/queue/launch_thread.h"
#include "runtime/queue/proving.h"

namespace ocltensor::opencl {
namespace {

// The key of a kernel. A look-up uses the caller's defines, a stored key has a copy of them.
template <typename D>
struct BasicKey {
  const Device* device;
  uint32_t stream;  // 0 if the thread that makes a launch also submits it
  const Source* source;
  const char* function;
  D defines;
};
using Key = BasicKey<Defines>;
using KeyView = BasicKey<const Defines&>;
struct KeyHash {
  using is_transparent = void;
  template <typename D>
  size_t operator()(const BasicKey<D>& key) const {
    return key.defines.hash() ^ (reinterpret_cast<uintptr_t>(key.source) >> 4) ^
           reinterpret_cast<uintptr_t>(key.function) * 31 ^ uint64_t { key.stream } << 48;
  }
};
struct KeyEqual {
  using is_transparent = void;
  template <typename A, typename B>
  bool operator()(const BasicKey<A>& a, const BasicKey<B>& b) const {
    return a.device == b.device && a.stream == b.stream && a.source == b.source &&
           a.defines == b.defines &&
           (a.function == b.function || std::strcmp(a.function, b.function) == 0);
  }
};
using Kernels = std::unordered_map<Key, std::unique_ptr<Kernel>, KeyHash, KeyEqual>;

struct Shelf {
  std::mutex mutex;
  std::vector<Kernels*> free;
};
Shelf& shelf() {
  static Shelf& s = *new Shelf;  // leaked: threads may end after exit handlers
  return s;
}

// A set of kernels, borrowed for the lifetime of a thread.
class Borrowed {
 public:
  Borrowed() {
    std::lock_guard lock(shelf().mutex);
    if (shelf().free.empty()) {
      kernels_ = new Kernels;
    } else {
      kernels_ = shelf().free.back();
      shelf().free.pop_back();
    }
  }
  ~Borrowed() {
    std::lock_guard lock(shelf().mutex);
    shelf().free.push_back(kernels_);
  }
  Borrowed(const Borrowed&) = delete;
  Kernels& operator*() { return *kernels_; }
  // Stands for any kernel that a rehearsal notes.
  Kernel placeholder{nullptr, "a kernel that has not been built"};

 private:
  Kernels* kernels_;
};

Borrowed& borrowed_kernels() {
  thread_local Borrowed* own = nullptr;
  return thread_owned(own);
}

}  // namespace

bool defers_builds(const Stream& stream) {
  return stream.has_launch_thread() && !is_process_ending() &&
         (build_counters().builds != 0 || build_ahead::are_expected());
}

Kernel& find_kernel(Stream& stream, const Source& source, const char* function,
                    const Defines& defines) {
  Borrowed& borrowed = borrowed_kernels();
  Device& device = stream.device();
  const uint32_t owner = stream.has_launch_thread() ? stream.place() : 0;
  const KeyView key{&device, owner, &source, function, defines};
  if (const auto it = (*borrowed).find(key); it != (*borrowed).end()) [[likely]]
    return *it->second;
  ProgramCache& programs = device.programs();
  const std::shared_ptr<Program> program = programs.find(source, defines);
  if (DryRun* dry = DryRun::here(); dry != nullptr && !programs.has(*program)) {
    dry->note(program);
    return borrowed.placeholder;
  }
  if (Rehearsal& rehearsal = stream.rehearsal(); rehearsal.is_on() && !programs.has(*program)) {
    rehearsal.note(program);
    return borrowed.placeholder;
  }
  if (device.caps().launch_compiler != nullptr) LaunchThread::note_compiling_launch();
  std::unique_ptr<Kernel> kernel;
  const bool may_wait = defers_builds(stream);
  const bool is_missing = may_wait && !programs.has(*program);
  const bool unproven = may_wait && !proving::is_testing() && proving::concerns(*program);
  if (is_missing) programs.request(*program);
  if (is_missing || unproven)
    kernel = std::make_unique<Kernel>(device, program, function, unproven);
  else
    kernel = Kernel::made(device, *program, function);
  return *((*borrowed)[Key{&device, owner, &source, function, defines}] = std::move(kernel));
}

}  // namespace ocltensor::opencl
