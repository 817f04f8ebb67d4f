// plugin.h and stubs.h, as C++.
#include "tensor_backend/stubs.h"
#define ABI_ASSERT static_assert
#include "layout.inc"
extern "C" tb_status abi_header_in_c(const tb_call* call);
extern "C" int abi_stubs_are_complete_in_c();

int main() {
  if (abi_header_in_c(nullptr) != TB_E_INVALID) return 1;
  if (abi_stubs_are_complete_in_c() != 1) return 2;
  tb_plugin_api plugin;
  tb_stub_fill(&plugin);
  int32_t devices = 7;
  return plugin.api.device->count(&devices, nullptr) == TB_OK && devices == 0 ? 0 : 3;
}
