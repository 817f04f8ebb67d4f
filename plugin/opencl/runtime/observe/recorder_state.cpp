// Writes the buffers, launches and results of a capture.
#include "recorder_state.h"

#include <algorithm>
#include <cstring>

#include "ocltensor/error.h"

namespace ocltensor::opencl::recorder {
namespace {

constexpr uint64_t kChunk = uint64_t{4} << 20;  // bytes read from the device at a time

std::string device_text(const Functions& real, cl_device_id device, cl_device_info what) {
  char text[512] = "";
  real.clGetDeviceInfo(device, what, sizeof text - 1, text, nullptr);
  return text;
}

std::string platform_text(const Functions& real, cl_device_id device) {
  cl_platform_id platform = nullptr;
  real.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr);
  char text[512] = "";
  real.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text - 1, text, nullptr);
  return text;
}

bool overlap(const file::Result& tensor, uint64_t begin, uint64_t end, file::Span* span) {
  *span = file::span_of(tensor);
  const auto first = static_cast<int64_t>(tensor.offset);
  return first + span->low < static_cast<int64_t>(end) &&
         static_cast<int64_t>(begin) < first + span->high;
}

}  // namespace

State& state() {
  static State& s = *new State;  // leaked: streams may end after static objects
  return s;
}

BufferState& State::owner(BufferState& buffer) {
  if (buffer.parent == nullptr) return buffer;
  const auto found = buffers.find(buffer.parent);
  check(found != buffers.end(), "a part of a buffer outlived it");
  return found->second;
}

uint64_t State::queue_id(cl_command_queue queue) {
  const auto found = queues.find(queue);
  if (found == queues.end()) return 0;
  const cl_device_id device = found->second.device;
  if (std::ranges::find(devices, device) == devices.end()) {
    devices.push_back(device);
    writer->add(file::DeviceInfo{device_text(real, device, CL_DEVICE_NAME),
                                 platform_text(real, device),
                                 device_text(real, device, CL_DRIVER_VERSION),
                                 device_text(real, device, CL_DEVICE_OPENCL_C_VERSION)});
  }
  return found->second.id;
}

// Calls body(page, bytes) for each page.
template <typename Body>
void State::read_pages(cl_command_queue queue, cl_mem handle, uint64_t bytes, Body body) {
  std::vector<uint8_t> chunk(std::min(bytes, kChunk));
  for (uint64_t at = 0; at < bytes; at += kChunk) {
    const uint64_t count = std::min(kChunk, bytes - at);
    check_cl(real.clEnqueueReadBuffer(queue, handle, CL_TRUE, at, count, chunk.data(), 0, nullptr,
                                      nullptr),
             "clEnqueueReadBuffer (for the capture)");
    const std::span<const uint8_t> all(chunk.data(), count);
    for (uint64_t page = 0; page < count; page += file::kPageBytes)
      body((at + page) / file::kPageBytes,
           all.subspan(page, std::min(file::kPageBytes, count - page)));
  }
}

void State::write_contents(cl_command_queue queue, cl_mem handle, BufferState& buffer) {
  buffer.before.clear();
  read_pages(queue, handle, buffer.bytes, [&](uint64_t, std::span<const uint8_t> bytes) {
    append(buffer.before, writer->page(bytes));
  });
  constexpr size_t kRuns = size_t{1} << 16;  // a record stays small
  uint64_t page = 0;
  for (size_t at = 0; at < buffer.before.size(); at += kRuns) {
    const auto begin = buffer.before.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        begin + static_cast<std::ptrdiff_t>(std::min(kRuns, buffer.before.size() - at));
    writer->add(file::Contents{buffer.id, page, {begin, end}});
    std::for_each(begin, end, [&](const file::PageRun& run) { page += run.pages; });
  }
}

BufferState* State::touch(cl_command_queue queue, cl_mem handle) {
  const auto found = buffers.find(handle);
  if (found == buffers.end()) return nullptr;
  BufferState& buffer = found->second;
  if (buffer.written_in == capture) return &buffer;
  uint64_t parent = 0;
  if (buffer.parent != nullptr) {
    BufferState* whole = touch(queue, buffer.parent);
    check(whole != nullptr, "a part of a buffer outlived it");
    parent = whole->id;
  }
  writer->add(file::Buffer{buffer.id, buffer.bytes, parent, buffer.origin});
  if (buffer.parent == nullptr) write_contents(queue, handle, buffer);
  buffer.changed = false;
  buffer.written_in = capture;
  return &buffer;
}

// An argument of 8 bytes that equals a live buffer's handle is taken for that buffer, since the two
// cannot be told apart.
cl_mem State::buffer_argument(const ArgumentState& argument) {
  cl_mem handle = nullptr;
  if (!argument.set || argument.local || argument.bytes.size() != sizeof handle) return nullptr;
  std::memcpy(&handle, argument.bytes.data(), sizeof handle);
  return buffers.contains(handle) ? handle : nullptr;
}

void State::touch_arguments(cl_command_queue queue, cl_kernel kernel) {
  const auto found = kernels.find(kernel);
  check(found != kernels.end() && found->second.program != nullptr,
        "a kernel is launched that the capture does not know");
  for (const ArgumentState& argument : found->second.arguments)
    if (const cl_mem handle = buffer_argument(argument))
      owner(*touch(queue, handle)).changed = true;
}

