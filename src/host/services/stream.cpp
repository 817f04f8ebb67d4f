// Streams and events: handles over the backend's objects.
#include "ocltensor/stream.h"

#include <array>
#include <mutex>
#include <vector>

#include "base/thread_owned.h"
#include "host/core/backend.h"
#include "host/services/owned_handle.h"

namespace ocltensor {

struct Stream::Impl : OwnedHandle<tb_stream> {
  Impl(Device d, tb_stream h, bool owned)
      : OwnedHandle(d, h, owned ? backend(d).api->stream->destroy : nullptr, "stream", "a stream") {
  }
};

Stream Stream::create(Device device, int priority) {
  tb_stream handle = nullptr;
  invoke_api("creating a stream", backend(device).api->stream->create,
             static_cast<int32_t>(device.index()), static_cast<int32_t>(priority), &handle);
  Stream s;
  s.impl_ = std::make_shared<const Impl>(device, handle, true);
  return s;
}

Stream Stream::default_of(Device device) {
  // One handle per device, so that default streams compare equal. Leaked, because tensors may
  // outlive main().
  static std::mutex& mutex = *new std::mutex;
  static auto& made = *new std::array<std::vector<Stream>, kMaxBackends>;
  const std::lock_guard lock(mutex);
  std::vector<Stream>& of_backend = made[device.backend()];
  const auto index = static_cast<size_t>(device.index());
  if (of_backend.size() <= index) of_backend.resize(index + 1);
  Stream& s = of_backend[index];
  if (!s) {
    tb_stream handle = nullptr;
    invoke_api("default stream", backend(device).api->stream->default_stream,
               static_cast<int32_t>(device.index()), &handle);
    s.impl_ = std::make_shared<const Impl>(device, handle, false);
  }
  return s;
}

Device Stream::device() const {
  check(impl_ != nullptr, "an empty stream has no device");
  return impl_->device;
}

tb_stream Stream::handle() const {
  check(impl_ != nullptr, "an empty stream has no queue");
  return impl_->handle;
}

void Stream::synchronize() const {
  invoke_api("synchronize", backend(device()).api->stream->synchronize, handle());
}

bool Stream::query() const {
  return invoke_api("stream query", backend(device()).api->stream->query, handle()) == TB_OK;
}

void Stream::wait(const Event& event) const {
  check(event.device().backend() == device().backend(), "a stream of {} cannot wait for {}",
        device().text(), event.device().text());
  invoke_api("wait for an event", backend(device()).api->stream->wait_event, handle(),
             event.handle());
}

namespace {
// The thread's current streams, by backend and device index.
using CurrentStreams = std::array<std::vector<Stream>, kMaxBackends>;
thread_local CurrentStreams* current_streams = nullptr;

Stream& slot(Device device) {
  std::vector<Stream>& of_backend = thread_owned(current_streams)[device.backend()];
  const auto index = static_cast<size_t>(device.index());
  if (of_backend.size() <= index) [[unlikely]]
    of_backend.resize(index + 1);
  return of_backend[index];
}
}  // namespace

const Stream& current_stream(Device device) {
  Stream& s = slot(device);
  if (!s) [[unlikely]]
    s = Stream::default_of(device);
  return s;
}

void set_current_stream(const Stream& stream) { slot(stream.device()) = stream; }

StreamGuard::StreamGuard(const Stream& stream) : previous_(current_stream(stream.device())) {
  set_current_stream(stream);
}
StreamGuard::~StreamGuard() { slot(previous_.device()) = previous_; }

struct Event::Impl : OwnedHandle<tb_event> {
  Impl(Device d, tb_event h)
      : OwnedHandle(d, h, backend(d).api->event->destroy, "event", "an event") {}
};

Event::Event(Device device, bool enable_timing) {
  tb_event handle = nullptr;
  invoke_api("creating an event", backend(device).api->event->create,
             static_cast<int32_t>(device.index()), enable_timing ? uint32_t{TB_EVENT_TIMING} : 0u,
             &handle);
  impl_ = std::make_shared<const Impl>(device, handle);
}

Device Event::device() const { return impl_->device; }
tb_event Event::handle() const { return impl_->handle; }
void Event::record() const { record(current_stream(device())); }
void Event::record(const Stream& stream) const {
  check(stream.device() == device(), "an event of {} cannot be recorded in a stream of {}",
        device().text(), stream.device().text());
  invoke_api("recording an event", backend(device()).api->event->record, handle(), stream.handle());
}
void Event::wait(const Stream& stream) const { stream.wait(*this); }
bool Event::query() const {
  return invoke_api("event query", backend(device()).api->event->query, handle()) == TB_OK;
}
void Event::synchronize() const {
  invoke_api("event synchronize", backend(device()).api->event->synchronize, handle());
}
double Event::elapsed_time(const Event& end) const {
  check(device() == end.device(), "elapsed_time needs two events of one device, got {} and {}",
        device().text(), end.device().text());
  double ms = 0;
  invoke_api("elapsed_time", backend(device()).api->event->elapsed_ms, handle(), end.handle(), &ms);
  return ms;
}

}  // namespace ocltensor
