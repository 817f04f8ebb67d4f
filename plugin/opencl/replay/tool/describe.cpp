// Lists programs, launches and buffers.
#include "describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "ocltensor/dtype.h"
#include "replay/names.h"

namespace tools {
namespace {

namespace ot = ocltensor;
namespace file = ot::capture_file;

std::string value_text(const std::vector<uint8_t>& bytes, size_t most) {
  if (bytes.size() == 1 || bytes.size() == 2 || bytes.size() == 4 || bytes.size() == 8) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
    return fmt::format("{}", value);
  }
  std::string text = fmt::format("{} bytes", bytes.size());
  for (size_t i = 0; i < std::min(bytes.size(), most); ++i)
    text += fmt::format("{}{:02x}", i == 0 ? " " : i % 4 == 0 ? "_" : "", bytes[i]);
  return text + (bytes.size() > most ? "..." : "");
}

std::string dims_text(const std::array<uint64_t, 3>& dims, uint64_t rank) {
  std::string text;
  for (uint64_t i = 0; i < rank; ++i) text += fmt::format("{}{}", i == 0 ? "" : "x", dims[i]);
  return text;
}

std::vector<const file::Buffer*> ordered_buffers(const Capture& capture) {
  std::vector<const file::Buffer*> buffers;
  for (const auto& [id, buffer] : capture.buffers()) buffers.push_back(&buffer);
  std::ranges::sort(buffers, {}, &file::Buffer::id);
  return buffers;
}

uint64_t total_bytes(const Capture& capture) {
  uint64_t bytes = 0;
  for (const auto& [id, buffer] : capture.buffers())
    if (buffer.parent == 0) bytes += buffer.bytes;
  return bytes;
}

}  // namespace

std::vector<const Launch*> launches_of(const Capture& capture) {
  std::vector<const Launch*> launches;
  for (const file::Record& command : capture.commands())
    if (const auto* launch = std::get_if<Launch>(&command)) launches.push_back(launch);
  return launches;
}

std::string size_text(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  if (bytes < uint64_t{1} << 20) return fmt::format("{:.1f} KiB", double(bytes) / 1024);
  if (bytes < uint64_t{1} << 30) return fmt::format("{:.1f} MiB", double(bytes) / (1 << 20));
  return fmt::format("{:.1f} GiB", double(bytes) / (1 << 30));
}

std::string shape_text(const std::vector<int64_t>& sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string range_text(const Launch& launch) {
  const bool chosen = launch.local[0] != 0;
  const bool offset = launch.offset != std::array<uint64_t, 3>{};
  return dims_text(launch.global, launch.rank) + " / " +
         (chosen ? dims_text(launch.local, launch.rank) : "any") +
         (offset ? " from " + dims_text(launch.offset, launch.rank) : "");
}

std::string arguments_text(const Launch& launch, size_t most_bytes) {
  std::string text;
  for (const file::Argument& a : launch.arguments) {
    if (!text.empty()) text += ", ";
    switch (a.kind) {
      case file::ArgumentKind::Unset: text += "unset"; break;
      case file::ArgumentKind::Bytes: text += value_text(a.bytes, most_bytes); break;
      case file::ArgumentKind::Buffer: text += fmt::format("buffer {}", a.value); break;
      case file::ArgumentKind::Local: text += fmt::format("local {}", a.value); break;
    }
  }
  return text;
}

std::string label(const Capture& capture, const Launch& launch) {
  const std::string name = capture.operator_name(launch.call);
  return name.empty() ? "-" : name;
}

void print_heading(const Capture& capture, const std::string& path) {
  fmt::print("capture      {} ({}): {} launches of {} kernels in {} programs, {} in buffers\n",
             path, size_text(capture.file_bytes()), launches_of(capture).size(),
             capture.kernels().size(), capture.programs().size(), size_text(total_bytes(capture)));
  for (const file::DeviceInfo& d : capture.devices())
    fmt::print("captured on  {} ({}, driver {}), ocltensor {}\n", d.name, d.platform, d.driver,
               capture.version());
}

void print_list(const Capture& capture) {
  fmt::print("\nprograms\n");
  for (const file::Program& p : capture.programs()) {
    fmt::print("  {}  {}, options {}\n", ot::replay::export_name(capture, p),
               size_text(p.source.size()), p.options.empty() ? "none" : p.options);
  }
  fmt::print("\nbuffers\n");
  for (const file::Buffer* b : ordered_buffers(capture)) {
    fmt::print("  {:>6}  {}", b->id, size_text(b->bytes));
    if (b->parent != 0) fmt::print(" of buffer {} from byte {} on", b->parent, b->origin);
    fmt::print("\n");
  }
  fmt::print("\nlaunches: kernel, operator, work-items / per group, arguments\n");
  size_t number = 0;
  for (const Launch* l : launches_of(capture))
    fmt::print("  {:>5}  {:<32} {:<28} {:<20} {}\n", number++, capture.kernel(l->kernel).name,
               label(capture, *l), range_text(*l), arguments_text(*l, 16));
  fmt::print("\nresults\n");
  for (const file::Result& r : capture.results())
    fmt::print("  {:<36} {:<10} {}\n", capture.operator_name(r.call),
               ot::name(static_cast<ot::DType>(r.dtype)), shape_text(r.sizes));
}

json describe(const Capture& capture) {
  json out;
  out["version"] = capture.version();
  for (const file::DeviceInfo& d : capture.devices())
    out["devices"].push_back({{"name", d.name}, {"platform", d.platform}, {"driver", d.driver}});
  for (const file::Program& p : capture.programs())
    out["programs"].push_back({{"file", ot::replay::export_name(capture, p)},
                               {"name", p.name},
                               {"options", p.options},
                               {"source_bytes", p.source.size()}});
  for (const file::Buffer* b : ordered_buffers(capture))
    out["buffers"].push_back(
        {{"id", b->id}, {"bytes", b->bytes}, {"parent", b->parent}, {"origin", b->origin}});
  for (const Launch* l : launches_of(capture)) {
    json launch = {{"kernel", capture.kernel(l->kernel).name},
                   {"operator", label(capture, *l)},
                   {"program", capture.program(capture.kernel(l->kernel).program).name},
                   {"queue", l->queue},
                   {"arguments", arguments_text(*l, 4096)}};
    for (uint64_t i = 0; i < l->rank; ++i) {
      launch["global"].push_back(l->global[i]);
      launch["local"].push_back(l->local[i]);
      launch["offset"].push_back(l->offset[i]);
    }
    out["launches"].push_back(std::move(launch));
  }
  for (const file::Result& r : capture.results())
    out["results"].push_back({{"operator", capture.operator_name(r.call)},
                              {"output", r.output},
                              {"dtype", std::string(ot::name(static_cast<ot::DType>(r.dtype)))},
                              {"sizes", r.sizes},
                              {"strides", r.strides}});
  return out;
}

}  // namespace tools
