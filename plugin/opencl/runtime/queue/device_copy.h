// Copies from one device to another.
#pragma once

#include <cstdint>

#include "runtime/memory/memory.h"

namespace ocltensor::opencl {

class Stream;

// Copies `bytes` from a buffer of `from`'s device to one of `to`'s, another device, after the
// earlier work of both streams; later work of `to` comes after the copy. Contexts share no buffers,
// so the bytes go by another library that sees both devices' memory, if one does
// (OCLTENSOR_SHARED_MEMORY), and these reach each other; else through the host: once through mapped
// memory where a device shares the host's, else in pieces of page-locked memory, one being read
// while another is written. Returns when all has been read; raises invalid values of `from`'s
// kernels, as reading results does (those of `to`'s, too, by another library). Thread-safe.
void copy_between_devices(Stream& to, Place target, Stream& from, Place source, uint64_t bytes);

}  // namespace ocltensor::opencl
