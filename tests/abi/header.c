/* plugin.h alone, as C11. */
#include "tensor_backend/plugin.h"
#define ABI_ASSERT _Static_assert
#include "layout.inc"
tb_status abi_header_in_c(const tb_call* call) { return call == NULL ? TB_E_INVALID : TB_OK; }
