/* plugin.h and stubs.h, as C11. */
#include "tensor_backend/stubs.h"
#define ABI_ASSERT _Static_assert
#include "layout.inc"
tb_status abi_header_in_c(const tb_call* call) { return call == NULL ? TB_E_INVALID : TB_OK; }

/* A function that was appended to a table without a default would be NULL. */
int abi_stubs_are_complete_in_c(void) {
  tb_plugin_api plugin;
  tb_stub_fill(&plugin);
  const struct {
    const void* table;
    size_t bytes;
  } tables[] = {
      {&plugin.device, sizeof plugin.device},       {&plugin.stream, sizeof plugin.stream},
      {&plugin.event, sizeof plugin.event},         {&plugin.memory, sizeof plugin.memory},
      {&plugin.transfer, sizeof plugin.transfer},   {&plugin.operators, sizeof plugin.operators},
      {&plugin.generator, sizeof plugin.generator}, {&plugin.kernel, sizeof plugin.kernel},
      {&plugin.profiler, sizeof plugin.profiler},   {&plugin.capture, sizeof plugin.capture},
      {&plugin.switches, sizeof plugin.switches},   {&plugin.interop, sizeof plugin.interop}};
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t) {
    if (*(const uint32_t*)tables[t].table != tables[t].bytes) return 0;
    void* const* functions = (void* const*)((const char*)tables[t].table + 8);
    for (size_t i = 0; i < (tables[t].bytes - 8) / sizeof(void*); ++i)
      if (functions[i] == NULL) return 0;
  }
  return plugin.api.interop == &plugin.interop;
}
