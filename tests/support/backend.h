// A backend under test or as reference: its function tables, one device, one stream, one generator.
#pragma once

#include <string>
#include <unordered_map>

#include "ocltensor/error.h"
#include "tensor_backend/plugin.h"

namespace ocltensor::testing {

class Backend {
 public:
  // `api` lives as long as the process. Throws where the device has no stream.
  Backend(std::string name, const tb_api* api, int32_t device);
  Backend(const Backend&) = delete;
  ~Backend();

  const std::string& name() const { return name_; }
  const tb_api& api() const { return *api_; }
  int32_t device() const { return device_; }
  tb_stream stream() const { return stream_; }
  tb_generator generator() const { return generator_; }  // nullptr: the backend has none
  tb_op find(const std::string& op) const;  // nullptr if the backend does not declare it
  // Seeds the explicit and the default generator.
  void seed(uint64_t value) const;

 private:
  std::string name_;
  const tb_api* api_;
  int32_t device_;
  tb_stream stream_ = nullptr;
  tb_generator generator_ = nullptr;
  mutable std::unordered_map<std::string, tb_op> ops_;
};

// Device memory for the life of a scope.
class DeviceMemory {
 public:
  DeviceMemory(const Backend& backend, uint64_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory();
  tb_address address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  void upload(const void* data) const;
  void download(void* data) const;

 private:
  const Backend* backend_;
  tb_address address_ = 0;
  uint64_t bytes_;
};

// The CPU backend, linked in: what results are compared with.
const Backend& reference_backend();

// Throws the Error of a failed call. `call` takes the tb_error as its last argument.
template <typename Function, typename... Arguments>
void must(Function function, Arguments... arguments) {
  ErrorBuffer error;
  error.raise_if_failed(function(arguments..., error.get()));
}

}  // namespace ocltensor::testing
