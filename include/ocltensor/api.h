// The export mark of the host library: it exports what is marked OCLTENSOR_API, and nothing else.
// (A plugin exports what its version script names, whatever is marked.)
#pragma once

#define OCLTENSOR_API __attribute__((visibility("default")))
