// A device's context, streams and caches, from all rooms of the runtime.
#include "runtime/device/device.h"

#include <algorithm>
#include <deque>
#include <exception>

#include "ocltensor/error.h"
#include "runtime/ahead/build_requests.h"
#include "runtime/device/generator.h"
#include "runtime/driver/clhpp.h"
#include "runtime/driver/process.h"
#include "runtime/memory/memory.h"
#include "runtime/observe/profile_settings.h"
#include "runtime/observe/profiler.h"
#include "runtime/program/disk_cache.h"
#include "runtime/program/program.h"
#include "runtime/queue/launch_thread.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {
namespace {

// Streams are the clock of the memory pool. One that is gone has passed everything.
class Clock final : public runtime::StreamClock {
 public:
  explicit Clock(Device& device) : device_(device) {}
  uint64_t current(runtime::StreamId stream) override { return device_.enqueued(stream); }
  bool passed(runtime::StreamId stream, uint64_t ticket) override {
    const auto found = device_.find_stream(stream);
    return !found || found->passed(ticket);
  }
  void wait(runtime::StreamId stream, uint64_t ticket) override {
    if (const auto found = device_.find_stream(stream)) found->wait(ticket);
  }
  std::vector<runtime::StreamId> streams() override {
    std::vector<runtime::StreamId> ids;
    for (const auto& stream : device_.streams()) ids.push_back(stream->id());
    return ids;
  }

 private:
  Device& device_;
};

// Calls `serve` for each stream; the first failure is raised when all have been served.
template <typename Serve>
void serve_all(Device& device, const Serve& serve) {
  std::exception_ptr failure;
  for (const auto& stream : device.streams()) try {
      serve(*stream, failure != nullptr);
    } catch (const std::exception&) {
      if (!failure) failure = std::current_exception();
    }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

struct Device::Parts {
  cl::Device handle;
  cl::Context context;
  cl::CommandQueue service_queue;
  std::unique_ptr<ProgramCache> programs;
  std::unique_ptr<Clock> clock;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Generator> generator;
  std::mutex mutex;  // guards streams and next_stream
  std::vector<std::shared_ptr<Stream>> streams;
  uint64_t next_stream = 1;
  std::shared_ptr<Stream> default_stream;

  // The smallest number that no stream has.
  uint32_t free_place() const {
    uint32_t place = 0;
    const auto has_it = [&](const auto& stream) { return stream->place() == place; };
    while (std::ranges::any_of(streams, has_it)) ++place;
    return place;
  }
};

Device::Device(int index, cl_platform_id platform, cl_device_id id, Capabilities caps)
    : index_(index), platform_(platform), id_(id), caps_(std::move(caps)) {}
Device::~Device() = default;

Device::Parts& Device::parts() {
  check_process();
  if (open_.load(std::memory_order_acquire)) [[likely]]
    return *parts_;
  // A failure leaves the flag unset, so that the next call tries again.
  std::call_once(once_, [this] {
    auto parts = std::make_unique<Parts>();
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform_), 0};
    cl_int code = CL_SUCCESS;
    parts->handle = cl::Device(id_, true);
    parts->context = cl::Context(parts->handle, properties, nullptr, nullptr, &code);
    check_cl(code, "clCreateContext");
    parts->service_queue = cl::CommandQueue(parts->context, parts->handle, 0, &code);
    check_cl(code, "clCreateCommandQueue");
    parts->programs = std::make_unique<ProgramCache>(parts->context(), id_, caps_, index_);
    parts->clock = std::make_unique<Clock>(*this);
    parts->memory = std::make_unique<Memory>(*this, *parts->clock);
    parts->generator = std::make_unique<Generator>(*this);
    parts_ = std::move(parts);
    open_ = true;
    LaunchThread::stop_all_at_exit();
    if (profiler::recording()) profiler::finish_at_exit();  // runs before the driver's handlers
    // Much will be compiled where nothing is on disk yet.
    if (caps_.deferred_builds && disk_cache::state().entries == 0)
      build_ahead::expect_requests(caps_, index_);
  });
  return *parts_;
}

bool Device::is_open() const { return open_.load(); }
const cl::Device& Device::handle() { return parts().handle; }
const cl::Context& Device::context() { return parts().context; }
cl_command_queue Device::service_queue() { return parts().service_queue(); }
Memory& Device::memory() { return *parts().memory; }
ProgramCache& Device::programs() { return *parts().programs; }
Generator& Device::default_generator() { return *parts().generator; }

Stream& Device::default_stream() {
  Parts& p = parts();
  std::lock_guard lock(p.mutex);
  if (!p.default_stream) {
    p.default_stream = std::make_shared<Stream>(*this, 0, p.free_place());
    p.streams.push_back(p.default_stream);
  }
  return *p.default_stream;
}

Stream& Device::create_stream() {
  Parts& p = parts();
  std::lock_guard lock(p.mutex);
  p.streams.push_back(std::make_shared<Stream>(*this, p.next_stream++, p.free_place()));
  return *p.streams.back();
}

// Waits for the stream's work while the stream can still be found, because memory that it uses
// looks it up by its number; and once more when it cannot be found any more. A failure of its work
// is raised at the end.
void Device::destroy_stream(Stream& stream) {
  Parts& p = parts();
  std::exception_ptr failure;
  const auto wait = [&](Stream& doomed) {
    try {
      doomed.synchronize();
    } catch (const Error&) {
      failure = std::current_exception();
    }
  };
  std::shared_ptr<Stream> doomed;
  const auto find = [&] {
    const auto it = std::ranges::find(p.streams, &stream, [](const auto& s) { return s.get(); });
    check(it != p.streams.end(), "this stream does not exist (any more)");
    check(*it != p.default_stream, "the default stream cannot be destroyed");
    check(!stream.is_recording(), "a stream that records a graph cannot be destroyed");
    return it;
  };
  {
    const std::lock_guard lock(p.mutex);
    doomed = *find();
  }
  wait(*doomed);
  {
    const std::lock_guard lock(p.mutex);
    p.streams.erase(find());
  }
  wait(*doomed);
  memory().forget_stream(doomed->id());
  if (failure) std::rethrow_exception(failure);
}

std::shared_ptr<Stream> Device::find_stream(uint64_t id) {
  Parts& p = parts();
  std::lock_guard lock(p.mutex);
  for (const auto& stream : p.streams)
    if (stream->id() == id) return stream;
  return nullptr;
}

uint64_t Device::enqueued(uint64_t id) {
  Parts& p = parts();
  const std::lock_guard lock(p.mutex);
  for (const auto& stream : p.streams)
    if (stream->id() == id) return stream->enqueued();
  return 0;
}

std::vector<std::shared_ptr<Stream>> Device::streams() {
  Parts& p = parts();
  std::lock_guard lock(p.mutex);
  return p.streams;
}

// Only one error can be raised: failures of other streams are raised by the next call.
void Device::synchronize(bool raises) {
  serve_all(*this, [&](Stream& s, bool failed) { s.synchronize(raises && !failed); });
}

void Device::submit_launches() {
  for (const auto& stream : streams()) stream->submit_launches();
}
bool Device::try_submit_launches() {
  bool all = true;
  for (const auto& stream : streams()) all = stream->try_submit_launches() && all;
  return all;
}

void Device::end_traces() {
  serve_all(*this, [](Stream& s, bool) { s.end_trace(); });
}

void Device::collect_traces() {
  for (const auto& stream : streams()) stream->collect_trace();
}

}  // namespace ocltensor::opencl
