// Calls whose commands are still running. When the last command has finished, the call's device
// time is known and its line of the log is written. The profiler's lock guards it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/observe/profiler.h"

namespace ocltensor::opencl::profiler {

class CallLedger {
 public:
  void end(const Call& call, uint32_t commands, std::string text);
  void add(const DeviceWork& work);

  // Whether lines of the log contain times, and so have to wait for their commands.
  static bool waits_for_times();
  static void write(const std::string& text);  // one line to standard error

 private:
  struct Entry {
    Call call;
    bool ended = false;
    uint32_t commands = 0, finished = 0;
    int64_t device_ns = 0;
    std::string text;
    std::vector<std::pair<const char*, int64_t>> kernels;  // only for lines with kernel times
  };
  void close(const Entry& entry);
  void close_if_done(uint64_t id, const Entry& entry);

  std::unordered_map<uint64_t, Entry> open_;
};

}  // namespace ocltensor::opencl::profiler
