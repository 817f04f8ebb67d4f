// Mapping where memory is shared, copying where it is not.
#include "staging.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Event.h>

#include <algorithm>

#include "runtime/allocator.h"
#include "runtime/shared_memory.h"
#include "runtime/stream.h"

namespace torch_ocl::distributed {
namespace {

tb_address address_of(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
}

// Long enough for the full rate of a bus and of engines, short enough that the first and the last
// copy, beside which nothing else happens, take little; in rings each rank has a part of it.
size_t chunk_of(size_t spans, int ranks) {
  constexpr size_t kLeast = size_t{8} << 20, kOfRank = size_t{2} << 20, kAligned = 4096;
  const size_t all = std::max(kLeast, kOfRank * static_cast<size_t>(ranks));
  return std::max(kAligned, all / spans / kAligned * kAligned);
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

Staging::Staging(const std::vector<Use>& uses, std::optional<Streams> streams, bool copies,
                 bool later)
    : uses_(uses), streams_(streams), later_(later), copies_(uses.size()) {
  try {
    bool waits = false;
    for (size_t k = 0; k < uses.size(); ++k) {
      const at::Tensor& tensor = uses[k].tensor;
      const size_t bytes = tensor.nbytes();
      std::byte* data = nullptr;
      if (bytes != 0 && tensor.device().type() != kOcl) {
        data = static_cast<std::byte*>(const_cast<void*>(tensor.const_data_ptr()));
      } else if (bytes != 0 && copies) {
        copies_[k] = pinned_allocator()->allocate(bytes);
        data = static_cast<std::byte*>(copies_[k].get());
      } else if (bytes != 0) {
        data = map(tensor);
      }
      spans_.push_back({data, bytes});
      if (!copies_[k] || later) continue;
      if (uses[k].reads) to_host(spans_[k]);
      waits = true;
    }
    if (waits) call_api("synchronize", api().stream->synchronize, handle_of(streams_->stream));
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
           handle_of(streams_->stream), &memory);
  mappings_.push_back({address, memory});
  record_use(tensor.storage().data_ptr(), streams_->stream);
  return static_cast<std::byte*>(memory);
}

int64_t Staging::copied(const std::byte* memory) const {
  for (size_t k = 0; k < spans_.size(); ++k)
    if (copies_[k] && memory >= spans_[k].data && memory < spans_[k].data + spans_[k].bytes)
      return static_cast<int64_t>(k);
  return -1;
}

void Staging::to_host(Span part) {
  const int64_t use = copied(part.data);
  if (use < 0 || part.bytes == 0) return;
  const auto k = static_cast<size_t>(use);
  const auto offset = static_cast<uint64_t>(part.data - spans_[k].data);
  call_api("copy to the host", api().transfer->to_host, handle_of(streams_->stream), part.data,
           address_of(uses_[k].tensor) + offset, static_cast<uint64_t>(part.bytes),
           uint32_t{TB_COPY_ASYNC});
  at::getHostAllocator(kOcl)->record_event(copies_[k].get(), copies_[k].get_context(),
                                           streams_->stream);
}

void Staging::to_device(Span part, c10::Stream stream) {
  const int64_t use = copied(part.data);
  if (use < 0 || part.bytes == 0) return;
  const auto k = static_cast<size_t>(use);
  const auto offset = static_cast<uint64_t>(part.data - spans_[k].data);
  call_api("copy to ocl", api().transfer->to_device, handle_of(stream),
           address_of(uses_[k].tensor) + offset, part.data, static_cast<uint64_t>(part.bytes),
           uint32_t{TB_COPY_ASYNC});
  at::getHostAllocator(kOcl)->record_event(copies_[k].get(), copies_[k].get_context(), stream);
  record_use(uses_[k].tensor.storage().data_ptr(), stream);
}

void Staging::in_chunks(const Spans& read, const Spans& written, int ranks, const Work& work) {
  const size_t bytes = read.empty() ? written[0].bytes : read[0].bytes;
  const size_t chunk = chunk_of(std::max(read.size(), written.size()), ranks);
  const auto at = [&](const Spans& spans, size_t begin) {
    Spans cut;
    for (const Span& span : spans)
      cut.push_back({span.data + begin, std::min(chunk, bytes - begin)});
    return cut;
  };
  const bool copies = copied(read.empty() ? written[0].data : read[0].data) >= 0;
  const bool overlaps = copies && bytes > chunk;
  std::vector<c10::Event> arrived;
  if (copies)
    for (size_t begin = 0; begin < bytes; begin += chunk) {
      for (const Span& part : at(read, begin)) to_host(part);
      if (overlaps) arrived.emplace_back(kOcl).record(streams_->stream);
    }
  if (copies && !overlaps)
    call_api("synchronize", api().stream->synchronize, handle_of(streams_->stream));
  for (size_t begin = 0, k = 0; begin < bytes; begin += chunk, ++k) {
    if (overlaps) arrived[k].synchronize();
    const Spans results = at(written, begin);
    work(at(read, begin), results);
    for (const Span& part : results) to_device(part, overlaps ? streams_->back : streams_->stream);
  }
  if (!overlaps) return;
  c10::Event returned(kOcl);
  returned.record(streams_->back);
  returned.block(streams_->stream);
}

void Staging::unmap() noexcept {
  for (const Mapping& mapping : mappings_)
    call_api_noexcept("unmap memory", api().memory->unmap, mapping.address, mapping.memory,
                      handle_of(streams_->stream));
  mappings_.clear();
}

void Staging::give_back() {
  unmap();
  if (later_) return;
  for (size_t k = 0; k < uses_.size(); ++k)
    if (uses_[k].writes) to_device(spans_[k], streams_->stream);
}

}  // namespace torch_ocl::distributed
