// Graphs: handles over the backend's objects.
#include "ocltensor/graph.h"

#include <cstddef>
#include <vector>

#include "base/log.h"
#include "host/core/backend.h"

namespace ocltensor {
namespace {

const tb_graph_api& graphs(Device device) {
  const tb_api& api = *backend(device).api;
  if (api.struct_size <= offsetof(tb_api, graph))
    unsupported(TB_REASON_NONE, "the backend of {} is older than graphs", device.text());
  return *api.graph;
}

void log_failure(const char* what, Device device, tb_status status, const ErrorBuffer& error) {
  if (status < 0) logging::error("graph", "{} of {} failed: {}", what, device.text(), error.text());
}

}  // namespace

struct GraphPool::Impl {
  Device device;
  tb_graph_pool handle = nullptr;
  explicit Impl(Device d) : device(d) {
    invoke_api("memory of a graph", graphs(d).create_pool, static_cast<int32_t>(d.index()),
               &handle);
  }
  Impl(const Impl&) = delete;
  ~Impl() {
    ErrorBuffer error;
    log_failure("destroying a graph's pool", device,
                graphs(device).destroy_pool(handle, error.get()), error);
  }
};

GraphPool::GraphPool(Device device) : impl_(std::make_shared<const Impl>(device)) {}
Device GraphPool::device() const { return impl_->device; }
tb_graph_pool GraphPool::handle() const { return impl_->handle; }

struct Graph::Impl {
  Device device;
  tb_graph handle = nullptr;
  explicit Impl(Device d) : device(d) {}
  Impl(const Impl&) = delete;
  ~Impl() {
    ErrorBuffer error;
    log_failure("destroying a graph", device, graphs(device).destroy(handle, error.get()), error);
  }
};

Graph Graph::record(const GraphPool& pool, const std::function<void()>& body,
                    std::span<const Generator> generators) {
  const Device device = pool.device();
  const tb_graph_api& api = graphs(device);
  std::vector<tb_generator> handles;
  for (const Generator& generator : generators) handles.push_back(generator.handle());
  const auto made = std::make_shared<Impl>(device);
  const Stream stream = Stream::create(device);
  const StreamGuard guard(stream);
  invoke_api("begin a graph", api.begin, stream.handle(), pool.handle(), handles.data(),
             static_cast<uint32_t>(handles.size()));
  try {
    body();
  } catch (...) {
    ErrorBuffer error;
    log_failure("ending a graph", device, api.end(stream.handle(), nullptr, error.get()), error);
    throw;
  }
  invoke_api("end a graph", api.end, stream.handle(), &made->handle);
  Graph graph;
  graph.impl_ = made;
  return graph;
}

Graph Graph::record(Device device, const std::function<void()>& body) {
  return record(GraphPool(device), body);
}

void Graph::replay() const { replay(current_stream(impl_->device)); }

void Graph::replay(const Stream& stream) const {
  check(stream.device().backend() == impl_->device.backend(), "a graph of {} cannot run on {}",
        impl_->device.text(), stream.device().text());
  invoke_api("replay a graph", graphs(impl_->device).replay, handle(), stream.handle());
}

tb_graph_info Graph::info() const {
  tb_graph_info info{};
  info.struct_size = sizeof info;
  invoke_api("a graph", graphs(impl_->device).info, handle(), &info);
  return info;
}

tb_graph Graph::handle() const { return impl_->handle; }

}  // namespace ocltensor
