// Reads and writes measurements: fields separated by tabs, "algorithm=microseconds" by spaces.
#include "measurement_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/config.h"
#include "kernel_sources.h"
#include "runtime/program/disk_cache.h"

namespace ocltensor::opencl::measurement_file {
namespace {

constexpr std::string_view kTitle = "ocltensor measurements 1";

// What identifies the kernels whose times the file has. The first product of each process waits for
// this, so it is cheap.
std::string kernels() {
  if (config::get_string(config::Knob::KernelDir).empty()) return kernel_sources::digest;
  std::string all;
  for (const Source* source : kernel_sources::all()) all += text_of(*source);
  const disk_cache::Key key = disk_cache::key_of(all);
  return fmt::format("{:016x}{:016x}", key.high, key.low);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

bool parse_times(const std::string& text, Line& line) {
  for (const std::string& pair : split(text, ' ')) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) return false;
    char* end = nullptr;
    const double time = std::strtod(pair.c_str() + equals + 1, &end);
    if (*end != 0 || !(time > 0)) return false;
    line.microseconds.emplace_back(pair.substr(0, equals), time);
  }
  return !line.microseconds.empty();
}

disk_cache::Key lock_of(const std::string& path) { return disk_cache::key_of("measured " + path); }

}  // namespace

std::string path_of(const Capabilities& caps) {
  const std::string folder = disk_cache::usable_folder();
  if (folder.empty()) return {};
  // With limits, and with the kernels of the other style, others are the fastest.
  const char* style = caps.style == KernelStyle::Cpu ? "cpu" : "gpu";
  const disk_cache::Key key = disk_cache::key_of(fmt::format(
      "{}{}\n{}\n" OCLTENSOR_VERSION "\n{}", caps.identity(), caps.limits, style, kernels()));
  return fmt::format("{}/measured-{:016x}{:016x}.tsv", folder, key.high, key.low);
}

Lines read(const std::string& path) {
  std::ifstream file(path);
  std::string title;
  return std::getline(file, title) && title == kTitle ? parse(file) : Lines();
}

Lines parse(std::istream& file) {
  Lines lines;
  for (std::string text; std::getline(file, text);) {
    const std::vector<std::string> fields = split(text, '\t');
    Line line;
    if (fields.size() != 5 || !parse_times(fields[3], line)) continue;
    line.best = fields[2];
    line.problem = fields[4];
    lines[{fields[0], fields[1]}] = std::move(line);
  }
  return lines;
}

std::string to_text(const Lines& lines) {
  std::string text;
  for (const auto& [key, line] : lines) {
    std::string times;
    for (const auto& [id, time] : line.microseconds)
      times += fmt::format("{}{}={:.2f}", times.empty() ? "" : " ", id, time);
    text +=
        fmt::format("{}\t{}\t{}\t{}\t{}\n", key.first, key.second, line.best, times, line.problem);
  }
  return text;
}

void write(const std::string& path, const Lines& lines) {
  if (path.empty()) return;
  const disk_cache::Claim claim(lock_of(path), std::chrono::seconds(2));
  Lines all = read(path);
  for (const auto& [key, line] : lines) all[key] = line;
  static std::atomic<unsigned> serial{0};
  const std::string temporary = fmt::format("{}.{}.{}", path, getpid(), serial++);
  std::ofstream file(temporary);
  file << kTitle << '\n' << to_text(all);
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) std::remove(temporary.c_str());
}

void remove(const std::string& path) {
  if (!path.empty()) std::remove(path.c_str());
}

}  // namespace ocltensor::opencl::measurement_file
