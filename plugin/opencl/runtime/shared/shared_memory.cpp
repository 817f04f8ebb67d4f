// The table of providers of shared memory.
#include "shared_memory.h"

#include "base/config.h"
#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/driver/capabilities.h"
#include "runtime/driver/clhpp.h"
#include "runtime/shared/cuda_memory.h"

namespace ocltensor::opencl {
namespace {

struct Row {
  const char* name;
  // Throws Error with the reason where the device cannot.
  std::unique_ptr<SharedMemory> (*make)(const Capabilities&, cl_device_id, cl_context);
};
constexpr Row kRows[] = {{"CUDA", make_cuda_memory}};

}  // namespace

std::unique_ptr<SharedMemory> make_shared_memory(const Capabilities& caps, cl_device_id device,
                                                 cl_context context, std::string& refusal) {
  refusal.clear();
  if (!config::get_bool(config::Knob::SharedMemory)) {
    refusal = fmt::format("{} is 0", config::name(config::Knob::SharedMemory));
    return nullptr;
  }
  if (config::get_bool(config::Knob::CaptureEnabled)) {
    refusal = fmt::format("captures know no shared memory ({} is 1)",
                          config::name(config::Knob::CaptureEnabled));
    return nullptr;
  }
  for (const Row& row : kRows) {
    try {
      std::unique_ptr<SharedMemory> made = row.make(caps, device, context);
      constexpr uint64_t kTrial = 1;
      const SharedSegment trial = made->create(kTrial);
      const cl::Buffer released(trial.buffer);
      made->release(trial);
      return made;
    } catch (const Error& error) {
      refusal += fmt::format("{}{}: {}", refusal.empty() ? "" : "; ", row.name, error.what());
    }
  }
  logging::debug("memory", "{}: memory is not shared: {}", caps.name, refusal);
  return nullptr;
}

}  // namespace ocltensor::opencl
