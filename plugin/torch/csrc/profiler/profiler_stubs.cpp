// torch.autograd.profiler without kineto (use_kineto=False): events around every operator.
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "runtime/plugin.h"
#include "runtime/stream.h"

namespace torch_ocl {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

tb_event event_of(const ProfilerVoidEventStub* event) {
  TORCH_CHECK(event != nullptr && *event, "the profiler asks for an event that was not recorded");
  return reinterpret_cast<tb_event>(event->get());
}

struct Stubs : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event,
              int64_t* cpu_ns) const override {
    const c10::DeviceIndex index = current_device();
    if (device != nullptr) *device = index;
    tb_event made = nullptr;
    call_api("profiler event", api().event->create, static_cast<int32_t>(index),
             uint32_t{TB_EVENT_TIMING}, &made);
    *event = ProfilerVoidEventStub(made, [](void* e) {
      call_api_noexcept("profiler event", api().event->destroy, reinterpret_cast<tb_event>(e));
    });
    if (cpu_ns != nullptr) *cpu_ns = c10::getTime();
    call_api("profiler event", api().event->record, made, current_handle(index));
  }
  // In microseconds.
  float elapsed(const ProfilerVoidEventStub* start,
                const ProfilerVoidEventStub* end) const override {
    double milliseconds = 0;
    call_api("profiler event", api().event->elapsed_ms, event_of(start), event_of(end),
             &milliseconds);
    return static_cast<float>(milliseconds * 1000);
  }
  void mark(const char* name) const override {
    rangePush(name);
    rangePop();
  }
  void rangePush(const char* name) const override {
    call_api("profiler range", api().profiler->push_range, name);
  }
  void rangePop() const override { call_api("profiler range", api().profiler->pop_range); }
  bool enabled() const override { return device_count() > 0; }
  void onEachDevice(std::function<void(int)> body) const override {
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) body(i);
  }
  void synchronize() const override {
    call_api("synchronize", api().device->synchronize, static_cast<int32_t>(current_device()));
  }
};

// Leaked: PyTorch keeps the pointer.
[[maybe_unused]] const bool registered = [] {
  torch::profiler::impl::registerPrivateUse1Methods(new Stubs);
  return true;
}();

}  // namespace
}  // namespace torch_ocl
