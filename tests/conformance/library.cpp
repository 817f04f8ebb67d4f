// Reading ELF symbol tables; dlopen.
#include "library.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ocltensor/error.h"

namespace ocltensor::conformance {
namespace {

template <typename T>
const T* at(const std::vector<char>& file, uint64_t offset, uint64_t count = 1) {
  check(offset + count * sizeof(T) <= file.size(), "ELF file is truncated");
  return reinterpret_cast<const T*>(file.data() + offset);
}

}  // namespace

DynamicSymbols read_dynamic_symbols(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
  check(!file.empty(), "cannot read '{}'", path);
  const auto* header = at<Elf64_Ehdr>(file, 0);
  check(
      std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64,
      "'{}' is not a 64-bit ELF file", path);
  const auto* sections = at<Elf64_Shdr>(file, header->e_shoff, header->e_shnum);
  DynamicSymbols result;
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_DYNSYM) continue;
    const Elf64_Shdr& names = sections[sections[s].sh_link];
    const uint64_t count = sections[s].sh_size / sizeof(Elf64_Sym);
    const auto* symbols = at<Elf64_Sym>(file, sections[s].sh_offset, count);
    for (uint64_t i = 1; i < count; ++i) {
      const Elf64_Sym& symbol = symbols[i];
      if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
      const char* name = at<char>(file, names.sh_offset + symbol.st_name);
      if (symbol.st_shndx == SHN_UNDEF)
        result.imported.emplace_back(name);
      else if (ELF64_ST_VISIBILITY(symbol.st_other) == STV_DEFAULT)
        result.exported.emplace_back(name);
    }
  }
  return result;
}

bool is_mapped(const std::string& text) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(text) != std::string::npos) return true;
  return false;
}

Plugin::Plugin(const std::string& path) {
  const std::string full = std::filesystem::absolute(path);
  void* handle = dlopen(full.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) fail(TB_E_UNAVAILABLE, "cannot load the plugin: {}", dlerror());
  descriptor =
      static_cast<const tb_plugin_descriptor_t*>(dlsym(handle, TB_PLUGIN_DESCRIPTOR_SYMBOL));
  get_api = reinterpret_cast<tb_plugin_get_api_fn>(dlsym(handle, TB_PLUGIN_GET_API_SYMBOL));
  check(descriptor != nullptr && get_api != nullptr, "'{}' lacks {} or {}: not a plugin", full,
        TB_PLUGIN_DESCRIPTOR_SYMBOL, TB_PLUGIN_GET_API_SYMBOL);
}

}  // namespace ocltensor::conformance
