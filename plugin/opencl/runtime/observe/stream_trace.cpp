// Reads the timestamps of commands, and converts them to the host's clock.
#include "stream_trace.h"

#include <limits>
#include <vector>

#include "runtime/device/device.h"

namespace ocltensor::opencl {
namespace {

// How many commands wait before some are delivered, and how many are delivered at a time. Delivery
// takes 6 us each, during which nothing is enqueued, so a GPU must have enough to do meanwhile.
constexpr size_t kCollectAt = 2048, kAtATime = 128;

bool stamp(const cl::Event& event, cl_profiling_info what, int64_t& value) {
  cl_ulong ns = 0;
  if (event() == nullptr || event.getProfilingInfo(what, &ns) != CL_SUCCESS) return false;
  value = static_cast<int64_t>(ns);
  return ns != 0;
}

}  // namespace

// The offset between the clocks is measured at the end of a small command: of several tries the
// fastest one is the most accurate. (clGetDeviceAndHostTimer is OpenCL 2.1, and many drivers lack
// it.)
StreamTrace::StreamTrace(Device& device, uint64_t stream, cl_command_queue queue)
    : device_(device), stream_(stream) {
  cl_int code = CL_SUCCESS;
  const cl::Buffer word(device.context(), CL_MEM_READ_WRITE, sizeof(cl_uint), nullptr, &code);
  check_cl(code, "clCreateBuffer");
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 5; ++i) {
    constexpr cl_uint kZero = 0;
    cl::Event event;
    const int64_t before = profiler::now();
    check_cl(cl().clEnqueueFillBuffer(queue, word(), &kZero, sizeof kZero, 0, sizeof kZero, 0,
                                      nullptr, &event()),
             "clEnqueueFillBuffer");
    check_cl(cl().clFinish(queue), "clFinish");
    const int64_t after = profiler::now();
    int64_t end = 0;
    if (after - before < shortest && stamp(event, CL_PROFILING_COMMAND_END, end)) {
      shortest = after - before;
      to_host_ = after - end;
    }
  }
}

cl_event* StreamTrace::event(const profiler::DeviceWork& work) {
  if (commands_.size() >= kCollectAt) collect(false, kAtATime);
  Command& command = commands_.emplace_back();
  command.work = work;
  command.work.device = device_.index();
  command.work.stream = stream_;
  return &command.event();
}

void StreamTrace::collect(bool finished, size_t most) {
  std::vector<profiler::DeviceWork> works;
  std::vector<profiler::DeviceWork> lost;
  for (; most > 0 && !commands_.empty(); --most) {
    Command& command = commands_.front();
    cl_int status = CL_QUEUED;
    if (!finished && command.event() != nullptr &&
        (cl().clGetEventInfo(command.event(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                             &status, nullptr) != CL_SUCCESS ||
         status > CL_COMPLETE))
      break;
    profiler::DeviceWork& work = command.work;
    if (stamp(command.event, CL_PROFILING_COMMAND_START, work.begin) &&
        stamp(command.event, CL_PROFILING_COMMAND_END, work.end)) {
      work.begin += to_host_;
      work.end += to_host_;
      works.push_back(work);
    } else {
      work.begin = work.end = work.queued;
      lost.push_back(work);
    }
    commands_.pop_front();
  }
  profiler::add(works, lost);
}

}  // namespace ocltensor::opencl
