// The host's view of a call's tensors while an engine works on them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <functional>
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
  struct Streams {
    c10::Stream stream;  // of copies to the host; the call ends when it has passed them
    c10::Stream back;    // of results while copies to the host still run
  };
  // What is done with memory of the host: spans that are read, spans that are written.
  using Work = std::function<void(const Spans& read, const Spans& written)>;

  // Waits until the stream has passed all that it has, and for copies from it; with `later` neither
  // is copied nor waited for before in_chunks() asks for it. Without streams all is on the CPU.
  Staging(const std::vector<Use>& uses, std::optional<Streams> streams, bool copies, bool later);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  // Without give_back(), as after an error, results stay where they are.
  ~Staging();

  // In the order of the uses.
  const Spans& spans() const { return spans_; }
  // Does the work chunk by chunk, while the next chunks come and results go back. All spans are as
  // long as one another, and whole tensors or parts of them; chunks follow from their number and
  // length and from `ranks` alone, since ranks that copy and ranks that do not must call alike.
  void in_chunks(const Spans& read, const Spans& written, int ranks, const Work& work);
  // Enqueues what brings the results to the device, but for those of in_chunks().
  void give_back();

 private:
  struct Mapping {
    uint64_t address;
    void* memory;
  };
  std::byte* map(const at::Tensor& tensor);
  // The use that the memory belongs to; -1 where the engine works on the tensor itself.
  int64_t copied(const std::byte* memory) const;
  void to_host(Span part);
  void to_device(Span part, c10::Stream stream);
  void unmap() noexcept;

  const std::vector<Use>& uses_;
  const std::optional<Streams> streams_;
  const bool later_;
  Spans spans_;
  std::vector<Mapping> mappings_;
  std::vector<c10::DataPtr> copies_;  // in the order of the uses; empty where none is needed
};

// The tensors' memory by CUDA's addresses. Throws where they have none.
Spans device_spans(const std::vector<Use>& uses);

// Whether the device of this index shares its memory with the host.
bool shares_memory(c10::DeviceIndex index);

}  // namespace torch_ocl::distributed
