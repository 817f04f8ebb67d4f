// Decides whether maps are read where they lie, and copies them if not.
#include "channels_last.h"

#include <algorithm>

#include "call/divide_up.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

bool lies_so(const Maps& maps, DType type) {
  const tk_i64* s = maps.strides;
  const auto whole = [&](int64_t elements) { return elements * size_of(type) % kChunkBytes == 0; };
  if (maps.channels > 1 && s[1] != 1) return false;
  if (maps.is_padded && whole_chunks(maps.channels, type) != maps.channels) return false;
  if (maps.is_one_run && (s[3] != maps.sizes[2] * s[4] || s[0] != maps.sizes[1] * s[3]))
    return false;
  return maps.address % kChunkBytes == 0 && whole(s[0]) && whole(s[3]) && whole(s[4]);
}

}  // namespace

int64_t whole_chunks(int64_t channels, DType type) {
  const int64_t chunk = kChunkBytes / size_of(type);
  return divide_up(channels, chunk) * chunk;
}

ChannelsLast::ChannelsLast(const OpCall& call, const Maps& maps, DType type) {
  const tk_i64* s = maps.strides;
  if (lies_so(maps, type)) {
    strides_ = {s[0], s[3], s[4]};
    memory_ = maps.memory;
    return;
  }
  const int64_t rows = maps.sizes[1], columns = maps.sizes[2];
  const int64_t channels = whole_chunks(maps.channels, type);
  strides_ = {rows * columns * channels, columns * channels, channels};
  const int64_t count = maps.batch * strides_[0];
  copy_.emplace(call.scratch(static_cast<uint64_t>(count * size_of(type))));
  memory_ = MemoryRange(*copy_);
  if (channels != maps.channels)
    copy::fill_tensor(call, LocalTensor(copy_->address(), type, Dims{count}), 0);
  const Dims sizes{maps.batch, maps.channels, rows, columns};
  copy_tensor(
      call,
      LocalTensor(copy_->address(), type, sizes, Dims{strides_[0], 1, strides_[1], strides_[2]}),
      LocalTensor(maps.address, type, sizes, Dims{s[0], s[1], s[3], s[4]}));
}

}  // namespace ocltensor::opencl::nvidia_mma
