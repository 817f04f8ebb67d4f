// Drawing loop of the random kernels: a run of BLOCKS counter blocks at a time. WIDE is 1 if a number needs
// 64 bits.
//   DRAW(p, i, w, body)   runs `body` for every element i (long) of this work-item with its word w (WORD)
//   DRAW_RUNS(p, first, words, whole, i, w, body)   runs `whole` for every whole run of RUN elements from
//     `first` on with their words, and `body` for the elements of the last run
#ifndef OCLTENSOR_DRAW_H
#define OCLTENSOR_DRAW_H
#include "range.h"
#include "philox.h"
#include "random_params.h"
#pragma OPENCL FP_CONTRACT OFF

#if CPU_STYLE
#define BLOCKS 16
#define DRAW_WORDS words_of_blocks
#else
#define BLOCKS 1
#define DRAW_WORDS words_of_block
#endif
#if WIDE
typedef ulong WORD;
#define WORD_AT(w, k) ((ulong)w[2 * (k)] | ((ulong)w[2 * (k) + 1] << 32))
#define RUN (2 * BLOCKS)
#define UNIT_BITS(w) ((w) >> 11)
#define UNIT_SCALE 0x1p-53
#else
typedef uint WORD;
#define WORD_AT(w, k) w[k]
#define RUN (4 * BLOCKS)
#define UNIT_BITS(w) ((w) >> 8)
#define UNIT_SCALE 0x1p-24f
#endif

#define DRAW(p, i, w, body) \
  DRAW_RUNS(p, first_, words_, DRAW_EACH(RUN, first_, words_, i, w, body), i, w, body)
#define DRAW_RUNS(p, first, words, whole, i, w, body)                 \
  FOR_EACH(chunk_, p.chunks, p.per_item) {                            \
    uint words[4 * BLOCKS];                                           \
    DRAW_WORDS(p.seed, p.offset + (ulong)chunk_ * BLOCKS, words);     \
    const long first = chunk_ * RUN;                                  \
    if (first + RUN <= p.count) {                                     \
      whole                                                           \
    } else {                                                          \
      DRAW_EACH(p.count - first, first, words, i, w, body)            \
    }                                                                 \
  }
#define DRAW_EACH(n, first, words, i, w, body) \
  for (int k_ = 0; k_ < (n); ++k_) {           \
    const long i = first + k_;                 \
    const WORD w = WORD_AT(words, k_);         \
    body                                       \
  }

// REAL is the widest type: logarithms in double, rounded once, give the same bits as the CPU backend.
#ifdef cl_khr_fp64
typedef double REAL;
#define REAL_UNIT ((double)UNIT_SCALE)
#else
typedef float REAL;
#define REAL_UNIT UNIT_SCALE
#endif
#endif
