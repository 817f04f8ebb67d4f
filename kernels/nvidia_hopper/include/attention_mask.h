// Masks of attention on Hopper's matrix units: numbers that are added to scores, or bools, and the ends of
// causal rows and of keys. Items read the mask from memory, or, if MASK_TILES is 1, the copy engine brings
// its blocks: numbers of TYPE in lines at multiples of 16 bytes. Names are those of forward.cl and
// backward.cl, which say how many MASK_ROWS_OF_BOX are copied together.
#ifndef OCLTENSOR_ATTENTION_MASK_H
#define OCLTENSOR_ATTENTION_MASK_H

// Masks the keys from end0 and end1 on, where rows are queries.
#define MASK_ROWS(n)                                                                        \
  {                                                                                         \
    const int left0 = end0 - (n) * BN - quarter * 2, left1 = end1 - (n) * BN - quarter * 2; \
    UNROLL for (int j = 0; j < BN / 8; ++j) {                                               \
      s[j * 4] = j * 8 < left0 ? s[j * 4] : -INFINITY;                                      \
      s[j * 4 + 1] = j * 8 + 1 < left0 ? s[j * 4 + 1] : -INFINITY;                          \
      s[j * 4 + 2] = j * 8 < left1 ? s[j * 4 + 2] : -INFINITY;                              \
      s[j * 4 + 3] = j * 8 + 1 < left1 ? s[j * 4 + 3] : -INFINITY;                          \
    }                                                                                       \
  }

#if MASK
#define MASK_PAIR(first, second, scale, m)     \
  {                                            \
    first = WITH_MASK(first, scale, (m).x);    \
    second = WITH_MASK(second, scale, (m).y);  \
  }
#endif
// Whether items read the mask; it is then applied to all blocks, and ends of rows with it.
#define ITEMS_READ_MASK (MASK && !MASK_TILES)
#if ITEMS_READ_MASK
// Where the mask of a head begins.
#define MASK_OF(p, batch, head)                                                            \
  (AT_CONST(M, mask_base, mask_offset) + (long)(batch) * (p).scores.mask_strides[0] + \
   (long)(head) * (p).scores.mask_strides[1])
// Adds the mask of one head, which begins at `mask`, where rows are queries, and masks from end0 and end1 on.
// Loads have no condition, so that they are under way together: what does not exist is read elsewhere.
#define ADD_MASK(n, mask, queries, keys, scale)                                                          \
  {                                                                                                      \
    UNROLL for (int h = 0; h < 2; ++h) {                                                                 \
      __global const STYPE(M) *line_ = (mask) + min(row + h * 8, (queries) - 1) * p.scores.mask_row;     \
      const int first_ = (n) * BN + quarter * 2;                                                         \
      if (p.mask_in_pairs) {                                                                             \
        UNROLL for (int j = 0; j < BN / 8; ++j) {                                                        \
          const float2 m_ = PAIR(M, line_ + min(first_ + j * 8, (keys) - 2));                            \
          MASK_PAIR(s[j * 4 + h * 2], s[j * 4 + h * 2 + 1], scale, m_)                                   \
        }                                                                                                \
      } else {                                                                                           \
        UNROLL for (int j = 0; j < BN / 8; ++j) {                                                        \
          const int x_ = min(first_ + j * 8, (keys) - 1), y_ = min(first_ + j * 8 + 1, (keys) - 1);      \
          const float2 m_ = (float2)((float)LOAD(M, line_, x_ * p.scores.mask_column),                   \
                                     (float)LOAD(M, line_, y_ * p.scores.mask_column));                  \
          MASK_PAIR(s[j * 4 + h * 2], s[j * 4 + h * 2 + 1], scale, m_)                                   \
        }                                                                                                \
      }                                                                                                  \
    }                                                                                                    \
    MASK_ROWS(n)                                                                                         \
  }
#endif

#if MASK_TILES
INLINE float2 unpack_pair_bf16(uint v) { return (float2)(as_float(v << 16), as_float(v & 0xffff0000u)); }
INLINE float2 unpack_pair_f16(uint v) {
  float2 r;
  asm("{.reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
      : "=f"(r.x), "=f"(r.y) : "r"(v));
  return r;
}
#define UNPACK CAT(unpack_pair_, TYPE)
// A block of the mask in local memory: BM x BN numbers in boxes of 64 keys, with a row for each query, or one
// row if all queries share it (p.mask_rows is 1, else MASK_ROWS_OF_BOX).
#define MASK_BYTES (BM * BN * 2)
#define MASK_MAP(words, map)                                             \
  WIDE_MAP_OF(p.mask, words, map, mask_base, mask_offset, p.scores.keys, \
              p.mask_rows == 1 ? 1 : p.scores.queries, p.mask_rows)
// What the item that loads adds to a block's barrier, of whose boxes it copies each.
#define MASK_EXPECTED (MASK_BYTES / MASK_ROWS_OF_BOX * (int)p.mask_rows)
#define COPY_MASK(to, map, key, query, head_, batch_, bar)                              \
  copy_tile_4(to, map, key, p.mask_rows == 1 ? 0 : (query), p.mask.heads ? (head_) : 0, \
              p.mask.batches ? (batch_) : 0, bar);
// Adds matrices at `at` to columns of fragments j and j + 1.
#define ADD_MATRICES(turn, at, j, scale)                                            \
  {                                                                                 \
    uint4 v_;                                                                       \
    LDMATRIX(v_, turn, at)                                                          \
    UNROLL for (int i = 0; i < 2; ++i) {                                            \
      const float2 low_ = UNPACK(i ? v_.z : v_.x), high_ = UNPACK(i ? v_.w : v_.y); \
      MASK_PAIR(s[((j) + i) * 4], s[((j) + i) * 4 + 1], scale, low_)                \
      MASK_PAIR(s[((j) + i) * 4 + 2], s[((j) + i) * 4 + 3], scale, high_)           \
    }                                                                               \
  }
// Where rows are queries: this lane's row of the first matrices of a block at `at`, and the block's numbers
// added. `first` is the warp's first row in the block.
#define OWN_MASK_ROW(at, first)                                \
  ((at) + (p.mask_rows == 1 ? (lane >> 4) << 4                 \
                            : ((first) + (lane & 15)) * 128 + (((lane >> 4) ^ (lane & 7)) << 4)))
#define ADD_MASK_ROWS(own, scale)            \
  UNROLL for (int j = 0; j < BN / 8; j += 2) \
    ADD_MATRICES("", ((own) ^ (j % 8 * 16)) + j / 8 * (BM * 128), j, scale)
// The same where rows are keys, `first` in the box; rows of the block are BN queries.
#define OWN_MASK_COLUMN(at, first)                                        \
  ((at) + (p.mask_rows == 1 ? 0 : ((lane & 7) + (lane >> 4) * 8) * 128) + \
   (((((first) >> 3) + (lane >> 3 & 1)) ^ (p.mask_rows == 1 ? 0 : lane & 7)) << 4))
#define ADD_MASK_COLUMNS(own, scale)                      \
  {                                                       \
    const uint step_ = p.mask_rows == 1 ? 0 : 8 * 128;    \
    UNROLL for (int j = 0; j < BN / 8; j += 2)            \
      ADD_MATRICES(".trans", (own) + j * step_, j, scale) \
  }
#else
#define MASK_BYTES 0
#define MASK_EXPECTED 0
#endif
#endif
