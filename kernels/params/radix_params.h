// Parameters of sorting on GPUs: rows of `length` entries.
#ifndef OCLTENSOR_RADIX_PARAMS_H
#define OCLTENSOR_RADIX_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 rows, length;
  tk_i64 kept;        // entries of each sorted row that are wanted
  tk_i64 raw_length;  // elements of a row of the input that the entries come from
  tk_i64 tiles;       // parts of a row, a work-group each
  tk_i64 tile_rows;   // radix_tile.cl: whole rows in a tile
  // radix.cl: byte offsets in the scratch memory. Keys and positions alternate between two buffers.
  tk_u64 keys[2], positions[2];
  tk_u64 counts, totals;  // [rows][tiles][256], [rows][256]
  tk_u64 varying;         // 2 words: bits that differ between keys
  tk_i32 pass, passes;    // over digits of 8 bits, from the lowest on; higher digits are not needed
  tk_i32 lanes;           // work-items that share the counts of a digit
  tk_i32 reserved;
} RadixParams;
#endif
