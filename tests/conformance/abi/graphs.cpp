// Checks of graphs: what is recorded does not run before a replay, what fails a recording, memory.
#include <algorithm>
#include <vector>

#include "../checks.h"

namespace ocltensor::conformance {
namespace {

constexpr uint64_t kBytes = 4096;

// A pool, and a stream that may record.
class Recorder {
 public:
  explicit Recorder(Checker& c) : c_(c), graphs_(*c.api().graph) {
    testing::must(c.api().stream->create, c.device(), 0, &stream);
  }
  ~Recorder() {
    c_.expect_status(TB_OK, "graph.destroy_pool", graphs_.destroy_pool, pool);
    c_.expect_status(TB_OK, "stream.destroy", c_.api().stream->destroy, stream);
  }
  Recorder(const Recorder&) = delete;
  // False if the backend has no graphs.
  bool make_pool() {
    ErrorBuffer error;
    const tb_status status = graphs_.create_pool(c_.device(), &pool, error.get());
    if (status == TB_UNSUPPORTED) {
      c_.expect(error.text()[0] != 0, "graph.create_pool: declined without a text");
      c_.decline("graphs");
      return false;
    }
    c_.expect(status == TB_OK, "graph.create_pool: status {}: {}", status, error.text());
    return status == TB_OK;
  }
  void begin() { testing::must(graphs_.begin, stream, pool, nullptr, 0u); }
  void fill(tb_address target, unsigned char value) {
    testing::must(c_.api().transfer->fill, stream, target, static_cast<const void*>(&value), 1u,
                  kBytes);
  }
  unsigned char first(tb_address source) {
    unsigned char value = 0;
    testing::must(c_.api().transfer->to_host, stream, static_cast<void*>(&value), source,
                  uint64_t{1}, 0u);
    return value;
  }

  tb_stream stream = nullptr;
  tb_graph_pool pool = nullptr;

