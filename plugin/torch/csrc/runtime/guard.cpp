// PyTorch's device guard for ocl: devices, streams and events.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "allocator.h"
#include "stream.h"

namespace torch_ocl {
namespace {

tb_event event_of(void* event) { return static_cast<tb_event>(event); }

// Types whose tensors can be on the device: all that the ABI has; float64 and complex128 only if
// the device computes with them.
uint64_t supported_types(c10::DeviceIndex index) {
  tb_device_properties properties{};
  properties.struct_size = sizeof properties;
  call_api("device properties", api().device->properties, index, &properties);
  c10::DeviceCapability capability;
  capability.capability_data.capability_bits = 0;
  auto& types = capability.capability_data.supported_scalar_types;
  types.has_Byte = types.has_Char = types.has_Short = types.has_Int = types.has_Long = 1;
  types.has_Half = types.has_BFloat16 = types.has_Float = types.has_Bool = 1;
  types.has_ComplexHalf = types.has_ComplexFloat = 1;
  types.has_UInt16 = types.has_UInt32 = types.has_UInt64 = 1;
  types.has_Float8_e5m2 = types.has_Float8_e5m2fnuz = 1;
  types.has_Float8_e4m3fn = types.has_Float8_e4m3fnuz = types.has_Float8_e8m0fnu = 1;
  types.has_Double = types.has_ComplexDouble = (properties.features & TB_FEATURE_FP64) != 0 ? 1 : 0;
  return capability.capability_data.capability_bits;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kOcl; }

  // ---- Devices
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::DeviceIndex previous = current_device();
    setDevice(device);
    return {kOcl, previous};
  }
  c10::Device getDevice() const override { return {kOcl, current_device()}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kOcl, "expected an ocl device, got ", device);
    if (device.index() != current_device()) set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    exchange_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = supported_types(checked_index(device.index()));
    return capability;
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    call_api("synchronize", api().device->synchronize, checked_index(index));
  }

  // ---- Streams. An index of -1 means the current device and must not be passed on.
  c10::Stream getStream(c10::Device device) const override {
    return current_stream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return default_stream(device.index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return stream_from_pool(high_priority, device.index());
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return stream_from_pool(priority < 0, device.index());
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    void* queue = nullptr;  // cl_command_queue
    call_api("native stream handle", api().interop->queue, handle_of(stream), &queue);
    return queue;
  }
  bool queryStream(const c10::Stream& stream) const override {
    return call_api("query stream", api().stream->query, handle_of(stream)) == TB_OK;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    call_api("synchronize stream", api().stream->synchronize, handle_of(stream));
  }

  // ---- Events. PyTorch holds a null pointer until the first record.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(index == -1 || index == stream.device_index(),
                "the event belongs to ocl:", static_cast<int>(index),
                ", the stream to ocl:", static_cast<int>(stream.device_index()));
    const tb_stream handle = handle_of(stream);
    if (*event == nullptr) {
      const uint32_t flags = flag == c10::EventFlag::BACKEND_DEFAULT ? TB_EVENT_TIMING : 0;
      tb_event made = nullptr;
      call_api("new event", api().event->create, stream.device_index(), flags, &made);
      *event = made;
    }
    call_api("record event", api().event->record, event_of(*event), handle);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    call_api("wait for event", api().stream->wait_event, handle_of(stream), event_of(event));
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    return call_api("query event", api().event->query, event_of(event)) == TB_OK;
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    call_api("synchronize event", api().event->synchronize, event_of(event));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    const tb_api* table = api_or_null();
    if (event != nullptr && table != nullptr)
      call_api_noexcept("destroy event", table->event->destroy, event_of(event));
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr,
                "Both events must be recorded before calculating elapsed time.");
    double milliseconds = 0;
    call_api("elapsed time", api().event->elapsed_ms, event_of(start), event_of(end),
             &milliseconds);
    return milliseconds;
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    record_use(data, stream);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace torch_ocl
