// Mapping where memory is shared, copying where it is not.
#include "staging.h"

#include <ATen/core/CachingHostAllocator.h>

#include "runtime/allocator.h"
#include "runtime/shared_memory.h"
#include "runtime/stream.h"

namespace torch_ocl::distributed {
namespace {

tb_address address_of(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
}

}  // namespace

bool shares_memory(c10::DeviceIndex index) {
  tb_device_properties properties{};
  properties.struct_size = sizeof properties;
  call_api("device properties", api().device->properties, index, &properties);
  return (properties.features & TB_FEATURE_UNIFIED_MEMORY) != 0;
}

Spans device_spans(const std::vector<Use>& uses) {
  Spans spans;
  for (const Use& use : uses) {
    const size_t bytes = use.tensor.nbytes();
    std::byte* data = nullptr;
    if (bytes != 0)
      data = reinterpret_cast<std::byte*>(shared_place(use.tensor.const_data_ptr()).address);
    spans.push_back({data, bytes});
  }
  return spans;
}

Staging::Staging(const std::vector<Use>& uses, std::optional<c10::Stream> stream, bool copies)
    : uses_(uses), stream_(stream) {
  try {
    bool waits = false;
    for (const Use& use : uses) {
      const size_t bytes = use.tensor.nbytes();
      std::byte* data = nullptr;
      if (bytes != 0 && use.tensor.device().type() != kOcl) {
        data = static_cast<std::byte*>(const_cast<void*>(use.tensor.const_data_ptr()));
      } else if (bytes != 0) {
        data = copies ? copy(use) : map(use.tensor);
        waits = waits || copies;
      }
      spans_.push_back({data, bytes});
    }
    if (waits) call_api("synchronize", api().stream->synchronize, handle_of(*stream_));
  } catch (...) {
    unmap();
    throw;
  }
}

Staging::~Staging() { unmap(); }

std::byte* Staging::map(const at::Tensor& tensor) {
  void* memory = nullptr;
  const tb_address address = address_of(tensor);
  call_api("map memory", api().memory->map, address, static_cast<uint64_t>(tensor.nbytes()),
           handle_of(*stream_), &memory);
  mappings_.push_back({address, memory});
  record_use(tensor.storage().data_ptr(), *stream_);
  return static_cast<std::byte*>(memory);
}

std::byte* Staging::copy(const Use& use) {
  copies_.push_back(pinned_allocator()->allocate(use.tensor.nbytes()));
  void* memory = copies_.back().get();
  if (use.reads)
    call_api("copy to the host", api().transfer->to_host, handle_of(*stream_), memory,
             address_of(use.tensor), static_cast<uint64_t>(use.tensor.nbytes()),
             uint32_t{TB_COPY_ASYNC});
  return static_cast<std::byte*>(memory);
}

void Staging::unmap() noexcept {
  for (const Mapping& mapping : mappings_)
    call_api_noexcept("unmap memory", api().memory->unmap, mapping.address, mapping.memory,
                      handle_of(*stream_));
  mappings_.clear();
}

void Staging::give_back() {
  unmap();
  if (copies_.empty()) return;
  auto memory = copies_.begin();
  for (size_t k = 0; k < uses_.size(); ++k) {
    const at::Tensor& tensor = uses_[k].tensor;
    if (spans_[k].bytes == 0 || tensor.device().type() != kOcl) continue;
    if (uses_[k].writes) {
      call_api("copy to ocl", api().transfer->to_device, handle_of(*stream_), address_of(tensor),
               memory->get(), static_cast<uint64_t>(spans_[k].bytes), uint32_t{TB_COPY_ASYNC});
      at::getHostAllocator(kOcl)->record_event(memory->get(), memory->get_context(), *stream_);
      record_use(tensor.storage().data_ptr(), *stream_);
    }
    ++memory;
  }
}

}  // namespace torch_ocl::distributed
