// Keeps commands with all that they need, and finds the random numbers among their arguments.
#include "graph_recording.h"

#include <cstring>
#include <mutex>
#include <set>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/device/generator.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {
namespace {

// A copy of a kernel's name that lives as long as the process: the library of a custom kernel may
// be gone before the graph.
const char* lasting(const char* name) {
  static std::mutex& mutex = *new std::mutex;  // leaked, both: names outlive everything
  static auto& names = *new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  return names.emplace(name).first->c_str();
}

// A second object of the kernel, without arguments.
cl::Kernel another(const Kernel& kernel) {
  cl_program program = nullptr;
  check_cl(View<cl::Kernel>(kernel.get())->getInfo(CL_KERNEL_PROGRAM, &program), "clGetKernelInfo");
  cl_int code = CL_SUCCESS;
  cl::Kernel made(*View<cl::Program>(program), kernel.name(), &code);
  check_cl(code, "clCreateKernel");
  return made;
}

}  // namespace

GraphRecording::GraphRecording(Stream& stream, std::shared_ptr<GraphPool> pool)
    : device_(stream.device()), stream_(stream.id()), graph_(std::make_unique<Graph>()) {
  graph_->pool = std::move(pool);
  graph_->faults = std::make_shared<Faults>(device_);
}

GraphRecording::~GraphRecording() { unmark(); }

void GraphRecording::add_generator(Generator& generator, uint64_t marker) {
  marked_.push_back({&generator, marker});
}

void GraphRecording::unmark() {
  for (const Marked& marked : marked_)
    graph_->generators.emplace_back(marked.generator, marked.generator->unmark());
  marked_.clear();
}

void GraphRecording::keep_segment(cl_mem buffer) {
  for (const cl::Buffer& kept : graph_->buffers)
    if (kept() == buffer) return;
  if (!device_.memory().is_segment(buffer)) return;
  check_cl(add_reference(buffer), "a reference to a buffer");
  graph_->buffers.emplace_back(buffer);
}

// Arguments do not tell their types: 8 bytes that are a buffer's handle count as that buffer.
void GraphRecording::keep_if_segment(const void* value) {
  cl_mem buffer = nullptr;
  std::memcpy(&buffer, value, sizeof buffer);
  if (buffer != nullptr) keep_segment(buffer);
}

std::vector<GraphDraw> GraphRecording::find_draws(const unsigned char* bytes, size_t count) const {
  std::vector<GraphDraw> found;
  for (size_t at = 0; at + sizeof(Generator::State) <= count; at += 4) {
    Generator::State state;
    std::memcpy(&state, bytes + at, sizeof state);
    for (size_t i = 0; i < marked_.size(); ++i)
      if (state.seed == marked_[i].marker) found.push_back({at, i, state.offset});
  }
  return found;
}

unsigned char* GraphRecording::copy_of(const void* bytes, size_t count) {
  graph_->bytes.push_back(std::make_unique<unsigned char[]>(count));
  std::memcpy(graph_->bytes.back().get(), bytes, count);
  return graph_->bytes.back().get();
}

bool GraphRecording::take(Kernel& kernel, const Range& range) {
  cl::Kernel own = another(kernel);
  const cl_int code = kernel.changes().for_each([&](uint32_t index, size_t bytes,
                                                    const void* value) {
    if (value != nullptr && bytes == sizeof(cl_mem)) keep_if_segment(value);
    if (value != nullptr)
      if (auto draws = find_draws(static_cast<const unsigned char*>(value), bytes); !draws.empty())
        graph_->patches.push_back({own(), index, copy_of(value, bytes), bytes, std::move(draws)});
    return cl().clSetKernelArg(own(), index, bytes, value);
  });
  kernel.forget_arguments();  // of the next launch all are needed again
  check_cl(code, fmt::format("clSetKernelArg ({}, of a recorded graph)", kernel.name()).c_str());
  graph_->commands.push_back({std::move(own), lasting(kernel.name()), kernel.fitted(range), {}});
  ++graph_->launches;
  return true;
}

bool GraphRecording::take(const Transfer& given, bool source_stays) {
  Transfer transfer = given;
  keep_segment(transfer.target);
  if (transfer.kind == Transfer::Kind::Copy) keep_segment(transfer.source);
  if (transfer.kind == Transfer::Kind::Write && !source_stays) {
    const auto* source = static_cast<const unsigned char*>(transfer.memory);
    unsigned char* copy = copy_of(source, transfer.bytes);
    transfer.memory = copy;
    if (auto draws = find_draws(source, transfer.bytes); !draws.empty()) {
      graph_->patches.push_back({nullptr, 0, copy, transfer.bytes, std::move(draws)});
    } else {
      constants_.push_back({graph_->commands.size(), std::move(graph_->bytes.back())});
      graph_->bytes.pop_back();
    }
  }
  graph_->commands.push_back({cl::Kernel(), nullptr, {}, transfer});
  ++graph_->transfers;
  return true;
}

// Writes of constants become copies from one buffer: a driver may wait for writes from memory that
// is not page-locked, and nothing has to outlive a replay.
void GraphRecording::keep_constants_on_device() {
  if (constants_.empty()) return;
  constexpr uint64_t kApart = 64;
  std::vector<unsigned char> all;
  for (const Constant& constant : constants_) {
    Transfer& transfer = graph_->commands[constant.command].transfer;
    transfer.kind = Transfer::Kind::Copy;
    transfer.memory = nullptr;
    transfer.source_offset = all.size();
    all.insert(all.end(), constant.bytes.get(), constant.bytes.get() + transfer.bytes);
    all.resize((all.size() + kApart - 1) / kApart * kApart);
  }
  cl_int code = CL_SUCCESS;
  cl::Buffer buffer(device_.context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, all.size(),
                    all.data(), &code);
  check_cl(code, "clCreateBuffer (constants of a graph)");
  for (const Constant& constant : constants_)
    graph_->commands[constant.command].transfer.source = buffer();
  graph_->buffers.push_back(std::move(buffer));
}

void GraphRecording::check(const HostUse& use) {
  const std::string why = fmt::format(
      "{} is not possible while stream {} records a graph; do it before the recording or after a "
      "replay",
      use.name, stream_);
  if (failure_.empty()) failure_ = why;
  fail(TB_E_STATE, "{}", why);
}

void GraphRecording::name_failure(const std::string& operation) {
  if (failure_.empty() || is_named_) return;
  is_named_ = true;
  failure_ = operation + ": " + failure_;
}

std::unique_ptr<Graph> GraphRecording::finish() {
  if (!failure_.empty()) fail(TB_E_STATE, "the recording of a graph failed: {}", failure_);
  unmark();
  keep_constants_on_device();
  graph_->reports = graph_->faults->are_expected();
  return std::move(graph_);
}

}  // namespace ocltensor::opencl
