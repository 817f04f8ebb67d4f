// Graphs: work that is recorded once and replayed, over the plugin's graphs.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <optional>
#include <vector>

#include "plugin.h"

namespace torch_ocl {

using PoolId = c10::MempoolId_t;
inline constexpr PoolId kNewPool{0, 0};

// A name for a pool that graphs may share; its memory exists while a graph uses it.
TORCH_OCL_API PoolId new_pool_id();
// Whether this thread's current stream of the current device records a graph.
TORCH_OCL_API bool is_recording();
// Whether any stream may be recording: costs a load.
bool may_record() noexcept;

// One recording, on the stream that was current when it began. For one thread at a time.
class TORCH_OCL_API Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;

  // Another generator than the device's default one from which the recording may draw.
  void register_generator(const at::Generator& generator);
  void capture_begin(PoolId pool);
  void capture_end();
  // Ends a recording, if one is on, without a graph.
  void discard() noexcept;
  void replay();
  void reset();
  PoolId pool() const;
  tb_graph_info info() const;

 private:
  void leave_pool() noexcept;

  tb_graph graph_ = nullptr;
  std::optional<c10::Stream> recording_;  // the stream, until the recording ends
  c10::DeviceIndex device_ = -1;
  PoolId pool_ = kNewPool;
  bool has_pool_ = false;
  std::vector<at::Generator> generators_;
};

// Registers graphs of ocl for torch.accelerator.Graph, where this torch has it. To be called once,
// after the device type has its name.
void register_accelerator_graphs();

}  // namespace torch_ocl
