// How often settings have changed. Apart from config.h, which every new setting changes: what
// operators include need not be compiled again for one.
#pragma once

#include <cstdint>

namespace ocltensor::config {

// Increases with every set() and reset(), so that code can cache what it derives from a value.
uint64_t generation();

}  // namespace ocltensor::config
