// What the copy engine and the kernel of convolution.cl do, step by step on the host: every copy by
// the words of its tensor map, into the places of local memory that the products read.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "call/divide_up.h"
#include "conv_hopper_places.h"
#include "nvidia_hopper/conv/plan.h"
#include "ops/conv/conv_shape.h"

namespace ocltensor::opencl::nvidia_hopper {

using conv::conv_params_of, conv::ConvShape, conv::for_each_conv_term;

// Numbers at multiples of `item` bytes from an address; what is read outside is counted.
struct EngineMemory {
  const std::vector<float>* numbers;
  int64_t item;
  int64_t* misses;
  float at(int64_t bytes) const {
    const int64_t i = bytes / item;
    if (bytes % item != 0 || i < 0 || i >= static_cast<int64_t>(numbers->size())) {
      ++*misses;
      return 0;
    }
    return (*numbers)[static_cast<size_t>(i)];
  }
};

// Lines of 128 bytes in local memory; the swizzle is undone by the reader.
using EngineTile = std::vector<float>;

// The im2col map, read back from its words.
struct Im2colMap {
  int64_t size[4];                     // channels, x, y, images
  int64_t step[3];                     // bytes from x to x, y to y, image to image
  int64_t low[2], high[2], stride[2];  // x, y
  int64_t block, pixels;

  explicit Im2colMap(const tk_u32* w, int64_t item) {
    for (int d = 0; d < 4; ++d) size[d] = int64_t{w[8 + d]} + 1;
    for (int d = 0; d < 3; ++d) step[d] = int64_t{w[3 + d]} * 16;
    for (int d = 0; d < 2; ++d) {
      low[d] = static_cast<int8_t>(w[14] >> (8 * d));
      high[d] = static_cast<int8_t>(w[14] >> (16 + 8 * d));
      stride[d] = ((w[13] >> (3 + 3 * d)) & 7) + 1;
    }
    block = (w[13] >> 24) + 1;
    pixels = int64_t{w[15]} + 1;
    EXPECT_EQ(w[16], pixels * block * item);
    EXPECT_EQ(block * item, 128);
    for (const int i : {0, 1, 6, 7, 12, 17}) EXPECT_EQ(w[i], 0u) << i;
    EXPECT_EQ(w[18], 0x400u);
    EXPECT_EQ(w[2] & 0xffffu & ~(15u << 7), 0x6031u);
  }

  // Pixels from (x, y, image) on: along a row to its box's end, then to the next row and image.
  // Each moved by (dx, dy), zeros outside.
  void copy(EngineTile& tile, int64_t place, const EngineMemory& memory, int64_t c, int64_t x,
            int64_t y, int64_t image, int64_t dx, int64_t dy) const {
    EXPECT_GE(x, low[0]);
    EXPECT_LE(x, size[1] - 1 + high[0]);
    EXPECT_GE(y, low[1]);
    EXPECT_LE(y, size[2] - 1 + high[1]);
    EXPECT_TRUE(dx >= 0 && dx < 256 && dy >= 0 && dy < 256);
    for (int64_t i = 0; i < pixels; ++i) {
      const int64_t at_x = x + dx, at_y = y + dy;
      const bool inside =
          at_x >= 0 && at_x < size[1] && at_y >= 0 && at_y < size[2] && image < size[3];
      for (int64_t e = 0; e < block; ++e)
        tile[static_cast<size_t>(place + i * block + e)] =
            inside && c + e < size[0] ? memory.at(at_x * step[0] + at_y * step[1] +
                                                  image * step[2] + (c + e) * memory.item)
                                      : 0.0f;
      if ((x += stride[0]) <= size[1] - 1 + high[0]) continue;
      x = low[0];
      if ((y += stride[1]) <= size[2] - 1 + high[1]) continue;
      y = low[1];
      ++image;
    }
  }
};

// The tiled map of the other operand: boxes of `block` x `lines`.
struct TiledMap {
  const ConvHopperParams& p;
  int64_t block, lines;
  void copy(EngineTile& tile, int64_t place, const EngineMemory& memory, int64_t x, int64_t y,
            int64_t z, int64_t w) const {
    for (int64_t j = 0; j < lines; ++j)
      for (int64_t e = 0; e < block; ++e) {
        const bool inside = x + e < p.line_sizes[0] && y + j < p.line_sizes[1] &&
                            z < p.line_sizes[2] && w < p.line_sizes[3];
        const int64_t at = (x + e) * memory.item +
                           (y + j) * static_cast<int64_t>(p.line_strides[0]) +
                           z * static_cast<int64_t>(p.line_strides[1]) +
                           w * static_cast<int64_t>(p.line_strides[2]);
        tile[static_cast<size_t>(place + j * block + e)] = inside ? memory.at(at) : 0.0f;
      }
  }
};

// kernels/nvidia_hopper/conv/convolution.cl. `out` is where the parameters' strides begin; bias may
// be empty.
class ConvHopperEngine {
 public:
  ConvHopperEngine(const ConvHopperParams& p, const ConvHopperVariant& v, const EngineMemory& map,
                   const EngineMemory& lines, const std::vector<float>& bias)
      : p_(p),
        v_(v),
        bf16_parts_(bf16_parts_of(v.kind)),
        block_(block_of(v.kind)),
        memory_{map, lines},
        bias_(bias),
        window_map_(p.map, item_of(v.kind)),
        line_map_{p, v.weight ? 64 : block_, v.weight ? block_ : v.columns} {
    a_.resize(static_cast<size_t>(bf16_parts_ * kHopperRows * block_));
    b_.resize(static_cast<size_t>(bf16_parts_ * v.columns * block_));
  }

