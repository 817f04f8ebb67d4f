// Graphs at the C boundary.
#include <vector>

#include "entry.h"
#include "handles.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/graphs/graph.h"

namespace ocltensor::opencl {
namespace {

// The host's reference to a pool; each graph has one of its own.
using PoolReference = std::shared_ptr<GraphPool>;

const PoolReference& pool_of(tb_graph_pool handle) {
  check(handle != nullptr, "'pool' must not be NULL");
  return *reinterpret_cast<const PoolReference*>(handle);
}
Graph& graph_of(tb_graph handle) {
  check(handle != nullptr, "'graph' must not be NULL");
  return *reinterpret_cast<Graph*>(handle);
}

tb_status create_pool(int32_t index, tb_graph_pool* pool, tb_error* error) {
  return guarded(error, [&] {
    required(pool, "pool") = nullptr;
    *pool = reinterpret_cast<tb_graph_pool>(
        new PoolReference(std::make_shared<GraphPool>(device(index))));
  });
}
tb_status destroy_pool(tb_graph_pool pool, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    if (pool != nullptr) delete &pool_of(pool);
  });
}
tb_status begin(tb_stream stream, tb_graph_pool pool, const tb_generator* generators,
                uint32_t generator_count, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    std::vector<Generator*> list;
    for (uint32_t i = 0; i < generator_count; ++i)
      list.push_back(&generator_of((&required(generators, "generators"))[i]));
    begin_graph(stream_of(stream), pool_of(pool), std::move(list));
  });
}
tb_status end(tb_stream stream, tb_graph* graph, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    if (graph != nullptr) *graph = nullptr;
    std::unique_ptr<Graph> made = end_graph(stream_of(stream), graph != nullptr);
    if (graph != nullptr) *graph = reinterpret_cast<tb_graph>(made.release());
  });
}
tb_status is_recording(tb_stream stream, int32_t* recording, tb_error* error) {
  return guarded(
      error, [&] { required(recording, "recording") = stream_of(stream).is_recording() ? 1 : 0; });
}
tb_status replay(tb_graph graph, tb_stream stream, tb_error* error) {
  return guarded(error, [&] {
    Graph& g = graph_of(graph);
    Stream& s = stream_of(stream);
    check(&g.pool->device() == &s.device(), "the graph belongs to device {}, the stream to {}",
          g.pool->device().index(), s.device().index());
    g.replay(s);
  });
}
tb_status info(tb_graph graph, tb_graph_info* info, tb_error* error) {
  return guarded(error, [&] {
    const Graph& g = graph_of(graph);
    uint64_t blocks = 0;
    for (const auto& [generator, taken] : g.generators) blocks += taken;
    fill_struct(info, {0, g.pool->device().index(), g.launches, g.transfers, blocks},
                TB_GRAPH_INFO_SIZE_V1);
  });
}
tb_status destroy(tb_graph graph, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    if (graph != nullptr) delete &graph_of(graph);
  });
}

}  // namespace

const tb_graph_api kGraphApi{
    .struct_size = sizeof(tb_graph_api),
    .create_pool = create_pool,
    .destroy_pool = destroy_pool,
    .begin = begin,
    .end = end,
    .is_recording = is_recording,
    .replay = replay,
    .info = info,
    .destroy = destroy,
};

}  // namespace ocltensor::opencl
