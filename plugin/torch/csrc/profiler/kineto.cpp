// torch.profiler: kernels, copies and calls of the plugin in kineto's tables and traces, each
// linked to the operator of PyTorch that caused it. Needs torch 2.13, whose kineto takes profilers
// of out-of-tree devices; with older ones this file is empty.
#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)
#define USE_KINETO
#include <fmt/format.h>
#include <kineto/libkineto.h>
#include <kineto/output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/thread_owned.h"
#include "runtime/plugin.h"

namespace torch_ocl {
namespace {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;

struct Record {  // a tb_record that owns its texts
  tb_record values;
  std::string category, name, operation;
};

int64_t clock_offset() {  // to be added to a steady time: kineto counts nanoseconds since 1970
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  const auto system = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(system - steady).count();
}

ActivityType type_of(const Record& record) {
  if (record.values.kind == TB_RECORD_CALL) return ActivityType::PRIVATEUSE1_RUNTIME;
  if (record.category == "copy") return ActivityType::GPU_MEMCPY;
  return record.category == "fill" ? ActivityType::GPU_MEMSET : ActivityType::CONCURRENT_KERNEL;
}

// Ids of PyTorch's running operators on this thread.
std::vector<uint64_t>& correlations() {
  thread_local std::vector<uint64_t>* own = nullptr;
  return ocltensor::thread_owned(own);
}

class Session : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(std::set<ActivityType> types) : types_(std::move(types)) {}
  ~Session() override { stop(); }

  void start() override {
    offset_ = clock_offset();
    listening_ = tell("start", [this](tb_error* error) {
      return api().profiler->listen(
          [](void* self, const tb_record* record) { static_cast<Session*>(self)->hear(*record); },
          this, error);
    });
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    if (!std::exchange(listening_, false)) return;
    tell("stop", [](tb_error* error) { return api().profiler->listen(nullptr, nullptr, error); });
    status_ = libkineto::TraceStatus::PROCESSING;
  }
  std::vector<std::string> errors() override { return errors_; }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(
        logger, [](int32_t) { return nullptr; }, 0, 0);
  }
  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked,
                    int64_t begin, int64_t /*end*/) override {
    stop();
    name_devices(logger, begin);
    for (const Record& record : records_) {
      if (!types_.contains(type_of(record)) || record.category == "range") continue;
      buffer_->emplace_activity(buffer_->span, type_of(record), record.name);
      GenericTraceActivity& activity = *buffer_->activities.back();
      fill(activity, record);
      if (record.values.correlation != 0)
        activity.linked = linked(static_cast<int32_t>(record.values.correlation));
      activity.log(logger);
    }
  }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::set<std::pair<int32_t, uint64_t>> streams;
    for (const Record& r : records_)
      if (r.values.kind == TB_RECORD_COMMAND) streams.emplace(r.values.device, r.values.stream);
    std::vector<libkineto::ResourceInfo> infos;
    for (const auto& [device, stream] : streams) {
      const auto id = static_cast<int64_t>(stream);
      infos.push_back({id, id, device, fmt::format("stream {}", stream)});
    }
    return infos;
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(buffer_);
  }

  // Called by PyTorch around each operator, on its thread.
  void pushCorrelationId(uint64_t id) override {
    correlations().push_back(id);
    (void)api().profiler->correlate(id, nullptr);
  }
  void popCorrelationId() override {
    std::vector<uint64_t>& running = correlations();
    if (!running.empty()) running.pop_back();
    (void)api().profiler->correlate(running.empty() ? 0 : running.back(), nullptr);
  }

 private:
  template <typename Call>
  bool tell(const char* what, Call&& call) {
    ocltensor::ErrorBuffer error;
    if (call(error.get()) == TB_OK) return true;
    errors_.push_back(fmt::format("ocl profiler {}: {}", what, error.text()));
    TORCH_WARN(errors_.back());
    return false;
  }

  void hear(const tb_record& record) {
    const std::lock_guard lock(mutex_);
    records_.push_back({record, record.category, record.name,
                        record.operation == nullptr ? "" : record.operation});
  }

  void name_devices(libkineto::ActivityLogger& logger, int64_t begin) const {
    std::set<int32_t> devices;
    for (const Record& r : records_)
      if (r.values.kind == TB_RECORD_COMMAND) devices.insert(r.values.device);
    for (const int32_t device : devices) {
      tb_device_properties properties{};
      properties.struct_size = sizeof properties;
      (void)api().device->properties(device, &properties, nullptr);
      logger.handleDeviceInfo({device, libkineto::kExceedMaxPid + device, properties.name,
                               fmt::format("ocl:{}", device)},
                              begin);
    }
  }

  void fill(GenericTraceActivity& activity, const Record& record) const {
    const tb_record& v = record.values;
    const bool command = v.kind == TB_RECORD_COMMAND;
    activity.startTime = v.begin_ns + offset_;
    activity.endTime = v.end_ns + offset_;
    activity.id = static_cast<int32_t>(v.call);
    activity.device = command ? v.device : static_cast<int32_t>(::getpid());
    activity.resource = command ? static_cast<int32_t>(v.stream) : v.thread;
    activity.threadId = v.thread;
    if (v.call != 0) {
      activity.flow.id = static_cast<uint32_t>(v.call);
      activity.flow.type = libkineto::kLinkAsyncCpuGpu;
      activity.flow.start = command ? 0 : 1;
    }
    activity.addMetadata("call", v.call);
    if (v.correlation != 0) activity.addMetadata("External id", v.correlation);
    if (!command) return;
    activity.addMetadata("device", v.device);
    activity.addMetadata("stream", v.stream);
    activity.addMetadata("queued", v.begin_ns - v.queued_ns);
    if (!record.operation.empty()) activity.addMetadataQuoted("operator", record.operation);
    if (v.bytes == 0) return;
    activity.addMetadata("bytes", v.bytes);
    activity.addMetadata("memory bandwidth (GB/s)",
                         static_cast<double>(v.bytes) /
                             static_cast<double>(std::max<int64_t>(1, v.end_ns - v.begin_ns)));
  }

  const std::set<ActivityType> types_;
  std::mutex mutex_;  // guards records_ while listening
  std::vector<Record> records_;
  std::vector<std::string> errors_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_ =
      std::make_unique<libkineto::CpuTraceBuffer>();
  int64_t offset_ = 0;
  bool listening_ = false;
};

class Profiler : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return types_; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config&) override {
    std::set<ActivityType> wanted;
    for (const ActivityType type : types)
      if (types_.contains(type)) wanted.insert(type);
    if (!wanted.contains(ActivityType::CONCURRENT_KERNEL) || device_count() == 0) return nullptr;
    return std::make_unique<Session>(std::move(wanted));
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& types,
      const libkineto::Config& config) override {
    return configure(types, config);
  }

 private:
  const std::string name_ = "ocl";
  const std::set<ActivityType> types_ = {ActivityType::GPU_MEMCPY, ActivityType::GPU_MEMSET,
                                         ActivityType::CONCURRENT_KERNEL,
                                         ActivityType::PRIVATEUSE1_RUNTIME};
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

}  // namespace
}  // namespace torch_ocl
#endif
