// A command of a stream before it is submitted to the driver: a launch, a transfer that the caller
// does not wait for, or a wait for work of another context.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/driver/opencl.h"
#include "runtime/observe/profiler.h"
#include "runtime/queue/kernel_arguments.h"

namespace ocltensor::opencl {

class Kernel;

struct Range {
  uint32_t rank;
  std::array<size_t, 3> global;
  std::array<size_t, 3> local;  // all 0: the driver chooses
};

// The buffers and `memory` must remain until the stream has passed the command.
struct Transfer {
  enum class Kind : uint8_t { Write, Copy, Fill } kind = Kind::Write;
  cl_mem target = nullptr;
  uint64_t target_offset = 0, bytes = 0;
  const void* memory = nullptr;  // source of a write
  cl_mem source = nullptr;       // of a copy
  uint64_t source_offset = 0;
  std::array<unsigned char, 16> pattern{};  // of a fill
  uint32_t pattern_bytes = 0;
};

// What messages and traces call a transfer.
struct TransferTexts {
  const char* call;
  const char* category;
  const char* name;
};
inline constexpr std::array<TransferTexts, 3> kTransferTexts{
    {{"clEnqueueWriteBuffer", "copy", "copy to device"},
     {"clEnqueueCopyBuffer", "copy", "copy on device"},
     {"clEnqueueFillBuffer", "fill", "fill"}}};
constexpr const TransferTexts& texts_of(Transfer::Kind kind) {
  return kTransferTexts[static_cast<size_t>(kind)];
}

struct Command {
  Kernel* kernel;  // null: the command is the wait, if there is one, else the transfer
  Range range;
  ArgumentChanges changes;  // since the kernel's last launch
  Transfer transfer;
  std::shared_ptr<cl::Event> awaited;        // of another context, whose queues know nothing of it
  std::optional<profiler::DeviceWork> work;  // while the profiler is on
  bool waits = false;  // for its kernel, which was pending when it was made, or for an event
};

}  // namespace ocltensor::opencl