void State::launch(cl_command_queue queue, cl_kernel kernel, cl_uint rank, const size_t* offset,
                   const size_t* global, const size_t* local) {
  KernelState& k = kernels.at(kernel);
  ProgramText& program = *k.program;
  if (program.written_in != capture)
    writer->add(file::Program{program.id, program.name, program.options, program.source});
  program.written_in = capture;
  if (k.written_in != capture) writer->add(file::Kernel{k.id, program.id, k.name});
  k.written_in = capture;
  file::Launch launch{k.id, queue_id(queue), operator_call(), rank, {}, {}, {}, {}};
  for (cl_uint i = 0; i < std::min<cl_uint>(rank, 3); ++i) {
    launch.offset[i] = offset == nullptr ? 0 : offset[i];
    launch.global[i] = global[i];
    launch.local[i] = local == nullptr ? 0 : local[i];
  }
  for (const ArgumentState& argument : k.arguments) {
    if (!argument.set) {
      launch.arguments.push_back({});
    } else if (argument.local) {
      launch.arguments.push_back({file::ArgumentKind::Local, argument.local_bytes, {}});
    } else if (const cl_mem handle = buffer_argument(argument)) {
      launch.arguments.push_back({file::ArgumentKind::Buffer, buffers.at(handle).id, {}});
    } else {
      launch.arguments.push_back({file::ArgumentKind::Bytes, 0, argument.bytes});
    }
  }
  writer->add(std::move(launch));
}

void State::forget_tensors(BufferState& buffer, uint64_t begin, uint64_t end) {
  file::Span span;
  std::erase_if(buffer.tensors,
                [&](const file::Result& tensor) { return overlap(tensor, begin, end, &span); });
}

// Keeps an older tensor as well as a newer one that overwrites a part of it, if their types agree.
void State::add_tensor(BufferState& buffer, file::Result tensor) {
  const file::Span mine = file::span_of(tensor);
  const auto begin = static_cast<uint64_t>(static_cast<int64_t>(tensor.offset) + mine.low);
  const uint64_t end = begin + static_cast<uint64_t>(mine.high - mine.low);
  int64_t bytes = size_of(static_cast<DType>(tensor.dtype));
  for (const int64_t size : tensor.sizes) bytes *= size;
  const bool dense = bytes == mine.high - mine.low;
  file::Span span;
  std::erase_if(buffer.tensors, [&](const file::Result& old) {
    if (!overlap(old, begin, end, &span)) return false;
    const int64_t low = static_cast<int64_t>(old.offset) + span.low;
    const int64_t high = static_cast<int64_t>(old.offset) + span.high;
    const bool inside = low >= static_cast<int64_t>(begin) && high <= static_cast<int64_t>(end);
    const bool same =
        old.offset == tensor.offset && old.sizes == tensor.sizes && old.strides == tensor.strides;
    return old.dtype != tensor.dtype || same || (dense && inside);
  });
  buffer.tensors.push_back(std::move(tensor));
}

void State::copied(const file::Copy& copy, BufferState& source, BufferState& target) {
  std::vector<file::Result> moved;
  file::Span span;
  for (const file::Result& tensor : source.tensors) {
    if (!overlap(tensor, copy.source_offset, copy.source_offset + copy.bytes, &span)) continue;
    const auto first = static_cast<int64_t>(tensor.offset);
    if (first + span.low < static_cast<int64_t>(copy.source_offset) ||
        first + span.high > static_cast<int64_t>(copy.source_offset + copy.bytes))
      continue;
    moved.push_back(tensor);
    moved.back().offset = tensor.offset - copy.source_offset + copy.target_offset;
    moved.back().buffer = target.id;
  }
  for (file::Result& tensor : moved) add_tensor(target, std::move(tensor));
}

// Commands of one queue may wait for another queue's: all are flushed before the first wait.
void State::finish_queues() {
  for (const auto& [queue, known] : queues) check_cl(real.clFlush(queue), "clFlush");
  for (const auto& [queue, known] : queues) check_cl(real.clFinish(queue), "clFinish");
}

void State::write_final(cl_command_queue queue, cl_mem handle, BufferState& buffer) {
  file::Final final{buffer.id, {}};
  size_t run = 0;      // index in `before`
  uint64_t begin = 0;  // its first page
  read_pages(queue, handle, buffer.bytes, [&](uint64_t page, std::span<const uint8_t> bytes) {
    while (page >= begin + buffer.before[run].pages) begin += buffer.before[run++].pages;
    const file::PageRun& known = buffer.before[run];
    const uint64_t old = known.first == 0 ? 0 : known.first + (page - begin);
    const uint64_t now = writer->page(bytes);
    if (now == old) return;
    std::vector<file::Change>& changes = final.changes;
    if (!changes.empty() && changes.back().page + changes.back().run.pages == page) {
      file::PageRun& last = changes.back().run;
      if (now == 0 ? last.first == 0 : last.first != 0 && last.first + last.pages == now) {
        ++last.pages;
        return;
      }
    }
    changes.push_back({page, {1, now}});
  });
  writer->add(std::move(final));
}

void State::write_results() {
  for (auto& [handle, buffer] : buffers) {
    if (buffer.written_in != capture || buffer.parent != nullptr || !buffer.changed) continue;
    const auto queue = std::ranges::find_if(
        queues, [context = buffer.context](const auto& q) { return q.second.context == context; });
    check(queue != queues.end(), "no queue is left to read the results with");
    write_final(queue->first, handle, buffer);
    for (file::Result& tensor : buffer.tensors) writer->add(std::move(tensor));
  }
  writer->add(file::Info{OCLTENSOR_VERSION});
}

}  // namespace ocltensor::opencl::recorder
