// Numbers for proofs of kernels: drawn on the host, converted and moved to the device and back.
#pragma once

#include <vector>

#include "call/op_call.h"

namespace ocltensor::opencl {

class ProofNumbers {
 public:
  explicit ProofNumbers(const OpCall& call) : call_(call) {}
  // Random integers from -most to most.
  std::vector<float> draw(int64_t count, int most) {
    std::vector<float> list(static_cast<size_t>(count));
    for (float& x : list) {
      state_ = state_ * 1664525u + 1013904223u;
      x = static_cast<float>(static_cast<int>(state_ >> 16) % (2 * most + 1) - most);
    }
    return list;
  }
  // Memory that lives as long as this object.
  tb_address upload(const std::vector<float>& list, DType type) {
    const Dims sizes{static_cast<int64_t>(list.size())};
    const uint64_t bytes = list.size() * sizeof(float);
    const tb_address floats = allocate(bytes);
    const Place place = resolve(floats, 0, static_cast<int64_t>(bytes));
    call_.stream().write(place.buffer, place.offset, list.data(), bytes, false);
    if (type == DType::Float32) return floats;
    const tb_address converted = allocate(list.size() * static_cast<size_t>(size_of(type)));
    copy_tensor(call_, LocalTensor(converted, type, sizes),
                LocalTensor(floats, DType::Float32, sizes));
    return converted;
  }
  std::vector<float> download(tb_address from, DType type, int64_t count) {
    std::vector<float> list(static_cast<size_t>(count));
    const uint64_t bytes = list.size() * sizeof(float);
    const tb_address floats = allocate(bytes);
    copy_tensor(call_, LocalTensor(floats, DType::Float32, Dims{count}),
                LocalTensor(from, type, Dims{count}));
    const Place place = resolve(floats, 0, static_cast<int64_t>(bytes));
    call_.stream().read(list.data(), place.buffer, place.offset, bytes, false);
    return list;
  }

 private:
  tb_address allocate(uint64_t bytes) {
    memory_.push_back(call_.scratch(bytes));
    return memory_.back().address();
  }
  const OpCall& call_;
  uint32_t state_ = 12345;
  std::vector<Scratch> memory_;
};

}  // namespace ocltensor::opencl
