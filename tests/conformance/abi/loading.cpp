// Checks of a plugin file: exports, imports, descriptor, get_api's contract.
#include <algorithm>
#include <cstring>

#include "../checks.h"
#include "../library.h"

namespace ocltensor::conformance {

void check_file(Checker& c, const std::string& path) {
  const DynamicSymbols symbols = read_dynamic_symbols(path);
  std::vector<std::string> exported = symbols.exported;
  std::sort(exported.begin(), exported.end());
  c.expect(
      exported == std::vector<std::string>{TB_PLUGIN_DESCRIPTOR_SYMBOL, TB_PLUGIN_GET_API_SYMBOL},
      "exports must be exactly {} and {} (a linker's version script keeps others inside), found: "
      "{}",
      TB_PLUGIN_DESCRIPTOR_SYMBOL, TB_PLUGIN_GET_API_SYMBOL, fmt::join(exported, " "));
  for (const std::string& name : symbols.imported)
    c.expect(name.find("ocltensor") == std::string::npos && !name.starts_with("tb_") &&
                 !name.starts_with("_ZN2at") && !name.starts_with("_ZN3c10"),
             "imports '{}' from a host", name);
}

namespace {

void check_descriptor(Checker& c, const tb_plugin_descriptor_t& d) {
  c.expect(d.magic == TB_PLUGIN_MAGIC, "descriptor magic is {:#x}", d.magic);
  c.expect(d.struct_size >= TB_PLUGIN_DESCRIPTOR_SIZE_V1, "descriptor size is {}", d.struct_size);
  c.expect(d.abi_major == TB_ABI_MAJOR, "descriptor ABI major is {}", d.abi_major);
  for (const char* text : {d.device_type, d.name, d.version})
    c.expect(text != nullptr && text[0] != 0, "descriptor has an empty text");
}

}  // namespace

const tb_api* check_loading(Checker& c, const Plugin& plugin) {
  c.cite(rule::kDescriptor);
  check_descriptor(c, *plugin.descriptor);
  c.cite(rule::kExports);
  const tb_host_api host = {sizeof(tb_host_api), TB_ABI_MAJOR, TB_ABI_MINOR, nullptr, nullptr};
  ErrorBuffer error;
  const tb_api* api = nullptr;
  const tb_api* again = nullptr;

  tb_status status = plugin.get_api(TB_ABI_MAJOR + 1, &host, error.get(), &api);
  c.expect(status == TB_E_ABI, "get_api of a later major: status {}", status);
  c.expect(error.text()[0] != 0, "get_api of a later major: no text");
  status = plugin.get_api(TB_ABI_MAJOR + 1, &host, nullptr, &api);
  c.expect(status == TB_E_ABI, "get_api of a later major with no tb_error: status {}", status);

  tb_host_api small = host;
  small.struct_size = TB_HOST_API_SIZE_V1 - 8;
  status = plugin.get_api(TB_ABI_MAJOR, &small, error.get(), &api);
  c.expect(status == TB_E_ABI, "get_api with a host table below its first size: status {}", status);

  // A newer host has more fields: the plugin uses what it knows.
  c.cite(rule::kSizes);
  struct {
    tb_host_api known;
    void* unknown[8];
  } larger{host, {}};
  larger.known.struct_size = sizeof larger;
  status = plugin.get_api(TB_ABI_MAJOR, &larger.known, error.get(), &again);
  c.expect(status == TB_OK, "get_api with a larger host table: {} {}", status, error.text());
  c.cite(rule::kExports);
  status = plugin.get_api(TB_ABI_MAJOR, &host, nullptr, &api);
  c.expect(status == TB_OK && api != nullptr, "get_api with no tb_error: status {}", status);
  c.expect(api == again, "two calls of get_api give two tables");
  c.expect(!is_mapped("libOpenCL") && !is_mapped("libpocl"),
           "a driver is mapped after get_api: loading must touch none");
  return api;
}

}  // namespace ocltensor::conformance
