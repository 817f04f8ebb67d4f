// Devices: one per usable OpenCL device, in the order that OCLTENSOR_DEVICES gives; the context,
// streams, memory and programs of each are made on first use and never torn down (drivers crash in
// exit handlers).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/driver/capabilities.h"
#include "runtime/driver/opencl.h"

namespace ocltensor::opencl {

class Generator;
class Memory;
class ProgramCache;
class Stream;

// What it owns is put together in runtime/assembly, above the rooms of its parts.
class Device {
 public:
  Device(int index, cl_platform_id platform, cl_device_id id, Capabilities caps);
  ~Device();
  int index() const { return index_; }
  cl_device_id id() const { return id_; }
  const Capabilities& caps() const { return caps_; }

  bool is_open() const;  // whether its context exists

  // Created on first use; thread-safe.
  const cl::Device& handle();
  const cl::Context& context();
  cl_command_queue service_queue();  // for the runtime's own blocking work
  Memory& memory();
  ProgramCache& programs();
  Stream& default_stream();
  Generator& default_generator();

  Stream& create_stream();
  void destroy_stream(Stream& stream);
  std::shared_ptr<Stream> find_stream(uint64_t id);  // null if it no longer exists
  uint64_t enqueued(uint64_t id);  // commands of that stream; 0 if it no longer exists
  std::vector<std::shared_ptr<Stream>> streams();  // those that exist now
  // Of all streams; the first failure is raised when all have been served. `raises` as
  // Stream::synchronize() has it.
  void synchronize(bool raises = true);
  void submit_launches();
  // Without waiting for programs or proofs: whether nothing waits any more.
  bool try_submit_launches();
  void end_traces();
  void collect_traces();

 private:
  struct Parts;
  Parts& parts();

  const int index_;
  const cl_platform_id platform_;
  const cl_device_id id_;
  const Capabilities caps_;
  std::once_flag once_;
  std::unique_ptr<Parts> parts_;
  std::atomic<bool> open_{false};
};

// Enumerates platforms and devices once. Without a driver or a device the list is empty; `report`
// says why, and what was found or refused.
struct DeviceList {
  std::vector<std::unique_ptr<Device>> devices;
  std::string report;
};
const DeviceList& device_list();
// TB_E_UNAVAILABLE if there is no device at all, TB_E_INVALID if the index is out of range.
Device& device(int index);

}  // namespace ocltensor::opencl
