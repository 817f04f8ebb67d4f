// plugin.h alone, as C++.
#include "tensor_backend/plugin.h"
#define ABI_ASSERT static_assert
#include "layout.inc"
extern "C" tb_status abi_header_in_c(const tb_call* call);
int main() { return abi_header_in_c(nullptr) == TB_E_INVALID ? 0 : 1; }