 private:
  Checker& c_;
  const tb_graph_api& graphs_;
};

bool has_graphs(Checker& c) {
  if (c.api().struct_size > offsetof(tb_api, graph)) return true;
  c.decline("the tables end before graphs");
  return false;
}

void replays(Checker& c) {
  if (!has_graphs(c)) return;
  const auto& g = *c.api().graph;
  Recorder r(c);
  if (!r.make_pool()) return;
  const testing::DeviceMemory a(c.backend(), kBytes), b(c.backend(), kBytes);
  r.fill(a.address(), 1);
  r.fill(b.address(), 2);
  r.begin();
  int32_t recording = 0;
  c.expect_status(TB_OK, "graph.is_recording", g.is_recording, r.stream, &recording);
  c.expect(recording == 1, "a stream that records says that it does not");
  testing::must(c.api().transfer->on_device, r.stream, b.address(), r.stream, a.address(), kBytes);
  r.fill(a.address(), 3);
  tb_graph graph = nullptr;
  testing::must(g.end, r.stream, &graph);
  c.expect_status(TB_OK, "graph.is_recording", g.is_recording, r.stream, &recording);
  c.expect(recording == 0, "a stream records after the end");
  c.expect(r.first(a.address()) == 1 && r.first(b.address()) == 2, "recorded work was executed");
  c.expect_status(TB_OK, "graph.replay", g.replay, graph, r.stream);
  c.expect(r.first(b.address()) == 1 && r.first(a.address()) == 3, "a replay did other work");
  r.fill(a.address(), 9);
  testing::must(c.api().stream->synchronize, r.stream);
  testing::must(g.replay, graph, c.stream());
  testing::must(c.api().stream->synchronize, c.stream());
  c.expect(r.first(b.address()) == 9, "a replay on another stream did other work");
  tb_graph_info info{};
  info.struct_size = sizeof info;
  c.expect_status(TB_OK, "graph.info", g.info, graph, &info);
  c.expect(
      info.launches + info.transfers >= 2 && info.random_blocks == 0 && info.device == c.device(),
      "graph.info says {} launches, {} transfers", info.launches, info.transfers);
  info.struct_size = TB_GRAPH_INFO_SIZE_V1 - 4;
  c.expect_status(TB_E_INVALID, "graph.info into a structure that is too small", g.info, graph,
                  &info);
  testing::must(g.destroy, graph);
}

void failures(Checker& c) {
  if (!has_graphs(c)) return;
  const auto& g = *c.api().graph;
  Recorder r(c);
  if (!r.make_pool()) return;
  const testing::DeviceMemory a(c.backend(), kBytes);
  tb_graph graph = nullptr;
  c.expect_status(TB_E_STATE, "graph.end without a recording", g.end, r.stream, &graph);
  c.expect_status(TB_E_INVALID, "graph.begin without a pool", g.begin, r.stream,
                  tb_graph_pool{nullptr}, static_cast<const tb_generator*>(nullptr), 0u);
  unsigned char value = 7;
  const auto fails = [&](const char* what, auto function, auto... arguments) {
    r.begin();
    c.expect_status(TB_E_STATE, what, function, arguments...);
    graph = reinterpret_cast<tb_graph>(&value);
    c.expect_status(TB_E_STATE, "graph.end of a failed recording", g.end, r.stream, &graph);
    c.expect(graph == nullptr, "a failed recording gives a graph ({})", what);
  };
  fails("to_host while recording", c.api().transfer->to_host, r.stream, static_cast<void*>(&value),
        a.address(), uint64_t{1}, 0u);
  fails("to_device while recording", c.api().transfer->to_device, r.stream, a.address(),
        static_cast<const void*>(&value), uint64_t{1}, 0u);
  fails("synchronize while recording", c.api().stream->synchronize, r.stream);
  r.begin();
  c.expect_status(TB_E_STATE, "graph.begin while recording", g.begin, r.stream, r.pool,
                  static_cast<const tb_generator*>(nullptr), 0u);
  c.expect_status(TB_OK, "graph.end without a result", g.end, r.stream,
                  static_cast<tb_graph*>(nullptr));
  c.expect_status(TB_OK, "graph.destroy of NULL", g.destroy, tb_graph{nullptr});
  c.expect_status(TB_OK, "graph.destroy_pool of NULL", g.destroy_pool, tb_graph_pool{nullptr});
  r.fill(a.address(), 4);
  c.expect(r.first(a.address()) == 4, "a stream does not work after failed recordings");
}

// What is freed while recording serves the recording alone, until the pool is gone.
void memory(Checker& c) {
  if (!has_graphs(c)) return;
  const auto& g = *c.api().graph;
  const auto& m = *c.api().memory;
  Recorder r(c);
  if (!r.make_pool()) return;
  r.begin();
  tb_address one = 0, two = 0;
  testing::must(m.allocate, c.device(), kBytes, r.stream, &one);
  r.fill(one, 5);
  testing::must(m.free, one, r.stream);
  testing::must(m.allocate, c.device(), kBytes, r.stream, &two);
  r.fill(two, 6);
  tb_graph graph = nullptr;
  testing::must(g.end, r.stream, &graph);
  std::vector<tb_address> others(64);
  for (tb_address& other : others) {
    testing::must(m.allocate, c.device(), kBytes, r.stream, &other);
    c.expect(other != one && other != two, "memory of a graph was given to other work");
    r.fill(other, 8);
  }
  testing::must(g.replay, graph, r.stream);
  c.expect(r.first(two) == 6, "a replay lost its result");
  c.expect(std::ranges::all_of(others, [&](tb_address a) { return r.first(a) == 8; }),
           "a replay wrote into other memory");
  for (const tb_address other : others) testing::must(m.free, other, r.stream);
  testing::must(g.destroy, graph);
  c.expect(r.first(two) == 6, "a result did not outlive its graph");
  testing::must(m.free, two, r.stream);
}

constexpr AbiCheck kList[] = {{"graph replays", replays, rule::kGraph},
                              {"graph failures", failures, rule::kGraph},
                              {"graph memory", memory, rule::kGraph}};

}  // namespace

const std::span<const AbiCheck> kGraphChecks = kList;

}  // namespace ocltensor::conformance
