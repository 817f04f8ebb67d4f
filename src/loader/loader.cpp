// Plugin loading: path rules, dlopen, and checks before any plugin code runs.
#include "loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/config.h"
#include "base/log.h"
#include "ocltensor/error.h"

namespace ocltensor {
namespace {

constexpr const char* kComponent = "loader";

// The tables that tb_api points to. All hold only function pointers after an 8-byte header.
struct Table {
  const char* name;
  size_t offset;
  uint32_t least, known;  // bytes of the table's first version and of this header's
};
#define TABLE(field, NAME) \
  { #field, offsetof(tb_api, field), TB_##NAME##_API_SIZE_V1, sizeof(*tb_api{}.field) }
constexpr Table kTables[] = {
    TABLE(device, DEVICE),       TABLE(stream, STREAM),     TABLE(event, EVENT),
    TABLE(memory, MEMORY),       TABLE(transfer, TRANSFER), TABLE(operators, OPERATOR),
    TABLE(generator, GENERATOR), TABLE(kernel, KERNEL),     TABLE(profiler, PROFILER),
    TABLE(capture, CAPTURE),     TABLE(switches, SWITCH),   TABLE(interop, INTEROP)};
#undef TABLE

// Why a file may not be loaded; empty if it may. A user who can write to the file or its folder, or
// replace a folder above it (world-writable, no sticky bit), could run code in this process.
std::string unsafe(const std::string& path) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) return "it cannot be read";
  if (!S_ISREG(s.st_mode)) return "it is not a regular file";
  if ((s.st_mode & S_IWOTH) != 0) return "it is world-writable";
  bool own_folder = true;
  for (size_t slash = path.rfind('/'); slash != std::string::npos;
       slash = slash == 0 ? std::string::npos : path.rfind('/', slash - 1)) {
    const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
    if (stat(folder.c_str(), &s) != 0) return fmt::format("folder '{}' cannot be read", folder);
    if ((s.st_mode & S_IWOTH) != 0 && (own_folder || (s.st_mode & S_ISVTX) == 0))
      return fmt::format("folder '{}' is world-writable", folder);
    own_folder = false;
  }
  return {};
}

std::string defect_of(const tb_plugin_descriptor_t& d) {
  if (d.magic != TB_PLUGIN_MAGIC) return "its descriptor has the wrong magic number";
  if (d.struct_size < TB_PLUGIN_DESCRIPTOR_SIZE_V1)
    return fmt::format("its descriptor has {} bytes, at least {} are needed", d.struct_size,
                       TB_PLUGIN_DESCRIPTOR_SIZE_V1);
  if (d.abi_major != TB_ABI_MAJOR)
    return fmt::format("it was built for ABI {}.{}, this host speaks {}.{}", d.abi_major,
                       d.abi_minor, TB_ABI_MAJOR, TB_ABI_MINOR);
  if (d.device_type == nullptr || *d.device_type == 0 || d.name == nullptr || d.version == nullptr)
    return "its descriptor lacks device type, name or version";
  return {};
}

void log_line(void*, int32_t level, const char* component, const char* message) {
  if (level < TB_LOG_TRACE || level >= TB_LOG_OFF) level = TB_LOG_ERROR;
  const auto l = static_cast<logging::Level>(level);
  if (logging::enabled(l)) logging::write(l, component, message);
}

const tb_host_api kHostApi = {
    .struct_size = sizeof(tb_host_api),
    .abi_major = TB_ABI_MAJOR,
    .abi_minor = TB_ABI_MINOR,
    .context = nullptr,
    .log = log_line,
};

// Loads and checks; returns the reason of a refusal. A refused library stays mapped: its
// initialisers have run, and unloading is never safe.
std::string open(LoadedPlugin& plugin) {
  void* library = dlopen(plugin.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return why != nullptr ? why : "dlopen failed";
  }
  const auto* descriptor =
      static_cast<const tb_plugin_descriptor_t*>(dlsym(library, TB_PLUGIN_DESCRIPTOR_SYMBOL));
  if (descriptor == nullptr)
    return fmt::format("it does not export {}", TB_PLUGIN_DESCRIPTOR_SYMBOL);
  if (std::string defect = defect_of(*descriptor); !defect.empty()) return defect;
  const auto get_api =
      reinterpret_cast<tb_plugin_get_api_fn>(dlsym(library, TB_PLUGIN_GET_API_SYMBOL));  // NOLINT
  if (get_api == nullptr) return fmt::format("it does not export {}", TB_PLUGIN_GET_API_SYMBOL);
  ErrorBuffer error;
  const tb_api* api = nullptr;
  const tb_status status = get_api(TB_ABI_MAJOR, &kHostApi, error.get(), &api);
  if (status != TB_OK)
    return fmt::format("{} failed with status {}: {}", TB_PLUGIN_GET_API_SYMBOL, status,
                       error.text());
  if (api == nullptr) return fmt::format("{} returned no table", TB_PLUGIN_GET_API_SYMBOL);
  if (std::string defect = ocltensor::defect_of(*api); !defect.empty()) return defect;
  plugin.descriptor = descriptor;
  plugin.api = api;
  return {};
}

bool is_folder(const std::string& path) {
  struct stat s {};
  return stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

constexpr std::string_view kPluginStem = "libocltensor_plugin", kPluginEnd = ".so";

// The files of a folder that have a plugin's name, sorted.
std::vector<std::string> plugin_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPluginStem) && name.ends_with(kPluginEnd)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::string defect_of(const tb_api& api) {
  if (api.struct_size < TB_API_SIZE_V1)
    return fmt::format("its tb_api has {} bytes, at least {} are needed", api.struct_size,
                       TB_API_SIZE_V1);
  if (api.abi_major != TB_ABI_MAJOR)
    return fmt::format("its tb_api has ABI major {}, this host speaks {}", api.abi_major,
                       TB_ABI_MAJOR);
  for (const Table& t : kTables) {
    const char* table =
        *reinterpret_cast<const char* const*>(reinterpret_cast<const char*>(&api) + t.offset);
    if (table == nullptr) return fmt::format("its table '{}' is missing", t.name);
    const uint32_t size = *reinterpret_cast<const uint32_t*>(table);
    if (size < t.least)
      return fmt::format("its table '{}' has {} bytes, at least {} are needed", t.name, size,
                         t.least);
    const auto* functions = reinterpret_cast<void* const*>(table + 8);
    for (uint32_t i = 0; i < (std::min(size, t.known) - 8) / sizeof(void*); ++i)
      if (functions[i] == nullptr)
        return fmt::format("function {} of its table '{}' is missing", i, t.name);
  }
  return {};
}

LoadedPlugin load_plugin_file(const std::string& path) {
  LoadedPlugin plugin;
  std::string reason;
  if (path.empty() || path[0] != '/') {
    reason = "the path is not absolute";
  } else if (const std::unique_ptr<char, decltype(&std::free)> real{realpath(path.c_str(), nullptr),
                                                                    &std::free};
             real == nullptr) {
    reason = errno == ENOENT ? "there is no such file" : std::strerror(errno);
  } else {
    plugin.path = real.get();
    reason = unsafe(plugin.path);
    if (reason.empty()) reason = open(plugin);
  }
  if (reason.empty()) {
    logging::info(kComponent, "loaded '{}': {} {}", plugin.path, plugin.descriptor->name,
                  plugin.descriptor->version);
    return plugin;
  }
  logging::info(kComponent, "refused '{}': {}", path, reason);
  plugin.refusal = fmt::format("'{}': {}", path, reason);
  plugin.path.clear();
  return plugin;
}

std::vector<LoadedPlugin> try_plugin_path() {
  std::vector<LoadedPlugin> plugins;
  const std::string list = config::get_string(config::Knob::PluginPath);
  for (size_t start = 0; start < list.size();) {
    const size_t colon = std::min(list.find(':', start), list.size());
    const std::string entry = list.substr(start, colon - start);
    start = colon + 1;
    if (entry.empty()) continue;
    std::vector<std::string> files{entry};
    if (is_folder(entry)) files = plugin_files(entry);
    if (files.empty()) {
      plugins.emplace_back();
      plugins.back().refusal =
          fmt::format("'{}': the folder holds no {}*{}", entry, kPluginStem, kPluginEnd);
    }
    for (const std::string& file : files) plugins.push_back(load_plugin_file(file));
  }
  return plugins;
}

std::vector<LoadedPlugin> load_plugin_path() {
  std::vector<LoadedPlugin> plugins = try_plugin_path();
  for (const LoadedPlugin& plugin : plugins)
    if (!plugin)
      fail(TB_E_UNAVAILABLE, "{} has an entry that cannot be loaded: {}",
           config::name(config::Knob::PluginPath), plugin.refusal);
  return plugins;
}

LoadedPlugin load_own_plugin(const std::string& host_folder) {
  const std::string installed = fmt::format("{}/{}/{}", host_folder, kPluginFolder, kPluginFile);
  std::error_code error;
  const bool is_installed = std::filesystem::exists(installed, error);
  return load_plugin_file(is_installed ? installed : host_folder + "/" + kPluginFile);
}

LoadedPlugin find_plugin(std::string_view device_type, const std::string& host_folder) {
  for (const LoadedPlugin& plugin : load_plugin_path())
    if (plugin.descriptor->device_type == device_type) return plugin;
  return load_own_plugin(host_folder);
}

std::string folder_of(const void* symbol) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::unique_ptr<char, decltype(&std::free)> real{realpath(info.dli_fname, nullptr),
                                                         &std::free};
  if (real == nullptr) return {};
  const std::string path = real.get();
  return path.substr(0, path.rfind('/'));
}

}  // namespace ocltensor
