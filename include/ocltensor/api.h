// The export mark of the host library: it exports what is marked OCLTENSOR_API, and nothing else.
// (A plugin exports what its version script names, whatever is marked.)
#pragma once

#if __cplusplus < 201709L
#error "ocltensor's headers are C++20: compile with -std=c++20 or later"
#endif

#define OCLTENSOR_API __attribute__((visibility("default")))
