// Graphs with their pools, which several graphs may share by name.
#include "graphs.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <map>
#include <mutex>

#include "generator.h"
#include "stream.h"

namespace torch_ocl {
namespace {

std::atomic<int> recordings{0};

const tb_graph_api& graphs() {
  TORCH_CHECK(api().struct_size > offsetof(tb_api, graph), "the plugin ", plugin_path(),
              " is too old for graphs: install the one of this adapter");
  return *api().graph;
}

// The pools that graphs use, with the number of those graphs.
class Pools {
 public:
  tb_graph_pool join(PoolId id, c10::DeviceIndex device) {
    const std::lock_guard lock(mutex_);
    auto it = pools_.find(id);
    if (it == pools_.end()) {
      tb_graph_pool made = nullptr;
      call_api("memory pool of a graph", graphs().create_pool, device, &made);
      it = pools_.emplace(id, Pool{made, device, 0}).first;
    }
    TORCH_CHECK(it->second.device == device,
                "the pool of this graph is of ocl:", static_cast<int>(it->second.device),
                ", the stream of ocl:", static_cast<int>(device));
    ++it->second.graphs;
    return it->second.handle;
  }
  void leave(PoolId id) noexcept {
    const std::lock_guard lock(mutex_);
    const auto it = pools_.find(id);
    if (it == pools_.end() || --it->second.graphs > 0) return;
    call_api_noexcept("memory pool of a graph", api().graph->destroy_pool, it->second.handle);
    pools_.erase(it);
  }

 private:
  struct Pool {
    tb_graph_pool handle;
    c10::DeviceIndex device;
    int graphs;
  };
  std::mutex mutex_;
  std::map<PoolId, Pool> pools_;
};

Pools& pools() {
  static auto& instance = *new Pools;  // leaked: Python may destroy graphs at the very end
  return instance;
}

}  // namespace

PoolId new_pool_id() {
  static std::atomic<unsigned long long> last{0};
  return {0, ++last};
}

bool may_record() noexcept { return recordings.load(std::memory_order_relaxed) != 0; }

bool is_recording() {
  if (!may_record()) return false;
  int32_t recording = 0;
  call_api("is_current_stream_capturing", graphs().is_recording, current_handle(current_device()),
           &recording);
  return recording != 0;
}

Graph::~Graph() {
  if (is_in_bad_fork()) return;
  discard();
  if (graph_ != nullptr) call_api_noexcept("destroy a graph", api().graph->destroy, graph_);
  leave_pool();
}

void Graph::leave_pool() noexcept {
  if (has_pool_) pools().leave(pool_);
  has_pool_ = false;
}

void Graph::register_generator(const at::Generator& generator) {
  TORCH_CHECK(!recording_, "register_generator_state: the recording has begun");
  (void)generator_handle(generator, generator.device().index());  // checks its type
  generators_.push_back(generator);
}

void Graph::capture_begin(PoolId pool) {
  TORCH_CHECK(!recording_, "capture_begin: this graph is being recorded already");
  TORCH_CHECK(graph_ == nullptr,
              "capture_begin: this graph holds recorded work; reset() it, or make a new one");
  const c10::Stream stream = current_stream(checked_index(-1));
  device_ = stream.device_index();
  (void)default_generator(device_);  // seeds it, which a recording would refuse
  std::vector<tb_generator> generators;
  for (const at::Generator& generator : generators_)
    generators.push_back(generator_handle(generator, device_));
  static std::atomic<unsigned long long> last{0};
  pool_ = pool == kNewPool ? PoolId{++last, 0} : pool;
  const tb_graph_pool memory = pools().join(pool_, device_);
  has_pool_ = true;
  try {
    call_api("capture_begin", graphs().begin, handle_of(stream), memory, generators.data(),
             static_cast<uint32_t>(generators.size()));
  } catch (...) {
    leave_pool();
    throw;
  }
  recording_ = stream;
  ++recordings;
}

void Graph::capture_end() {
  TORCH_CHECK(recording_, "capture_end: this graph is not being recorded");
  const c10::Stream stream = *recording_;
  TORCH_CHECK(current_stream(device_) == stream,
              "capture_end: the current stream is not the one on which the recording began");
  recording_.reset();
  --recordings;
  try {
    call_api("capture_end", graphs().end, handle_of(stream), &graph_);
  } catch (...) {
    leave_pool();
    throw;
  }
}

void Graph::discard() noexcept {
  if (!recording_) return;
  const c10::Stream stream = *recording_;
  recording_.reset();
  --recordings;
  call_api_noexcept("end a recording", api().graph->end, handle_of(stream), nullptr);
  leave_pool();
}

void Graph::replay() {
  TORCH_CHECK(graph_ != nullptr, "replay: this graph has no recorded work");
  call_api("replay", graphs().replay, graph_, current_handle(device_));
}

void Graph::reset() {
  TORCH_CHECK(!recording_, "reset: this graph is being recorded");
  if (graph_ != nullptr) call_api("reset", graphs().destroy, std::exchange(graph_, nullptr));
  leave_pool();
}

PoolId Graph::pool() const {
  TORCH_CHECK(has_pool_, "pool: nothing has been recorded");
  return pool_;
}

tb_graph_info Graph::info() const {
  tb_graph_info info{};
  info.struct_size = sizeof info;
  TORCH_CHECK(graph_ != nullptr, "this graph has no recorded work");
  call_api("graph", graphs().info, graph_, &info);
  return info;
}

}  // namespace torch_ocl
