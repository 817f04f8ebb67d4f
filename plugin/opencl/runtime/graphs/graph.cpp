// Pools of graphs, the beginning and end of recordings, and the random numbers of replays.
#include "graph.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <random>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/device/generator.h"
#include "runtime/driver/process.h"
#include "runtime/graphs/graph_recording.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/command_queue.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {
namespace {

constexpr HostUse kReplaying{"replaying another graph"};

uint64_t new_marker() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

GraphPool::GraphPool(Device& device)
    : device_(device), id_(device.memory().pool().open_private()) {}

GraphPool::~GraphPool() {
  try {
    device_.memory().pool().close_private(id_);
  } catch (const std::exception&) {  // in a forked child, or no memory for the list of blocks
  }
}

// A driver keeps kernels and buffers for the commands that it has; of writes it reads the source
// later.
Graph::~Graph() {
  try {
    wait_for_last();
  } catch (const std::exception&) {  // in a forked child, or the device is lost: nothing runs
  }
}

bool Graph::reads_host() const {
  return std::ranges::any_of(commands, [](const GraphCommand& c) {
    return c.kernel() == nullptr && c.transfer.kind == Transfer::Kind::Write;
  });
}

void Graph::wait_for_writes() {
  if (std::ranges::any_of(patches, [](const GraphPatch& p) { return p.kernel == nullptr; }))
    wait_for_last();
}

// By an event: rusticl's clFinish does not wait for what has been flushed before.
void Graph::wait_for_last() {
  if (done_() == nullptr) return;
  check_process();
  const cl::Event done = std::move(done_);
  check_cl(done.wait(), "clWaitForEvents (the last replay of a graph)");
}

cl_int Graph::draw() {
  std::vector<Generator::State> states;
  for (const auto& [generator, taken] : generators)
    states.push_back(taken == 0 ? generator->get() : generator->advance(taken));
  for (GraphPatch& patch : patches) {
    for (const GraphDraw& draw : patch.draws) {
      const Generator::State now{states[draw.generator].seed,
                                 states[draw.generator].offset + draw.offset};
      std::memcpy(patch.bytes + draw.at, &now, sizeof now);
    }
    if (patch.kernel == nullptr) continue;
    if (const cl_int code =
            cl().clSetKernelArg(patch.kernel, patch.index, patch.count, patch.bytes);
        code != CL_SUCCESS)
      return code;
  }
  return CL_SUCCESS;
}

void Graph::replay(Stream& stream) {
  stream.check(kReplaying);
  if (stream.rehearsal().has_stopped()) return;
  wait_for_writes();
  enqueue_all(stream);
  if (reads_host()) done_ = stream.marker(false);
}

void Graph::enqueue_all(Stream& stream) {
  const ReadyQueue queue = stream.use(kReplaying);
  const std::lock_guard lock(mutex_);
  queue->check(draw(), "clSetKernelArg (random numbers of a graph)");
  std::string call;
  for (const GraphCommand& command : commands) {
    queue->progress().count();
    cl_int code = CL_SUCCESS;
    if (command.kernel() != nullptr) {
      code = queue->enqueue(command.kernel(), command.name, command.range,
                            queue->traced("kernel", command.name, 0), call);
    } else {
      const TransferTexts& texts = texts_of(command.transfer.kind);
      code =
          queue->enqueue(command.transfer,
                         queue->traced(texts.category, texts.name, command.transfer.bytes), call);
    }
    queue->check(code, call.c_str());
  }
  work_counters().launches.fetch_add(launches, std::memory_order_relaxed);
  if (reports) stream.expect(faults);
}

void begin_graph(Stream& stream, std::shared_ptr<GraphPool> pool,
                 std::vector<Generator*> generators) {
  Device& device = stream.device();
  check(&pool->device() == &device, "the pool belongs to device {}, the stream to {}",
        pool->device().index(), device.index());
  generators.insert(generators.begin(), &device.default_generator());
  std::ranges::sort(generators);
  generators.erase(std::unique(generators.begin(), generators.end()), generators.end());
  for (const Generator* generator : generators)
    check(&generator->device() == &device, "a generator belongs to device {}, the stream to {}",
          generator->device().index(), device.index());
  auto recording = std::make_unique<GraphRecording>(stream, std::move(pool));
  const runtime::StreamId memory = recording->pool();
  for (Generator* generator : generators) {  // those marked so far are unmarked by the destructor
    const uint64_t marker = new_marker();
    generator->mark(marker);
    recording->add_generator(*generator, marker);
  }
  Faults& faults = recording->faults();
  stream.begin_recording(std::move(recording), faults);
  device.memory().pool().divert(stream.id(), memory);
}

std::unique_ptr<Graph> end_graph(Stream& stream, bool wanted) {
  const std::unique_ptr<StreamObserver> recording = stream.end_recording();
  if (recording == nullptr) fail(TB_E_STATE, "stream {} does not record a graph", stream.id());
  stream.device().memory().pool().divert(stream.id(), runtime::kNoStream);
  return wanted ? static_cast<GraphRecording&>(*recording).finish() : nullptr;
}

}  // namespace ocltensor::opencl
