// Adds up the sums, and writes them as tables.
#include "statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace ocltensor::opencl::profiler::statistics {
namespace {

struct Sums {
  uint64_t count = 0;
  int64_t total = 0, longest = 0, host = 0;
  uint64_t bytes = 0;
};

// Leaked: tables are printed when the process ends.
struct State {
  std::mutex mutex;
  std::array<std::unordered_map<std::string, Sums>, kKindCount + 1> sums;
};
State& state() {
  static State& s = *new State;
  return s;
}

struct KindRow {
  Kind kind;
  const char* category;  // category of the calls that count
  const char* name;
  const char* time;  // what is timed: device or host
  bool on_device;
  bool bytes;  // the table has a column of bytes
};
constexpr KindRow kKinds[] = {
    {Kind::Operator, "operator", "operators", "device", true, false},
    {Kind::Kernel, "", "kernels", "device", true, false},
    {Kind::Copy, "copy", "copies", "device", true, true},
    {Kind::Fallback, "fallback", "CPU fallbacks", "host", false, true},
    {Kind::Build, "build", "program builds", "host", false, false},
    {Kind::Load, "load", "programs loaded from the disk cache", "host", false, false},
    {Kind::Hit, "hit", "programs found in memory", "host", false, false},
};

const KindRow& row_of(Kind kind) { return kKinds[static_cast<uint32_t>(kind) - 1]; }

const KindRow* row_of(std::string_view category) {
  for (const KindRow& row : kKinds)
    if (category == row.category) return &row;
  return nullptr;
}

Sums& sums_of(Kind kind, const std::string& name) {
  return state().sums[static_cast<uint32_t>(kind)][name];
}

void add_time(Sums& sums, int64_t ns) {
  sums.total += ns;
  sums.longest = std::max(sums.longest, ns);
}

}  // namespace

const char* name(Kind kind) { return row_of(kind).name; }

void add(const Call& call) {
  const KindRow* row = row_of(call.category);
  if (row == nullptr) return;
  const std::lock_guard lock(state().mutex);
  Sums& sums = sums_of(row->kind, call.name);
  ++sums.count;
  sums.host += call.end - call.begin;
  if (row->bytes) sums.bytes += call.bytes;
  if (!row->on_device) add_time(sums, call.end - call.begin);
}

void add(const DeviceWork& work) {
  if (work.category != std::string_view("kernel")) return;
  const std::lock_guard lock(state().mutex);
  Sums& sums = sums_of(Kind::Kernel, work.name);
  ++sums.count;
  add_time(sums, work.end - work.begin);
}

void add_device_time(const Call& call, int64_t ns) {
  const KindRow* row = row_of(call.category);
  if (row == nullptr || !row->on_device) return;
  const std::lock_guard lock(state().mutex);
  add_time(sums_of(row->kind, call.name), ns);
}

std::vector<Row> rows(Kind kind) {
  std::vector<Row> result;
  {
    const std::lock_guard lock(state().mutex);
    for (const auto& [name, s] : state().sums[static_cast<uint32_t>(kind)])
      result.push_back({name, s.count, s.total, s.longest, s.host, s.bytes});
  }
  std::ranges::sort(result, [](const Row& a, const Row& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
  return result;
}

void reset() {
  const std::lock_guard lock(state().mutex);
  for (auto& sums : state().sums) sums.clear();
}

std::string table(Kind kind) {
  const KindRow& shape = row_of(kind);
  const std::vector<Row> all = rows(kind);
  if (all.empty()) return fmt::format("ocltensor: no {} were recorded\n", shape.name);
  uint64_t count = 0;
  int64_t total = 0;
  for (const Row& row : all) {
    count += row.count;
    total += row.total_ns;
  }
  const auto ms = [](double ns) { return ns / 1e6; };
  std::string text = fmt::format("ocltensor: {}: {} in all, {:.3f} ms on the {}\n", shape.name,
                                 count, ms(static_cast<double>(total)), shape.time);
  text += fmt::format("{:>10} {:>12} {:>12} {:>12}", "count", "total ms", "mean ms", "max ms");
  if (shape.bytes) text += fmt::format(" {:>14} {:>9}", "bytes", "GB/s");
  text += "  name\n";
  for (const Row& row : all) {
    text += fmt::format("{:>10} {:>12.3f} {:>12.4f} {:>12.3f}", row.count,
                        ms(static_cast<double>(row.total_ns)), ms(row.mean_ns()),
                        ms(static_cast<double>(row.longest_ns)));
    if (shape.bytes)
      text += fmt::format(
          " {:>14} {:>9.3f}", row.bytes,
          static_cast<double>(row.bytes) / static_cast<double>(std::max<int64_t>(1, row.total_ns)));
    text += "  " + row.name + "\n";
  }
  return text;
}

}  // namespace ocltensor::opencl::profiler::statistics
