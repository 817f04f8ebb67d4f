// Backend and device memory for tests.
#include "backend.h"

#include <utility>

#include "host/cpu/backend.h"

namespace ocltensor::testing {

Backend::Backend(std::string name, const tb_api* api, int32_t device)
    : name_(std::move(name)), api_(api), device_(device) {
  must(api->stream->default_stream, device, &stream_);
  ErrorBuffer error;
  const tb_status status = api->generator->create(device, uint64_t{1}, &generator_, error.get());
  if (status == TB_UNSUPPORTED)
    generator_ = nullptr;  // a backend need not have random numbers
  else
    error.raise_if_failed(status);
}

Backend::~Backend() {
  if (generator_ != nullptr) api_->generator->destroy(generator_, nullptr);
}

tb_op Backend::find(const std::string& op) const {
  const auto it = ops_.find(op);
  if (it != ops_.end()) return it->second;
  tb_op found = nullptr;
  if (api_->operators->find(op.c_str(), &found, nullptr) != TB_OK) found = nullptr;
  return ops_[op] = found;
}

void Backend::seed(uint64_t value) const {
  if (generator_ == nullptr) return;
  tb_generator standard = nullptr;
  must(api_->generator->default_generator, device_, &standard);
  must(api_->generator->set_seed, standard, value);
  must(api_->generator->set_seed, generator_, value);
}

DeviceMemory::DeviceMemory(const Backend& backend, uint64_t bytes)
    : backend_(&backend), bytes_(bytes) {
  must(backend.api().memory->allocate, backend.device(), bytes, backend.stream(), &address_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : backend_(other.backend_), address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}

DeviceMemory::~DeviceMemory() {
  if (address_ != 0) backend_->api().memory->free(address_, backend_->stream(), nullptr);
}

void DeviceMemory::upload(const void* data) const {
  must(backend_->api().transfer->to_device, backend_->stream(), address_, data, bytes_, 0u);
}

void DeviceMemory::download(void* data) const {
  must(backend_->api().transfer->to_host, backend_->stream(), data, address_, bytes_, 0u);
}

const Backend& reference_backend() {
  static const Backend& backend = *new Backend("cpu", cpu_api(), 0);
  return backend;
}

}  // namespace ocltensor::testing
