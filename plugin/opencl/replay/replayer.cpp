// Builds, enqueues and times the commands of a capture.
#include "replayer.h"

#include <algorithm>
#include <limits>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/program/program.h"

namespace ocltensor::replay {
namespace {

using opencl::check_cl;
using opencl::cl;
namespace file = capture_file;

constexpr uint64_t kChunk = uint64_t{4} << 20;
constexpr size_t kEvents = 1024;  // events whose times have not been read yet

}  // namespace

Replayer::Replayer(const file::Capture& capture, opencl::Device& device,
                   const Replacements& replacements, bool stamped, Progress progress)
    : capture_(capture), device_(device), progress_(std::move(progress)), stamped_(stamped) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue_properties properties = stamped ? CL_QUEUE_PROFILING_ENABLE : 0;
  queue_ = cl::CommandQueue(device.context(), device.handle(), properties, &code);
  check_cl(code, "clCreateCommandQueue");
  build(replacements);
}

Replayer::~Replayer() {
  if (queue_() != nullptr) cl().clFinish(queue_());
}

void Replayer::build(const Replacements& replacements) {
  size_t done = 0;
  for (const file::Program& program : capture_.programs()) {
    progress_("building", done++, capture_.programs().size());
    const auto other = replacements.find(program.id);
    const bool replaced = other != replacements.end();
    const std::string& source = replaced ? other->second.source : program.source;
    const std::string& options = replaced ? other->second.options : program.options;
    check(device_.caps().structs_by_value || source.find("Params p") == std::string::npos,
          "{} takes structures by value, which {} does not support: capture on this device, or "
          "replay "
          "on another one",
          program.name, device_.caps().platform);
    programs_[program.id] = device_.programs().build(source, options, program.name.c_str());
  }
  for (const auto& [id, kernel] : capture_.kernels()) {
    cl_int code = CL_SUCCESS;
    Kernel made;
    made.object = cl::Kernel(programs_.at(kernel.program), kernel.name.c_str(), &code);
    const std::string& program = capture_.program(kernel.program).name;
    check(code == CL_SUCCESS, "{} has no kernel {}: {}", program, kernel.name,
          opencl::error_name(code));
    check_cl(made.object.getWorkGroupInfo(device_.handle(), CL_KERNEL_WORK_GROUP_SIZE,
                                          &made.group_limit),
             "clGetKernelWorkGroupInfo");
    kernels_[id] = std::move(made);
  }
  progress_("building", done, capture_.programs().size());
}

void Replayer::run() {
  times_.clear();
  events_.clear();
  launches_ = 0;
  // Sub-buffers first: some drivers keep them attached to their parents.
  for (auto it = buffers_.begin(); it != buffers_.end();)
    it = capture_.buffer(it->first).parent != 0 ? buffers_.erase(it) : std::next(it);
  buffers_.clear();
  const auto& commands = capture_.commands();
  for (size_t i = 0; i < commands.size(); ++i) {
    if (i % 64 == 0) progress_("running", i, commands.size());
    execute(commands[i]);
  }
  const cl_int code = cl().clFinish(queue_());
  if (code != CL_SUCCESS)
    opencl::raise_async(code, "clFinish", fmt::format("the last launch was {}", last_));
  collect_times();
  progress_("running", commands.size(), commands.size());
}

void Replayer::execute(const file::Record& command) {
  std::visit([this](const auto& r) { run_one(r); }, command);
}

std::string Replayer::where(const file::Launch& r) const {
  const std::string name = capture_.operator_name(r.call);
  return fmt::format("launch {} ({}{}{})", launches_, capture_.kernel(r.kernel).name,
                     name.empty() ? "" : " of ", name);
}

void Replayer::run_one(const file::Buffer& r) {
  cl_int code = CL_SUCCESS;
  cl::Buffer made;
  if (r.parent == 0) {
    made = cl::Buffer(device_.context(), CL_MEM_READ_WRITE, r.bytes, nullptr, &code);
  } else {
    const cl_buffer_region region{r.origin, r.bytes};
    made = buffers_.at(r.parent).createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                                 &region, &code);
    if (code == CL_MISALIGNED_SUB_BUFFER_OFFSET)
      fail(TB_UNSUPPORTED,
           "a kernel was given memory {} bytes into a buffer, and this device can bind only larger "
           "alignments: declare pointers as pairs (__global T *base, ulong byte_offset)",
           r.origin);
  }
  if (code != CL_SUCCESS)
    fail(TB_E_OUT_OF_MEMORY, "the driver has no buffer of {} bytes: {}", r.bytes,
         opencl::error_name(code));
  buffers_[r.id] = std::move(made);
}

void Replayer::write_runs(uint64_t id, uint64_t offset, uint64_t bytes, const file::Data& data) {
  std::vector<uint8_t> chunk(std::min(bytes, kChunk));
  for (uint64_t at = 0; at < bytes; at += kChunk) {
    const std::span<uint8_t> part(chunk.data(), std::min(kChunk, bytes - at));
    capture_.read(data, at, part);
    check_cl(cl().clEnqueueWriteBuffer(queue_(), buffer(id), CL_TRUE, offset + at, part.size(),
                                       part.data(), 0, nullptr, nullptr),
             "clEnqueueWriteBuffer");
  }
}

