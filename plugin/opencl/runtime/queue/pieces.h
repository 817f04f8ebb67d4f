// Bytes on their way in pieces, through memory that both sides reach: while one piece is emptied
// the next ones are being filled. The order alone; what filling and emptying mean is the caller's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace ocltensor::opencl {

struct PieceOrder {
  uint64_t piece_bytes;
  size_t ahead;  // pieces that are being filled, at most, when one is emptied; 1 or more
};

// Calls fill(at, count) for one piece after another, which begins to fill it and returns what
// stands for it; and empty(piece) for each in the same order: when `ahead` of them are being
// filled, or no byte is left. What throws ends it.
template <typename Fill, typename Empty>
void pass_in_pieces(uint64_t bytes, const PieceOrder& order, const Fill& fill, const Empty& empty) {
  std::deque<decltype(fill(uint64_t{}, uint64_t{}))> filling;
  const auto empty_oldest = [&] {
    empty(filling.front());
    filling.pop_front();
  };
  for (uint64_t at = 0; at < bytes; at += order.piece_bytes) {
    if (filling.size() == order.ahead) empty_oldest();
    filling.push_back(fill(at, std::min(bytes - at, order.piece_bytes)));
  }
  while (!filling.empty()) empty_oldest();
}

}  // namespace ocltensor::opencl
