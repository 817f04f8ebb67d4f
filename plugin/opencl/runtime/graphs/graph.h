// Graphs: a stream's commands, recorded once, and replayed with little work of the host.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/driver/clhpp.h"
#include "runtime/pool/pool.h"
#include "runtime/queue/command.h"
#include "runtime/queue/faults.h"

namespace ocltensor::opencl {

class Device;
class Generator;
class Stream;

// The memory that graphs have for themselves: a private pool (runtime/pool/pool.h), closed when
// neither a host nor a graph uses it any more.
class GraphPool {
 public:
  explicit GraphPool(Device& device);
  ~GraphPool();
  GraphPool(const GraphPool&) = delete;
  Device& device() const { return device_; }
  runtime::StreamId id() const { return id_; }

 private:
  Device& device_;
  const runtime::StreamId id_;
};

// A launch with a kernel object of its own, whose arguments are set; or a transfer.
struct GraphCommand {
  cl::Kernel kernel;  // null: the command is the transfer
  const char* name;   // lives as long as the process
  Range range;
  Transfer transfer;
};

// Random numbers: where in some bytes a seed and, after it, an offset stand, and of which of the
// graph's generators.
struct GraphDraw {
  size_t at;
  size_t generator;
  uint64_t offset;  // counted from the state at the replay
};

// Bytes that a replay changes: an argument of a kernel, or the source of a write.
struct GraphPatch {
  cl_kernel kernel;  // null: the source of a write
  cl_uint index;
  unsigned char* bytes;
  size_t count;
  std::vector<GraphDraw> draws;
};

// What a recording has become.
class Graph {
 public:
  Graph() = default;
  ~Graph();  // replays that are enqueued still run
  Graph(const Graph&) = delete;

  // Enqueues all commands on a stream of the pool's device.
  void replay(Stream& stream);

  std::shared_ptr<GraphPool> pool;
  std::vector<GraphCommand> commands;
  std::vector<std::pair<Generator*, uint64_t>> generators;  // and counters that a replay takes
  std::vector<GraphPatch> patches;
  std::vector<std::unique_ptr<unsigned char[]>> bytes;  // of patches and writes
  std::vector<cl::Buffer> buffers;                      // kept alive
  std::shared_ptr<Faults> faults;
  bool reports = false;  // a kernel may write `faults`
  uint64_t launches = 0, transfers = 0;

 private:
  void enqueue_all(Stream& stream);
  // Takes the generators' next numbers, and puts them into what is to be enqueued. The result is
  // CL_SUCCESS, or the error of clSetKernelArg.
  cl_int draw();
  // Before draw(): waits for the last replay if its writes read what draw() changes.
  void wait_for_writes();
  void wait_for_last();
  // Whether writes of a replay read memory of this object, or pinned memory.
  bool reads_host() const;

  std::mutex mutex_;  // held while commands are enqueued, inside of the stream's locks
  cl::Event done_;    // reached when the last replay has run; null if nothing needs to know
};

// Begins the recording of a graph on the stream: TB_E_STATE if it records already, rehearses, or
// another graph is being recorded that uses the same generators. The device's default generator is
// always among them.
void begin_graph(Stream& stream, std::shared_ptr<GraphPool> pool,
                 std::vector<Generator*> generators);
// Ends it in any case. With `wanted` it gives the graph, or throws TB_E_STATE if the recording has
// failed; else null.
std::unique_ptr<Graph> end_graph(Stream& stream, bool wanted);

}  // namespace ocltensor::opencl
