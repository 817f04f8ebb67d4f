// Allocation, stream-ordered freeing, and overlap of tensors.
#include "storage.h"

#include <algorithm>

#include "backend.h"
#include "base/log.h"

namespace ocltensor::detail {

Storage::~Storage() {
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

namespace {

// Do the elements fill their extent, each place once?
bool is_dense(const TensorImpl& t) {
  struct Step {
    int64_t stride, size;
  } steps[TB_MAX_RANK];
  size_t count = 0;
  for (size_t i = 0; i < t.shape.size(); ++i)
    if (t.shape[i] > 1) steps[count++] = {std::abs(t.steps[i]), t.shape[i]};
  std::sort(steps, steps + count, [](Step a, Step b) { return a.stride < b.stride; });
  int64_t expected = 1;
  for (size_t i = 0; i < count; ++i) {
    if (steps[i].stride != expected) return false;
    expected *= steps[i].size;
  }
  return true;
}

bool same_elements(const TensorImpl& a, const TensorImpl& b) {
  if (a.address != b.address || a.type != b.type || !(a.shape == b.shape)) return false;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (a.shape[i] > 1 && a.steps[i] != b.steps[i]) return false;
  return true;
}

}  // namespace

Overlap overlap(const TensorImpl& a, const TensorImpl& b) {
  if (a.storage != b.storage || numel(a.shape) == 0 || numel(b.shape) == 0) return Overlap::None;
  const Extent ea = extent(a.shape, a.steps), eb = extent(b.shape, b.steps);
  const int64_t sa = size_of(a.type), sb = size_of(b.type);
  const int64_t a0 = (a.offset + ea.low) * sa, a1 = (a.offset + ea.high) * sa;
  const int64_t b0 = (b.offset + eb.low) * sb, b1 = (b.offset + eb.high) * sb;
  if (a1 <= b0 || b1 <= a0) return Overlap::None;
  if (same_elements(a, b)) return Overlap::Same;
  return is_dense(a) && is_dense(b) ? Overlap::Partial : Overlap::Maybe;
}

}  // namespace ocltensor::detail
