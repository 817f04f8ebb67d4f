// Writes traces.
#include "trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "ocltensor/error.h"
#include "runtime/device/device.h"

namespace ocltensor::opencl::profiler {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode), std::fclose);
  check(file != nullptr, "the trace file '{}' cannot be written: {}", path, std::strerror(errno));
  return file;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out + '"';
}

// The host is process 1, device i is process i + 2 (readers take 0 for the idle process); threads
// and streams are their tracks.
constexpr int kHost = 1;
int process_of(int device) { return device + 2; }

class Writer {
 public:
  Writer(const Trace& trace, std::FILE* file) : trace_(trace), file_(file) {}

  void run() {
    text_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":" +
            fmt::format("{{\"producer\":\"ocltensor\",\"lost\":{}}}", trace_.lost) +
            ",\"traceEvents\":[\n";
    names();
    for (const Call& call : trace_.calls) {
      std::string args = fmt::format(R"({{"call":{})", call.id);
      if (call.bytes > 0) args += fmt::format(R"(,"bytes":{})", call.bytes);
      slice(kHost, static_cast<uint64_t>(call.thread), call.category, call.name, call.begin,
            call.end, args + "}");
    }
    for (const DeviceWork& work : trace_.works) device_work(work);
    for (const MemorySample& m : trace_.memory)
      event(fmt::format(
          R"("ph":"C","name":"memory","pid":{},"ts":{},"args":{{"allocated":{},"reserved":{}}})",
          process_of(m.device), time(m.at), m.allocated, m.reserved));
    text_ += "\n]}\n";
    flush();
  }
  bool failed() const { return failed_; }

 private:
  // Microseconds since the start.
  std::string time(int64_t ns) const {
    return fmt::format("{:.3f}", static_cast<double>(ns - trace_.begin) / 1e3);
  }
  void event(const std::string& members) {
    if (!first_) text_ += ",\n";
    first_ = false;
    ((text_ += '{') += members) += '}';
    if (text_.size() > size_t{1} << 16) flush();
  }
  void flush() {
    failed_ = failed_ || std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size();
    text_.clear();
  }
  void name(const char* what, int process, uint64_t track, std::string_view text) {
    event(fmt::format(R"("ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}})", what,
                      process, track, quoted(text)));
  }
  void names() {
    name("process_name", kHost, 0, "host");
    for (const auto& device : device_list().devices)
      name("process_name", process_of(device->index()), 0,
           fmt::format("ocl:{} {}", device->index(), device->caps().name));
    std::set<int> threads;
    for (const Call& call : trace_.calls) threads.insert(call.thread);
    for (const int thread : threads)
      name("thread_name", kHost, static_cast<uint64_t>(thread), fmt::format("thread {}", thread));
    std::set<std::pair<int, uint64_t>> streams;
    for (const DeviceWork& work : trace_.works) streams.emplace(work.device, work.stream);
    for (const auto& [device, stream] : streams)
      name("thread_name", process_of(device), stream, fmt::format("stream {}", stream));
  }
  void slice(int process, uint64_t track, const char* category, std::string_view title,
             int64_t begin, int64_t end, const std::string& args) {
    const std::string common = fmt::format(R"("name":{},"cat":"{}","pid":{},"tid":{},"args":{})",
                                           quoted(title), category, process, track, args);
    if (trace_.options.intervals)
      event(fmt::format(R"("ph":"X","ts":{},"dur":{:.3f},{})", time(begin),
                        static_cast<double>(end - begin) / 1e3, common));
    if (trace_.options.events)
      event(fmt::format(R"("ph":"i","s":"t","ts":{},{})", time(process == kHost ? begin : end),
                        common));
  }
  void device_work(const DeviceWork& work) {
    std::string args = fmt::format(R"({{"call":{},"queued_us":{})", work.call, time(work.queued));
    if (work.operation != nullptr) args += R"(,"operator":)" + quoted(work.operation);
    if (work.bytes > 0)
      args += fmt::format(R"(,"bytes":{},"GB/s":{:.3f})", work.bytes,
                          static_cast<double>(work.bytes) /
                              static_cast<double>(std::max<int64_t>(1, work.end - work.begin)));
    slice(process_of(work.device), work.stream, work.category, work.name, work.begin, work.end,
          args + "}");
    if (trace_.options.schedule) schedule(work);
    if (work.call == 0 || !trace_.options.intervals) return;
    const auto caller = thread_of(work.call);
    if (caller == 0) return;
    ++flow_;
    event(fmt::format(R"("ph":"s","name":"enqueue","cat":"flow","id":{},"pid":{},"tid":{},"ts":{})",
                      flow_, kHost, caller, time(work.queued)));
    event(fmt::format(
        R"("ph":"f","bp":"e","name":"enqueue","cat":"flow","id":{},"pid":{},"tid":{},"ts":{})",
        flow_, process_of(work.device), work.stream, time(work.begin)));
  }
  // From the enqueuing call to the begin on the device: a pair of events on a track of its own, as
  // these intervals overlap.
  void schedule(const DeviceWork& work) {
    ++waited_;
    for (const auto& [phase, at] : {std::pair{'b', work.queued}, std::pair{'e', work.begin}})
      event(fmt::format(
          R"("ph":"{}","name":{},"cat":"schedule","id":{},"pid":{},"tid":{},"ts":{},"args":{{}})",
          phase, quoted(work.name), waited_, process_of(work.device), work.stream, time(at)));
  }
  int thread_of(uint64_t call) {
    if (threads_.empty())
      for (const Call& c : trace_.calls) threads_.emplace(c.id, c.thread);
    const auto it = threads_.find(call);
    return it == threads_.end() ? 0 : it->second;
  }

  const Trace& trace_;
  std::FILE* file_;
  std::string text_;
  std::map<uint64_t, int> threads_;
  uint64_t flow_ = 0;
  uint64_t waited_ = 0;
  bool first_ = true;
  bool failed_ = false;
};

}  // namespace

void check_writable(const std::string& path) { (void)open(path, "w"); }

void write(const Trace& trace) {
  const File file = open(trace.options.path, "w");
  Writer writer(trace, file.get());
  writer.run();
  if (writer.failed() || std::fflush(file.get()) != 0)
    fail(TB_E_INTERNAL, "the trace file '{}' could not be written to its end: {}",
         trace.options.path, std::strerror(errno));
}

}  // namespace ocltensor::opencl::profiler
