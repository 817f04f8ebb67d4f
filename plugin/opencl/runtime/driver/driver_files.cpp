// Reads *.icd files as OpenCL's loader does; the loader does not report the files that it skips.
// And repairs the variables that it damages.
#include "driver_files.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/config.h"

namespace ocltensor::opencl {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> driver_files() {
  const fs::path place = config::driver_files();
  std::error_code error;
  if (!fs::is_directory(place, error)) return {place};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(place, error))
    if (entry.path().extension() == ".icd") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string describe(const fs::path& path) {
  std::ifstream file(path);
  std::string library;
  if (!file || !std::getline(file, library) || library.empty())
    return fmt::format("'{}' names no library", path.string());
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) !=
      nullptr)  // and stays loaded: drivers start threads
    return fmt::format("'{}' names '{}', which loads, but offers no platform", path.string(),
                       library);
  const char* why = dlerror();
  return fmt::format("'{}' names '{}', which does not load: {}", path.string(), library,
                     why != nullptr ? why : "dlopen failed");
}

constexpr const char* kLists[] = {"OCL_ICD_FILENAMES", "OPENCL_LAYERS"};

}  // namespace

DriverVariables::DriverVariables() {
  for (size_t i = 0; i < kept_.size(); ++i) {
    kept_[i].text = config::loader_variable(kLists[i]);
    if (kept_[i].text != nullptr) kept_[i].value = kept_[i].text;
  }
}

// In place, as the loader has written: setenv() would move what other threads may be reading.
DriverVariables::~DriverVariables() {
  for (size_t i = 0; i < kept_.size(); ++i) {
    const auto& [text, value] = kept_[i];
    if (text != nullptr && config::loader_variable(kLists[i]) == text &&
        std::strlen(text) < value.size())
      std::memcpy(text, value.c_str(), value.size());
  }
}

std::string describe_driver_files() {
  std::string text;
  std::error_code error;
  for (const fs::path& path : driver_files())
    if (fs::exists(path, error)) text += describe(path) + "\n";
  return text;
}

}  // namespace ocltensor::opencl
