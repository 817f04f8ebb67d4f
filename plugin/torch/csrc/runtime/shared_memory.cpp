// Calls of the plugin's shared memory, and segments of other processes that storages keep.
#include "shared_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "allocator.h"
#include "stream.h"

namespace torch_ocl {
namespace {

tb_address address_of(const void* data) { return reinterpret_cast<tb_address>(data); }

const tb_interop_api& interop() {
  const tb_interop_api& table = *api().interop;
  TORCH_CHECK_NOT_IMPLEMENTED(table.struct_size > offsetof(tb_interop_api, copy_from_library),
                              "ocl: the plugin ", plugin_path(), " shares no memory: it is older");
  return table;
}

// What this process has of another one's memory.
class Segment {
 public:
  Segment(c10::DeviceIndex index, int descriptor, uint64_t bytes) {
    call_api("import of memory", interop().import_memory, handle_of(default_stream(index)),
             descriptor, bytes, &base_);
  }
  ~Segment() { call_api_noexcept("release of memory", interop().release_import, base_); }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  tb_address base() const { return base_; }

 private:
  tb_address base_ = 0;
};

struct Segments {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Segment>> by_key;
};
Segments& segments() {
  static auto& instance = *new Segments;  // leaked: storages are freed until the last thread ends
  return instance;
}

std::shared_ptr<Segment> segment_of(c10::DeviceIndex index, const SharedPart& part) {
  Segments& all = segments();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.by_key, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Segment>& known = all.by_key[part.key];
  std::shared_ptr<Segment> segment = known.lock();
  if (!segment) {
    segment = std::make_shared<Segment>(index, part.descriptor, part.segment_bytes);
    known = segment;
  }
  return segment;
}

// Another descriptor of the same file.
int copy_of(int descriptor) {
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  TORCH_CHECK(copy >= 0, "ocl: a descriptor cannot be copied: ", std::strerror(errno),
              "; raise `ulimit -n`, or send fewer tensors at a time");
  return copy;
}

struct Imported {
  std::shared_ptr<Segment> segment;
  c10::DeviceIndex index;
  int lifetime;
};

// The owner may use the memory again when the descriptor is closed, so the device is waited for.
void free_import(void* context) {
  const std::unique_ptr<Imported> imported(static_cast<Imported*>(context));
  if (is_in_bad_fork()) {
    new std::shared_ptr<Segment>(std::move(imported->segment));  // leaked: the parent's
  } else {
    call_api_noexcept("synchronize", api().device->synchronize, imported->index);
    imported->segment.reset();
  }
  close(imported->lifetime);
}

}  // namespace

tb_shared_memory shared_place(const void* data) {
  tb_shared_memory place{};
  place.struct_size = sizeof place;
  call_api("shared memory", interop().shared_place, address_of(data), &place);
  return place;
}

void* cuda_address(const void* data) noexcept {
  const tb_api* table = api_or_null();
  if (table == nullptr || data == nullptr ||
      table->interop->struct_size <= offsetof(tb_interop_api, shared_place))
    return nullptr;
  tb_shared_memory place{};
  place.struct_size = sizeof place;
  if (table->interop->shared_place(address_of(data), &place, nullptr) != TB_OK) return nullptr;
  return reinterpret_cast<void*>(place.address);  // NOLINT: of the device
}

int cuda_number(c10::DeviceIndex index) {
  const c10::DataPtr memory = allocate_on(index, 1);
  return shared_place(memory.get()).number;
}

void synchronize_cuda(c10::DeviceIndex index) {
  call_api("wait for CUDA", interop().shared_synchronize, checked_index(index));
}

int export_memory(const void* data) {
  int32_t descriptor = -1;
  call_api("export of memory", interop().export_memory, address_of(data), &descriptor);
  return descriptor;
}

int lifetime_of(const c10::Storage& storage) {
  const c10::DataPtr& memory = storage.data_ptr();
  if (memory.get_deleter() != &free_import) return -1;
  return copy_of(static_cast<const Imported*>(memory.get_context())->lifetime);
}

c10::Storage import_storage(c10::DeviceIndex index, const SharedPart& part) {
  index = checked_index(index);
  TORCH_CHECK(part.offset <= part.segment_bytes && part.bytes <= part.segment_bytes - part.offset,
              "ocl: ", part.bytes, " bytes at ", part.offset, " are not inside a segment of ",
              part.segment_bytes);
  auto imported =
      std::make_unique<Imported>(Imported{segment_of(index, part), index, copy_of(part.lifetime)});
  void* data = reinterpret_cast<void*>(imported->segment->base() + part.offset);  // NOLINT
  c10::DataPtr memory(data, imported.release(), &free_import, c10::Device(kOcl, index));
  return c10::Storage(c10::Storage::use_byte_size_t(), part.bytes, std::move(memory), nullptr,
                      false);
}

CudaImport::CudaImport(c10::DeviceIndex index, uint64_t address, uint64_t bytes)
    : index_(checked_index(index)) {
  call_api("import of CUDA's memory", interop().import_address, handle_of(current_stream(index_)),
           address, bytes, &address_, &is_own_);
}

CudaImport::~CudaImport() {
  if (is_in_bad_fork()) return;
  call_api_noexcept("synchronize", api().device->synchronize, index_);
  if (is_own_ == 0) call_api_noexcept("release of memory", interop().release_import, address_);
}

void copy_from_cuda(c10::DeviceIndex index, void* target, uint64_t address, uint64_t bytes) {
  index = checked_index(index);
  call_api("copy from CUDA", interop().copy_from_library, handle_of(current_stream(index)),
           address_of(target), address, bytes);
}

}  // namespace torch_ocl