void Replayer::run_one(const file::Contents& r) {
  uint64_t pages = 0;
  for (const file::PageRun& run : r.runs) pages += run.pages;
  const uint64_t begin = r.page * file::kPageBytes;
  const uint64_t size = capture_.buffer(r.buffer).bytes;
  if (begin >= size) return;
  write_runs(r.buffer, begin, std::min(pages * file::kPageBytes, size - begin), {{}, r.runs});
}

void Replayer::run_one(const file::Write& r) { write_runs(r.buffer, r.offset, r.bytes, r.data); }

void Replayer::run_one(const file::Copy& r) {
  check_cl(cl().clEnqueueCopyBuffer(queue_(), buffer(r.source), buffer(r.target), r.source_offset,
                                    r.target_offset, r.bytes, 0, nullptr, nullptr),
           "clEnqueueCopyBuffer");
}

void Replayer::run_one(const file::Fill& r) {
  check_cl(cl().clEnqueueFillBuffer(queue_(), buffer(r.buffer), r.pattern.data(), r.pattern.size(),
                                    r.offset, r.bytes, 0, nullptr, nullptr),
           "clEnqueueFillBuffer");
}

void Replayer::run_one(const file::Release& r) { buffers_.erase(r.buffer); }

void Replayer::set_arguments(const file::Launch& r, cl_kernel kernel) {
  for (size_t i = 0; i < r.arguments.size(); ++i) {
    const file::Argument& a = r.arguments[i];
    cl_int code = CL_SUCCESS;
    const auto index = static_cast<cl_uint>(i);
    if (a.kind == file::ArgumentKind::Local) {
      code = cl().clSetKernelArg(kernel, index, a.value, nullptr);
    } else if (a.kind == file::ArgumentKind::Buffer) {
      const cl_mem memory = buffer(a.value);
      code = cl().clSetKernelArg(kernel, index, sizeof memory, &memory);
    } else if (a.kind == file::ArgumentKind::Bytes) {
      code = cl().clSetKernelArg(kernel, index, a.bytes.size(), a.bytes.data());
    }
    if (code != CL_SUCCESS)
      fail(TB_E_INVALID, "{}: argument {} does not fit: {}", where(r), i, opencl::error_name(code));
  }
}

void Replayer::run_one(const file::Launch& r) {
  const Kernel& kernel = kernels_.at(r.kernel);
  set_arguments(r, kernel.object());
  std::array<size_t, 3> offset{};
  std::array<size_t, 3> global{};
  std::array<size_t, 3> local{};
  size_t items = 1;
  for (size_t i = 0; i < 3; ++i) {
    offset[i] = r.offset[i];
    global[i] = r.global[i];
    local[i] = r.local[i];
    const size_t factor = std::max<size_t>(1, i < r.rank ? local[i] : 1);
    items = items > std::numeric_limits<size_t>::max() / factor ? kernel.group_limit + 1
                                                                : items * factor;
  }
  const bool chosen = local[0] != 0;
  if (chosen && items > kernel.group_limit)
    fail(TB_UNSUPPORTED,
         "{} has work-groups of {}x{}x{} work-items; this kernel takes at most {} of them on {}, "
         "where the capture cannot run",
         where(r), local[0], r.rank > 1 ? local[1] : 1, r.rank > 2 ? local[2] : 1,
         kernel.group_limit, device_.caps().name);
  cl::Event event;
  last_ = where(r);
  const cl_int code = cl().clEnqueueNDRangeKernel(
      queue_(), kernel.object(), static_cast<cl_uint>(r.rank), offset.data(), global.data(),
      chosen ? local.data() : nullptr, 0, nullptr, stamped_ ? &event() : nullptr);
  check_cl(code, last_.c_str());
  ++launches_;
  if (stamped_) events_.push_back(std::move(event));
  if (events_.size() >= kEvents) collect_times();
  if (launches_ % 32 == 0) check_cl(cl().clFlush(queue_()), "clFlush");
}

void Replayer::collect_times() {
  for (const auto& event : events_) {
    check_cl(event.wait(), "clWaitForEvents");
    cl_ulong begin = 0;
    cl_ulong end = 0;
    check_cl(event.getProfilingInfo(CL_PROFILING_COMMAND_START, &begin), "clGetEventProfilingInfo");
    check_cl(event.getProfilingInfo(CL_PROFILING_COMMAND_END, &end), "clGetEventProfilingInfo");
    times_.push_back(end > begin ? end - begin : 0);
  }
  events_.clear();
}

void Replayer::read(uint64_t id, uint64_t offset, std::span<uint8_t> to) {
  if (to.empty()) return;
  check_cl(cl().clEnqueueReadBuffer(queue_(), buffer(id), CL_TRUE, offset, to.size(), to.data(), 0,
                                    nullptr, nullptr),
           "clEnqueueReadBuffer");
}

}  // namespace ocltensor::replay
