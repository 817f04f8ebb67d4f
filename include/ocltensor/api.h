// The export mark of the host library: it exports what is marked OCLTENSOR_API, and nothing else.
#pragma once

#define OCLTENSOR_API __attribute__((visibility("default")))
