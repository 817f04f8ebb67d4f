// Arguments that need memory of their own.
#include "launch.h"

#include "runtime/device/device.h"

namespace ocltensor::opencl {

Launch& Launch::bytes(const void* data, size_t size) {
  if (stream_.device().caps().structs_by_value) {
    kernel_.set_arg(next_++, size, data);
    return *this;
  }
  structures_.push_back(stream_.device().memory().allocate(size, stream_.id()));
  const Place place = resolve(structures_.back(), 0, static_cast<int64_t>(size));
  stream_.write(place.buffer, place.offset, data, size, false);
  return memory(structures_.back(), 0, static_cast<int64_t>(size));
}

Launch::~Launch() {
  for (const tb_address address : structures_) try {
      stream_.device().memory().free(address, stream_.id());
    } catch (const Error&) {  // when the device is lost: the memory is gone anyway
    }
}

}  // namespace ocltensor::opencl
