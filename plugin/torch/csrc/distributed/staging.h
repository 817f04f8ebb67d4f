// The host's view of a call's tensors while an engine works on them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <optional>
#include <vector>

#include "engine.h"

namespace torch_ocl::distributed {

struct Use {
  at::Tensor tensor;  // contiguous, or dense
  bool reads, writes;
};

// Tensors of the CPU are seen as they are. Memory of a device that shares the host's is mapped, and
// nothing is copied; else tensors are copied to page-locked memory and back.
class Staging {
 public:
  // Waits until the stream has passed all that it has, and for copies from it.
  Staging(const std::vector<Use>& uses, std::optional<c10::Stream> stream, bool copies);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  // Without give_back(), as after an error, results stay where they are.
  ~Staging();

  // In the order of the uses.
  const Spans& spans() const { return spans_; }
  // Enqueues what brings the results to the device.
  void give_back();

 private:
  struct Mapping {
    uint64_t address;
    void* memory;
  };
  std::byte* map(const at::Tensor& tensor);
  std::byte* copy(const Use& use);
  void unmap() noexcept;

  const std::vector<Use>& uses_;
  std::optional<c10::Stream> stream_;
  Spans spans_;
  std::vector<Mapping> mappings_;
  std::vector<c10::DataPtr> copies_;
};

// The tensors' memory by CUDA's addresses. Throws where they have none.
Spans device_spans(const std::vector<Use>& uses);

// Whether the device of this index shares its memory with the host.
bool shares_memory(c10::DeviceIndex index);

}  // namespace torch_ocl::distributed
