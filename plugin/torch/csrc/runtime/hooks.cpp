// Answers to PyTorch's generic code: availability, devices, pinned memory, generators.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Storage.h>

#include "allocator.h"
#include "generator.h"
#include "stream.h"

namespace torch_ocl {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  // These three never throw, and open no device.
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0 && !is_in_bad_fork(); }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return is_initialized(index); }

  void init() const override { require_device(); }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  at::Device getDeviceFromPtr(void* data) const override {
    if (data == nullptr) return {kOcl, current_device()};  // the pointer of an empty tensor
    tb_memory_info info{};
    info.struct_size = sizeof info;
    call_api("device of a pointer", api().memory->info, reinterpret_cast<tb_address>(data), &info);
    return {kOcl, static_cast<c10::DeviceIndex>(info.device)};
  }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return make_generator(index);
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
  }
};

[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // leaked: PyTorch keeps it
  return true;
}();

}  // namespace
}  // namespace torch_ocl
