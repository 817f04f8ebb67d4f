// Finding, checking and loading a backend plugin, for both hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor_backend/plugin.h"

namespace ocltensor {

inline constexpr const char* kPluginFile = "libocltensor_plugin.so";
// Below the folder of an installed host library: the plugin of the library's own version.
inline constexpr const char* kPluginFolder = OCLTENSOR_PLUGIN_FOLDER;

struct LoadedPlugin {
  const tb_plugin_descriptor_t* descriptor = nullptr;  // nullptr: nothing was loaded
  const tb_api* api = nullptr;
  std::string path;
  std::string refusal;  // why it was not loaded: the file and the reason
  explicit operator bool() const { return api != nullptr; }
};

// Loads one file by its absolute path. Never throws for a bad plugin.
LoadedPlugin load_plugin_file(const std::string& path);

// Every plugin that OCLTENSOR_PLUGIN_PATH names, in that order. An entry is a file, or a folder
// whose files libocltensor_plugin*.so are all loaded. An entry that cannot be loaded, or a folder
// without such a file, is an element with a refusal.
std::vector<LoadedPlugin> try_plugin_path();

// The same; but a refusal is an Error TB_E_UNAVAILABLE that names the variable, the entry and the
// reason.
std::vector<LoadedPlugin> load_plugin_path();

// The plugin that comes with a host library in `host_folder`: kPluginFile in its kPluginFolder (an
// installed tree), else beside it (a build tree, a wheel).
LoadedPlugin load_own_plugin(const std::string& host_folder);

// The plugin for a device type: the first of load_plugin_path(), else load_own_plugin(). Throws as
// load_plugin_path() does.
LoadedPlugin find_plugin(std::string_view device_type, const std::string& host_folder);

// The folder of the shared library (or program) that contains `symbol`.
std::string folder_of(const void* symbol);

// Text of the first defect of a table: versions, sizes, NULL pointers; empty if there is none.
std::string defect_of(const tb_api& api);

}  // namespace ocltensor
