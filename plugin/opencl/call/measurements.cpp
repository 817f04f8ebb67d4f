// Measurements in memory, and their exchange with files.
#include "measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include "algorithms.h"
#include "measurement_file.h"
#include "runtime/device/device.h"
#include "shipped_measurements.h"

namespace ocltensor::opencl {
namespace {

struct Key {
  int device;
  std::string_view family;
  ShapeClass shape;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    return key.shape.hash() ^ std::hash<std::string_view>()(key.family) ^
           static_cast<size_t>(key.device);
  }
};

struct Files {
  std::string path;
  measurement_file::Lines own, shipped;
};

struct Known {
  std::shared_mutex mutex;  // guards what follows
  // An entry without a best choice: the files have been searched in vain.
  std::unordered_map<Key, Measurement, KeyHash> measured;
  std::map<int, Files> files;  // as read from disk, by device
};
Known& known() {
  static Known& k = *new Known;  // leaked: threads may run while the process ends
  return k;
}

std::string text_of(const ShapeClass& shape) {
  std::string text;
  for (const int64_t n : shape.numbers()) text += fmt::format("{}{}", text.empty() ? "" : " ", n);
  return text;
}

std::string problem_text(const Device& device, const AlgorithmFamily& family,
                         const std::string& problem) {
  return fmt::format("ocl:{} {} {}", device.index(), family.name(), problem);
}

// The files of a device, read once. The lock must be held.
const Files& files_of(Device& device) {
  const auto [it, fresh] = known().files.try_emplace(device.index());
  Files& files = it->second;
  if (fresh) {
    files.path = measurement_file::path_of(device.caps());
    files.own = measurement_file::read(files.path);
    files.shipped = shipped_measurements::lines_for(device.caps());
  }
  return files;
}

bool has_family(const measurement_file::Lines& lines, const AlgorithmFamily& family) {
  return std::ranges::any_of(lines,
                             [&](const auto& line) { return line.first.first == family.name(); });
}

// Copies a measurement from the files to memory. The lock must be held.
const Measurement& recall(Device& device, const AlgorithmFamily& family, const ShapeClass& shape) {
  const Files& files = files_of(device);
  Measurement m;
  for (const auto* lines : {&files.own, &files.shipped}) {
    const auto it = lines->find({family.name(), text_of(shape)});
    if (it == lines->end()) continue;
    m.problem = problem_text(device, family, it->second.problem);
    m.shipped = lines == &files.shipped;
    m.best = choice_of(family.algorithms(), it->second.best).value_or(Choice{});
    for (const auto& [text, time] : it->second.microseconds)
      if (const auto choice = choice_of(family.algorithms(), text))
        m.times.push_back({*choice, time});
    if (m.best.algorithm != nullptr) break;
  }
  return known()
      .measured.insert_or_assign(Key{device.index(), family.name(), shape}, std::move(m))
      .first->second;
}

}  // namespace

Choice find_measured(Device& device, const AlgorithmFamily& family, const ShapeClass& shape,
                     bool keep, bool shipped) {
  const auto allowed = [&](const Measurement& m) {
    return m.shipped && !shipped ? Choice{} : m.best;
  };
  {
    const std::shared_lock lock(known().mutex);
    const auto it = known().measured.find(Key{device.index(), family.name(), shape});
    if (it != known().measured.end()) return allowed(it->second);
  }
  if (!keep || !family.is_measured(device)) return {};
  const std::unique_lock lock(known().mutex);
  return allowed(recall(device, family, shape));
}

std::optional<Measurement> measurement_of(Device& device, const AlgorithmFamily& family,
                                          const ShapeClass& shape, bool keep) {
  if (find_measured(device, family, shape, keep, false).algorithm == nullptr) return std::nullopt;
  const std::shared_lock lock(known().mutex);
  const auto it = known().measured.find(Key{device.index(), family.name(), shape});
  return it == known().measured.end() ? std::nullopt : std::optional(it->second);
}

Choice add_measured(Device& device, const AlgorithmFamily& family, const ShapeClass& shape,
                    Measurement measurement, bool keep, Existing existing) {
  measurement_file::Line line{text_of(measurement.best), {}, measurement.problem};
  for (const Timed& t : measurement.times)
    line.microseconds.emplace_back(text_of(t.choice), t.microseconds);
  measurement.problem = problem_text(device, family, measurement.problem);
  std::string path;
  Choice best;
  {
    const std::unique_lock lock(known().mutex);
    Measurement& place = known().measured[Key{device.index(), family.name(), shape}];
    if (place.best.algorithm == nullptr || place.shipped || existing == Existing::IsReplaced)
      place = std::move(measurement);
    best = place.best;
    family.set_measured(device.index());
    path = files_of(device).path;
  }
  if (keep) measurement_file::write(path, {{{family.name(), text_of(shape)}, line}});
  return best;
}

bool is_any_measured(Device& device, const AlgorithmFamily& family) {
  const std::unique_lock lock(known().mutex);
  const Files& files = files_of(device);
  return has_family(files.own, family) || has_family(files.shipped, family) ||
         std::ranges::any_of(known().measured, [&](const auto& entry) {
           return entry.first.device == device.index() && entry.first.family == family.name() &&
                  entry.second.best.algorithm != nullptr;
         });
}

std::vector<Measurement> measurements() {
  std::vector<Measurement> list;
  {
    const std::shared_lock lock(known().mutex);
    for (const auto& [key, measurement] : known().measured)
      if (measurement.best.algorithm != nullptr) list.push_back(measurement);
  }
  std::ranges::sort(list, {}, &Measurement::problem);
  return list;
}

void forget_measurements() {
  const std::unique_lock lock(known().mutex);
  known().measured.clear();
  for (const auto& [device, files] : known().files) measurement_file::remove(files.path);
  known().files.clear();
  for (const AlgorithmFamily* family : algorithm_families()) family->ask_again();
}

std::string measurement_path(Device& device) {
  const std::unique_lock lock(known().mutex);
  return files_of(device).path;
}

}  // namespace ocltensor::opencl
