// Finding, checking and loading a backend plugin. Shared with other hosts: depends on src/base
// only.
#pragma once

#include <string>
#include <vector>

#include "tensor_backend/plugin.h"

namespace ocltensor {

inline constexpr const char* kPluginFile = "libocltensor_plugin.so";

struct LoadedPlugin {
  const tb_plugin_descriptor_t* descriptor = nullptr;  // nullptr: nothing was loaded
  const tb_api* api = nullptr;
  std::string path;
  std::vector<std::string> refusals;  // why each candidate before it was refused
  explicit operator bool() const { return api != nullptr; }
  std::string reason() const;  // the refusals as one text
};

// Loads one file by its absolute path. Never throws for a bad plugin.
LoadedPlugin load_plugin_file(const std::string& path);

// Tries, in this order: `explicit_path` alone if it is not empty; the entries of
// OCLTENSOR_PLUGIN_PATH (files, or folders that hold kPluginFile); kPluginFile in `host_folder`.
// The first file that loads wins. Every refusal is logged.
LoadedPlugin find_plugin(const std::string& explicit_path, const std::string& host_folder);

// The folder of the shared library (or program) that contains `symbol`.
std::string folder_of(const void* symbol);

// Text of the first defect of a table: versions, sizes, NULL pointers; empty if there is none.
std::string defect_of(const tb_api& api);

}  // namespace ocltensor
