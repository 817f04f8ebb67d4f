// Maps whose channels are neighbours in whole chunks of 16 bytes, as copies to local memory need
// them: a tensor itself, or a copy of it.
#pragma once

#include <array>
#include <optional>

#include "ops/conv/conv.h"

namespace ocltensor::opencl::nvidia_mma {

inline constexpr int64_t kChunkBytes = 16;

// Channels of a type that fill whole chunks.
int64_t whole_chunks(int64_t channels, DType type);

// A tensor of maps as a convolution's parameters describe it.
struct Maps {
  tb_address address;
  int64_t batch, channels;
  const tk_i64 *sizes, *strides;  // [1], [2]: of rows and columns; [0], [1], [3], [4]
  MemoryRange memory;
  // Of an operand whose channels are read to the end of the last chunk, where a copy has zeros.
  bool is_padded;
  // Its pixels, of all images, have to lie at equal distances.
  bool is_one_run;
};

class ChannelsLast {
 public:
  ChannelsLast(const OpCall& call, const Maps& maps, DType type);
  const MemoryRange& memory() const { return memory_; }
  int64_t image() const { return strides_[0]; }  // elements between images, rows and columns
  int64_t row() const { return strides_[1]; }
  int64_t column() const { return strides_[2]; }

 private:
  std::array<int64_t, 3> strides_;
  std::optional<Scratch> copy_;
  MemoryRange memory_{nullptr};
};

}  // namespace ocltensor::opencl::nvidia_mma
