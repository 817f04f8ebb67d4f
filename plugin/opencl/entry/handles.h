// The ABI's opaque handles and the objects behind them.
#pragma once

#include "entry.h"
#include "runtime/device/generator.h"
#include "runtime/queue/event.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {

inline tb_stream to_handle(Stream& stream) { return reinterpret_cast<tb_stream>(&stream); }
inline Stream& stream_of(tb_stream handle) {
  check(handle != nullptr, "'stream' must not be NULL");
  return *reinterpret_cast<Stream*>(handle);
}
inline Event& event_of(tb_event handle) {
  check(handle != nullptr, "'event' must not be NULL");
  return *reinterpret_cast<Event*>(handle);
}
inline Generator& generator_of(tb_generator handle) {
  check(handle != nullptr, "'generator' must not be NULL");
  return *reinterpret_cast<Generator*>(handle);
}

}  // namespace ocltensor::opencl
