// Measurements in memory, and their exchange with files.
#include "measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "algorithms.h"
#include "measurement_file.h"
#include "runtime/device/device.h"

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

struct Known {
  std::shared_mutex mutex;  // guards what follows
  // An entry without a best algorithm: the file has been searched in vain.
  std::unordered_map<Key, Measurement, KeyHash> measured;
  std::map<int, measurement_file::Lines> files;  // as read from disk, by device
  std::map<int, std::string> paths;
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

// The lines of a device's file, read once. The lock must be held.
const measurement_file::Lines& lines_of(Device& device) {
  const auto [it, fresh] = known().files.try_emplace(device.index());
  if (fresh) {
    const std::string& path = known().paths[device.index()] =
        measurement_file::path_of(device.caps());
    it->second = measurement_file::read(path);
  }
  return it->second;
}

const Algorithm* algorithm_of(const AlgorithmFamily& family, std::string_view id) {
  for (const Algorithm* a : family.algorithms())
    if (a->id == id) return a;
  return nullptr;
}

// Copies a measurement from the file to memory. The lock must be held.
const Algorithm* recall(Device& device, const AlgorithmFamily& family, const ShapeClass& shape) {
  const measurement_file::Lines& lines = lines_of(device);
  const Key key{device.index(), family.name(), shape};
  const auto it = lines.find({family.name(), text_of(shape)});
  if (it == lines.end()) return (known().measured.emplace(key, Measurement{}), nullptr);
  const measurement_file::Line& line = it->second;
  Measurement m{
      fmt::format("ocl:{} {} {}", device.index(), family.name(), line.problem), {}, nullptr};
  m.best = algorithm_of(family, line.best);
  for (const auto& [id, time] : line.microseconds)
    if (const Algorithm* a = algorithm_of(family, id)) m.microseconds.emplace_back(a, time);
  return known().measured.emplace(key, std::move(m)).first->second.best;
}

}  // namespace

const Algorithm* find_measured(Device& device, const AlgorithmFamily& family,
                               const ShapeClass& shape, bool keep) {
  {
    const std::shared_lock lock(known().mutex);
    const auto it = known().measured.find(Key{device.index(), family.name(), shape});
    if (it != known().measured.end()) return it->second.best;
  }
  if (!keep || !family.is_measured(device)) return nullptr;
  const std::unique_lock lock(known().mutex);
  return recall(device, family, shape);
}

const Algorithm* add_measured(Device& device, const AlgorithmFamily& family,
                              const ShapeClass& shape, Measurement measurement, bool keep) {
  measurement_file::Line line{measurement.best->id, {}, measurement.problem};
  for (const auto& [algorithm, time] : measurement.microseconds)
    line.microseconds.emplace_back(algorithm->id, time);
  measurement.problem =
      fmt::format("ocl:{} {} {}", device.index(), family.name(), measurement.problem);
  std::string path;
  const Algorithm* best = nullptr;
  {
    const std::unique_lock lock(known().mutex);
    Measurement& place = known().measured[Key{device.index(), family.name(), shape}];
    if (place.best == nullptr) place = std::move(measurement);
    best = place.best;
    family.set_measured(device.index());
    (void)lines_of(device);
    path = known().paths[device.index()];
  }
  if (keep) measurement_file::write(path, {{{family.name(), text_of(shape)}, line}});
  return best;
}

bool is_any_measured(Device& device, const AlgorithmFamily& family) {
  const std::unique_lock lock(known().mutex);
  for (const auto& [key, line] : lines_of(device))
    if (key.first == family.name()) return true;
  return std::ranges::any_of(known().measured, [&](const auto& entry) {
    return entry.first.device == device.index() && entry.first.family == family.name() &&
           entry.second.best != nullptr;
  });
}

std::vector<Measurement> measurements() {
  std::vector<Measurement> list;
  {
    const std::shared_lock lock(known().mutex);
    for (const auto& [key, measurement] : known().measured)
      if (measurement.best != nullptr) list.push_back(measurement);
  }
  std::ranges::sort(list, {}, &Measurement::problem);
  return list;
}

void forget_measurements() {
  const std::unique_lock lock(known().mutex);
  known().measured.clear();
  for (auto& [device, lines] : known().files) lines.clear();
  for (const auto& [device, path] : known().paths) measurement_file::remove(path);
  for (const AlgorithmFamily* family : algorithm_families()) family->ask_again();
}

}  // namespace ocltensor::opencl
