// A plugin as a file: what it exports and imports, and its loading.
#pragma once

#include <string>
#include <vector>

#include "tensor_backend/plugin.h"

namespace ocltensor::conformance {

// Names in the dynamic symbol table of an ELF file. Throws for a file that is none.
struct DynamicSymbols {
  std::vector<std::string> exported;
  std::vector<std::string> imported;
};
DynamicSymbols read_dynamic_symbols(const std::string& path);

// Is a file whose name contains `text` mapped into this process?
bool is_mapped(const std::string& text);

// Loads a plugin for the life of the process. Throws with dlopen's reason.
struct Plugin {
  explicit Plugin(const std::string& path);
  const tb_plugin_descriptor_t* descriptor;
  tb_plugin_get_api_fn get_api;
};

}  // namespace ocltensor::conformance
