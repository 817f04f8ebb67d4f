// Adds up the commands of a call, and writes its line.
#include "call_ledger.h"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "runtime/observe/profile_settings.h"
#include "runtime/observe/statistics.h"

namespace ocltensor::opencl::profiler {

bool CallLedger::waits_for_times() { return (log_mask() & (kLogDeviceTime | kLogKernelTime)) != 0; }

void CallLedger::write(const std::string& text) {
  const std::string line = "ocltensor: " + text + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

void CallLedger::end(const Call& call, uint32_t commands, std::string text) {
  Entry& entry = open_[call.id];
  entry.call = call;
  entry.ended = true;
  entry.commands = commands;
  entry.text = std::move(text);
  close_if_done(call.id, entry);
}

void CallLedger::add(const DeviceWork& work) {
  if (work.call == 0) return;
  Entry& entry = open_[work.call];
  ++entry.finished;
  entry.device_ns += work.end - work.begin;
  if ((log_mask() & kLogKernelTime) != 0 && work.category == std::string_view("kernel"))
    entry.kernels.emplace_back(work.name, work.end - work.begin);
  close_if_done(work.call, entry);
}

void CallLedger::close_if_done(uint64_t id, const Entry& entry) {
  if (!entry.ended || entry.finished < entry.commands) return;
  close(entry);
  open_.erase(id);
}

void CallLedger::close(const Entry& entry) {
  statistics::add_device_time(entry.call, entry.device_ns);
  if (entry.text.empty()) return;
  const auto ms = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
  std::string line = entry.text;
  if (entry.call.category == std::string_view("fallback"))
    line += fmt::format(": host {:.3f} ms, {} bytes copied", ms(entry.call.end - entry.call.begin),
                        entry.call.bytes);
  else if ((log_mask() & kLogDeviceTime) != 0)
    line += fmt::format(": device {:.3f} ms", ms(entry.device_ns));
  if (entry.call.category == std::string_view("copy") && entry.device_ns > 0 &&
      (log_mask() & kLogDeviceTime) != 0)
    line += fmt::format(", {:.3f} GB/s", static_cast<double>(entry.call.bytes) /
                                             static_cast<double>(entry.device_ns));
  for (const auto& [name, ns] : entry.kernels) line += fmt::format("; {} {:.3f} ms", name, ms(ns));
  write(line);
}

}  // namespace ocltensor::opencl::profiler
