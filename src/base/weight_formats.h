// The table of weight formats (weight_formats.def), and a quantised weight as a call describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "value.h"

namespace ocltensor {

enum class WeightLayout : uint8_t {
  Rows,  // row after row, each of whole blocks
  Flat,  // all elements one after another: a row need not begin with a block
  Tiles  // [N / 8][K / columns][8][columns]; in a row of a tile, 32 elements have 16 bytes, the
         // first half of them in low nibbles. `columns` are 32, 64 or 128: the tensor's shape.
};
enum class WeightScales : uint8_t { Apart, Within };  // a tensor of their own, or in the blocks
enum class WeightZero : uint8_t {
  None,
  Subtracted,  // (q - zero) * scale
  Added,       // q * scale + zero
  Codes        // no zeros: the 16 codes in their place
};
enum WeightTraits : uint32_t {
  kAlternating = 1,  // a byte has two neighbours: kernels unpack even elements, then odd ones
  kOffsets = 2,      // values are element * scale + offset
  kCoded = 4,        // elements are numbers of codes in a table
  kFifthBits = 8     // beside 4 bits of 32 elements there is a word of their fifth ones
};

struct WeightFormat {
  const char* name;
  WeightLayout layout;
  int64_t block, bytes, align;
  WeightScales scales;
  WeightZero zero;
  int64_t unit, span, loads, upper;
  uint32_t traits;
  const char* what;

  bool is(WeightTraits trait) const { return (traits & trait) != 0; }
};
std::span<const WeightFormat> weight_formats();
const WeightFormat* find_weight_format(std::string_view name);  // nullptr if unknown

// A weight of N rows and K columns whose parts fit together. Scales and zeros are [N or 1][groups],
// those of a flat layout [blocks], codes [16].
struct QuantisedWeight {
  const WeightFormat* format;
  int64_t n, k;
  int64_t group;  // elements along K, or of all elements, that share a scale; K: a row
  TensorView bytes;
  std::optional<TensorView> scale, zero;

  int64_t pitch() const { return k / format->block * format->bytes; }  // bytes of a row
  int64_t tile_columns() const;                                        // of Tiles
};
// Reads `weight`, `scale`, `offset` (zeros), `mode` (the format) and `group` of a call. Throws
// TB_E_INVALID where they do not describe such a weight, with format, dimension and size.
QuantisedWeight quantised_weight(const Args& args, int64_t n, int64_t k);

}  // namespace ocltensor
