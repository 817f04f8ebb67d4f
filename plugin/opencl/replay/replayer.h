// Runs the commands of a capture again, on any device: in one in-order queue, in the order in which
// they were enqueued.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/reader.h"
#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {
class Device;
}

namespace ocltensor::replay {

// Called to show progress: what is being done, and how much of it is done.
using Progress = std::function<void(const char* what, size_t done, size_t total)>;

// What is built in place of a captured program, e.g. from exported files; see export_name().
struct Replacement {
  std::string source, options;
};
using Replacements = std::map<uint64_t, Replacement>;  // by program

class Replayer {
 public:
  // Builds the programs. Throws Error, with the program's or kernel's name, if the device cannot
  // run one: TB_E_COMPILE, TB_UNSUPPORTED. `stamped`: launches are timed.
  Replayer(const capture_file::Capture& capture, opencl::Device& device,
           const Replacements& replacements, bool stamped, Progress progress);
  ~Replayer();
  Replayer(const Replayer&) = delete;

  // Runs from the contents before the first command to the end, and waits. May be called again.
  void run();
  // Nanoseconds of each launch of the last run, in the order of the launches, if `stamped`.
  const std::vector<uint64_t>& times() const { return times_; }
  bool alive(uint64_t buffer) const { return buffers_.contains(buffer); }
  void read(uint64_t buffer, uint64_t offset, std::span<uint8_t> to);

 private:
  struct Kernel {
    cl::Kernel object;
    size_t group_limit = 0;
  };
  void build(const Replacements& replacements);
  cl_mem buffer(uint64_t id) const { return buffers_.at(id)(); }
  void execute(const capture_file::Record& command);
  void run_one(const capture_file::Buffer& r);
  void run_one(const capture_file::Contents& r);
  void run_one(const capture_file::Launch& r);
  void run_one(const capture_file::Write& r);
  void run_one(const capture_file::Copy& r);
  void run_one(const capture_file::Fill& r);
  void run_one(const capture_file::Release& r);
  template <typename T>
  void run_one(const T&) {}  // reads, and records that only describe
  void set_arguments(const capture_file::Launch& r, cl_kernel kernel);
  void write_runs(uint64_t buffer, uint64_t offset, uint64_t bytes, const capture_file::Data& data);
  void collect_times();
  std::string where(const capture_file::Launch& r) const;

  const capture_file::Capture& capture_;
  opencl::Device& device_;
  Progress progress_;
  bool stamped_;
  cl::CommandQueue queue_;
  std::unordered_map<uint64_t, cl::Program> programs_;
  std::unordered_map<uint64_t, Kernel> kernels_;
  std::unordered_map<uint64_t, cl::Buffer> buffers_;
  std::vector<cl::Event> events_;
  std::vector<uint64_t> times_;
  uint64_t launches_ = 0;
  std::string last_;  // launch, for messages
};

}  // namespace ocltensor::replay
