// Allocation, stream-ordered freeing, and tensors on a storage.
#include "storage.h"

#include "backend.h"
#include "base/log.h"

namespace ocltensor::detail {

Storage::~Storage() {
  if (adopted) {
    if (deleter) deleter(reinterpret_cast<void*>(static_cast<uintptr_t>(address)));
    return;
  }
  if (address == 0) return;
  ErrorBuffer error;
  const tb_status status =
      is_pinned() ? backend(pinned_by).api->memory->free_host(
                        reinterpret_cast<void*>(static_cast<uintptr_t>(address)), error.get())
                  : backend(device).api->memory->free(address, stream.handle(), error.get());
  if (status < 0)
    logging::error("memory", "freeing {} bytes of {} failed: {}", bytes, device.text(),
                   error.text());
}

std::shared_ptr<Storage> allocate(Device device, uint64_t bytes, const Stream& stream) {
  auto storage = std::make_shared<Storage>();
  storage->device = device;
  storage->stream = stream;
  storage->bytes = bytes;
  if (bytes != 0)
    invoke_api("allocating a tensor", backend(device).api->memory->allocate,
               static_cast<int32_t>(device.index()), bytes, stream.handle(), &storage->address);
  return storage;
}

std::shared_ptr<Storage> allocate_pinned(Device by, uint64_t bytes) {
  check(!by.is_cpu(), "pinned memory needs a device other than the CPU to be pinned for");
  auto storage = std::make_shared<Storage>();
  storage->bytes = bytes;
  if (bytes == 0) return storage;
  void* memory = nullptr;
  invoke_api("allocating pinned memory", backend(by).api->memory->allocate_host,
             static_cast<int32_t>(by.index()), bytes, &memory);
  storage->pinned_by = by;
  storage->address = reinterpret_cast<uintptr_t>(memory);
  return storage;
}

std::shared_ptr<Storage> adopt(void* data, uint64_t bytes, std::function<void(void*)> deleter) {
  auto storage = std::make_shared<Storage>();
  storage->stream = current_stream(Device());
  storage->bytes = bytes;
  storage->address = reinterpret_cast<uintptr_t>(data);
  storage->adopted = true;
  storage->deleter = std::move(deleter);
  return storage;
}

void reset_tensor(TensorImpl& t, std::shared_ptr<Storage> storage, const Dims& sizes,
                  const Dims& strides, int64_t offset, DType dtype) {
  t.storage = std::move(storage);
  t.shape = sizes;
  t.steps = strides;
  t.offset = offset;
  t.type = dtype;
  t.device = t.storage->device;
  auto& abi = static_cast<tb_tensor&>(t);
  abi.struct_size = sizeof(tb_tensor);
  abi.flags = 0;
  abi.base = t.storage->address;
  abi.base_bytes = t.storage->bytes;
  abi.address = abi.base == 0 ? 0 : abi.base + static_cast<tb_address>(offset * size_of(dtype));
  abi.dtype = to_abi(dtype);
  abi.ndim = static_cast<uint32_t>(sizes.size());
  abi.sizes = t.shape.data();
  abi.strides = t.steps.data();
  abi.next = nullptr;
}

Tensor make_tensor(std::shared_ptr<Storage> storage, const Dims& sizes, const Dims& strides,
                   int64_t offset, DType dtype) {
  auto impl = std::make_shared<TensorImpl>();
  reset_tensor(*impl, std::move(storage), sizes, strides, offset, dtype);
  return Tensor(std::move(impl));
}

Tensor allocate_tensor(const Dims& sizes, const Dims& strides, DType dtype, const Stream& stream) {
  const int64_t count = numel(sizes);
  const Dims steps = strides.empty() ? contiguous_strides(sizes) : strides;
  int64_t elements = count == 0 ? 0 : extent(sizes, steps).high;
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(elements, size_of(dtype), &bytes),
        "a tensor of shape {} and type {} has more bytes than can be counted", to_string(sizes),
        name(dtype));
  return make_tensor(allocate(stream.device(), static_cast<uint64_t>(bytes), stream), sizes, steps,
                     0, dtype);
}

}  // namespace ocltensor::detail