  template <typename Store>  // store(index in the result, value)
  void run(Store&& store) {
    const int64_t m_tiles = divide_up(p_.m, kHopperRows), n_tiles = divide_up(p_.n, v_.columns);
    for (int64_t piece = 0; piece < p_.pieces; ++piece)
      for (int64_t t = 0; t < m_tiles * n_tiles; ++t)
        run_tile(piece, t % m_tiles * kHopperRows, t / m_tiles * v_.columns, store);
  }

 private:
  using Sums = std::vector<double>;

  template <typename Store>
  void run_tile(int64_t piece, int64_t m0, int64_t n0, Store&& store) {
    Sums sums(static_cast<size_t>(kHopperRows * v_.columns), 0.0);
    const int64_t first = piece * p_.piece_steps;
    const int64_t last = std::min<int64_t>(first + p_.piece_steps, p_.steps);
    ASSERT_LT(first, last);  // no piece is empty
    for (int64_t step = first; step < last; ++step) {
      v_.weight ? fetch_weight(step, m0, n0) : fetch(step, m0, n0);
      multiply(sums);
    }
    for (int64_t r = 0; r < kHopperRows; ++r)
      for (int64_t j = 0; j < v_.columns; ++j) {
        const int64_t row = m0 + r, column = n0 + j;
        if (row >= p_.m || column >= p_.n) continue;
        const bool in_rows = v_.weight || v_.partial;
        const int64_t at =
            piece * p_.out_piece +
            (in_rows ? row * p_.n + column
                     : conv_result_at(static_cast<tk_i32>(row), p_) + column * p_.out_channel);
        const bool biased = !in_rows && v_.bias;
        store(at, sums[static_cast<size_t>(r * v_.columns + j)] +
                      (biased ? bias_[static_cast<size_t>(column)] : 0.0f));
      }
  }

  void fetch(int64_t step, int64_t m0, int64_t n0) {
    const auto tap = static_cast<tk_i32>(step / p_.blocks);
    const int64_t block = step - tap * p_.blocks;
    const ConvWindow w = conv_window_at(static_cast<tk_i32>(m0), p_);
    const ConvTap at = conv_tap_at(tap, p_);
    for (int64_t bf16_part = 0; bf16_part < bf16_parts_; ++bf16_part) {
      window_map_.copy(a_, bf16_part * kHopperRows * block_, memory_[0], block * block_, w.x, w.y,
                       bf16_part * p_.images + w.image, at.dx, at.dy);
      line_map_.copy(b_, bf16_part * v_.columns * block_, memory_[1], block * block_, n0, at.line,
                     bf16_part);
    }
  }
  void fetch_weight(int64_t step, int64_t m0, int64_t n0) {
    const ConvWindow w = conv_window_at(static_cast<tk_i32>(step * block_), p_);
    constexpr int64_t kBlock = 64 * 64;  // 8192 bytes
    for (int64_t bf16_part = 0; bf16_part < bf16_parts_; ++bf16_part) {
      for (int64_t i = 0; i < 2; ++i)
        line_map_.copy(a_, bf16_part * kHopperRows * block_ + i * kBlock, memory_[1], m0 + i * 64,
                       step * block_, 0, bf16_part);
      for (int64_t j = 0; j < v_.columns / 64; ++j) {
        const int64_t block = n0 / 64 + j, tap = block / p_.blocks;
        const bool inside = block < p_.n / 64;
        const ConvTap at = conv_tap_at(static_cast<tk_i32>(inside ? tap : 0), p_);
        const int64_t c = (inside ? block - tap * p_.blocks : p_.blocks) * 64;
        window_map_.copy(b_, bf16_part * v_.columns * block_ + j * kBlock, memory_[0], c, w.x, w.y,
                         bf16_part * p_.images + w.image, at.dx, at.dy);
      }
    }
  }

  // The place of (row, k): along k rows are lines; else blocks of 64 rows, a line for each k.
  int64_t place(int64_t row, int64_t k) const {
    return v_.weight ? row / 64 * 4096 + k * 64 + row % 64 : row * block_ + k;
  }
  void multiply(Sums& sums) const {
    for (int64_t i = 0; i < bf16_parts_; ++i)
      for (int64_t j = 0; i + j < std::max<int64_t>(bf16_parts_, 1); ++j)
        for (int64_t r = 0; r < kHopperRows; ++r)
          for (int64_t k = 0; k < block_; ++k) {
            const float a = a_[static_cast<size_t>(i * kHopperRows * block_ + place(r, k))];
            if (a == 0) continue;
            for (int64_t c = 0; c < v_.columns; ++c)
              sums[static_cast<size_t>(r * v_.columns + c)] +=
                  double{a} * b_[static_cast<size_t>(j * v_.columns * block_ + place(c, k))];
          }
  }

  const ConvHopperParams& p_;
  const ConvHopperVariant v_;
  const int64_t bf16_parts_, block_;
  const EngineMemory memory_[2];
  const std::vector<float>& bias_;
  const Im2colMap window_map_;
  const TiledMap line_map_;
  EngineTile a_, b_;
};

}  // namespace ocltensor::opencl::nvidia_hopper
