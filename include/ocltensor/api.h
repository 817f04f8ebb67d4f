// What the host library exports: everything marked OCLTENSOR_API, and nothing else.
#pragma once

#define OCLTENSOR_API __attribute__((visibility("default")))
