// Chooses tiles, and cuts of k, for a product on matrix units by mma.sync.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ocltensor::opencl::nvidia_mma {

// What is multiplied: the type, or float32 as one or two TF32 numbers.
enum class MmaKind : uint8_t { Half, BFloat, Tf32, Tf32x3, Int8 };
inline constexpr size_t kMmaKinds = 5;
constexpr int64_t bytes_of(MmaKind kind) {
  switch (kind) {
    case MmaKind::Int8: return 1;
    case MmaKind::Half:
    case MmaKind::BFloat: return 2;
    default: return 4;
  }
}

// A form of the kernel (mma_tile.h): the work-group's tile, a warp's, bytes of k in a buffer,
// buffers; and whether fragments are loaded a step ahead.
struct MmaTile {
  int64_t rows, columns, warp_rows, warp_columns, line_bytes, stages;
  bool ahead;
  // For the model: work-groups that a compute unit has room for, the part of the matrix units'
  // speed that they reach together, and the least microseconds of a work-group for a buffer.
  int64_t together;
  double efficiency, latency;

  int64_t items() const { return rows / warp_rows * (columns / warp_columns) * 32; }
  // Before compute capability 8.0 copies go through registers: two buffers are enough.
  int64_t buffers(int64_t generation) const { return generation < 80 ? 2 : stages; }
  int64_t local_memory(int64_t generation) const {
    return (rows + columns) * line_bytes * buffers(generation);
  }
  int64_t step(MmaKind kind) const { return line_bytes / bytes_of(kind); }  // of k in a buffer
};
// Figures: an H200, partly measured (see the README), partly guessed from them.
inline constexpr std::array<MmaTile, 6> kMmaTiles{{
    {128, 256, 64, 64, 128, 3, true, 1, 1.0, 0.7},
    {128, 128, 64, 64, 64, 3, false, 2, 0.93, 0.5},
    {128, 128, 64, 32, 128, 3, false, 1, 1.0, 0.8},
    {128, 128, 64, 32, 64, 3, false, 1, 0.85, 0.45},
    {64, 64, 32, 32, 64, 4, false, 5, 0.6, 0.3},
    {16, 128, 16, 32, 64, 4, false, 5, 0.3, 0.3},
}};
// Whether a kind uses a tile: what it would keep in registers must fit.
constexpr bool takes_tile(MmaKind kind, int64_t generation, const MmaTile& tile) {
  const bool wide = tile.warp_rows * tile.warp_columns == 64 * 64;
  const bool of_75 = kind == MmaKind::Half || kind == MmaKind::Int8;
  if (generation < 80) return of_75 && !wide && tile.line_bytes == 64;
  switch (kind) {
    case MmaKind::Tf32: return (wide && !tile.ahead) || tile.rows < 128;
    case MmaKind::Tf32x3: return !wide;
    default: return wide || tile.rows < 128;
  }
}

// What the choice depends on. Bit i of `usable`: tile i may be chosen.
struct MmaSizes {
  int64_t batch, m, n, k, units;
  MmaKind kind;
  uint32_t usable;
  int64_t most_pieces;
  bool operator==(const MmaSizes&) const = default;
};
struct MmaTiles {
  size_t tile;     // in kMmaTiles
  int64_t pieces;  // of k, none of them empty
  bool operator==(const MmaTiles&) const = default;
};

inline constexpr int64_t kMostPieces = 64;

// The tiles that a device can use.
uint32_t usable_tiles(MmaKind kind, int64_t generation, int64_t local_memory);
// The cheapest of them, by a model in microseconds of an H200; at least one must be usable.
MmaTiles choose_mma_tiles(const MmaSizes& sizes);

}  // namespace ocltensor::opencl::nvidia_mma
