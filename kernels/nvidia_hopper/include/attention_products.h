// Products of attention on Hopper's matrix units: of operands in local memory, and of scores in registers
// with such an operand. Shapes follow from DEPTH 64 or 128, and from BN, the streamed rows of a block (in
// forward: keys), 64 or 128. Of the other operand a work-group keeps 128 rows, in forward with DEPTH 64 up to
// 192.
#ifndef OCLTENSOR_ATTENTION_PRODUCTS_H
#define OCLTENSOR_ATTENTION_PRODUCTS_H
#include "attention_hopper.h"

#define OUTPUTS CAT(OUTPUTS_, DEPTH)  // an item's accumulators of a result, or of a kept operand's gradient
#define OUTPUTS_64 32
#define OUTPUTS_128 64
#if BN == 64
#define SCORE_COUNT 32
#define SCORE_SHAPE "m64n64k16"
#else
#define SCORE_COUNT 64
#define SCORE_SHAPE "m64n128k16"
#endif

// s = 64 kept rows at `a` times BN streamed rows at `b`, transposed; the second 64 columns are in the next
// box.
#define SCORE_STEP(a, b, add) PRODUCT_STEP(SCORE_COUNT, SCORE_SHAPE, TYPES, a, b, add, "0, 0")
#if DEPTH == 64
#define MORE_SCORE_STEPS
#elif BN == 64
#define MORE_SCORE_STEPS                                            \
  SCORE_STEP("1024", "512", "one") SCORE_STEP("1026", "514", "one") \
  SCORE_STEP("1028", "516", "one") SCORE_STEP("1030", "518", "one")
#else
#define MORE_SCORE_STEPS                                              \
  SCORE_STEP("1024", "1024", "one") SCORE_STEP("1026", "1026", "one") \
  SCORE_STEP("1028", "1028", "one") SCORE_STEP("1030", "1030", "one")
#endif
#define SCORES(s, a, b)                                                                                      \
  asm volatile(PRODUCT_TEMPORARIES SCORE_STEP("0", "0", "zero") SCORE_STEP("2", "2", "one")                  \
                   SCORE_STEP("4", "4", "one") SCORE_STEP("6", "6", "one") MORE_SCORE_STEPS PRODUCT_END_TEXT \
               : CAT(LIST_, SCORE_COUNT)("=f", s)                                                            \
               : "l"(a), "l"(b)                                                                              \
               : "memory")
// d += w (64 x BN, in registers) times BN streamed rows at `b`: 16 rows of 128 bytes per step.
#if DEPTH == 64
#define ROW_SHAPE "m64n64k16"
#else
#define ROW_SHAPE "m64n128k16"
#endif
#if DEPTH == 64 && BN == 64
#define ROWS_OPERAND "%48"
#elif DEPTH == 64
#define ROWS_OPERAND "%64"
#elif BN == 64
#define ROWS_OPERAND "%80"
#else
#define ROWS_OPERAND "%96"
#endif
#define ROW_STEP(k, offset) PRODUCT_STEP_OF_REGISTERS(OUTPUTS, ROW_SHAPE, TYPES, k, ROWS_OPERAND, offset, "1")
#if BN == 64
#define WORD_LIST LIST_16
#define MORE_ROW_STEPS
#else
#define WORD_LIST LIST_32
#define MORE_ROW_STEPS ROW_STEP(4, "512") ROW_STEP(5, "640") ROW_STEP(6, "768") ROW_STEP(7, "896")
#endif
#define ADD_ROWS(d, w, b)                                                                                    \
  asm volatile(PRODUCT_TEMPORARIES ROW_STEP(0, "0") ROW_STEP(1, "128") ROW_STEP(2, "256") ROW_STEP(3, "384") \
                   MORE_ROW_STEPS PRODUCT_END_TEXT                                                           \
               : CAT(TIES_, OUTPUTS)(d)                                                                      \
               : WORD_LIST("r", w), "l"(b)                                                                   \
               : "memory")
// q = 64 rows of the scores' gradients, which are in local memory at `a` with a row for each of 128 keys,
// times those keys at `b`: all their columns if BN is 128 (the other warpgroup has the other 64 rows), else
// half of them.
#if DEPTH == 64 && BN == 64
#define QUERY_COUNT 16
#define QUERY_SHAPE "m64n32k16"
#else
#define QUERY_COUNT 32
#define QUERY_SHAPE "m64n64k16"
#endif
#define QUERY_STEP(offset, add) PRODUCT_STEP(QUERY_COUNT, QUERY_SHAPE, TYPES, offset, offset, add, "1, 1")
#define QUERY_PRODUCT(q, a, b)                                                                    \
  asm volatile(PRODUCT_TEMPORARIES QUERY_STEP("0", "zero") QUERY_STEP("128", "one")               \
                   QUERY_STEP("256", "one") QUERY_STEP("384", "one") QUERY_STEP("512", "one")     \
                       QUERY_STEP("640", "one") QUERY_STEP("768", "one") QUERY_STEP("896", "one") \
                           PRODUCT_END_TEXT                                                       \
               : CAT(LIST_, QUERY_COUNT)("=f", q)                                                 \
               : "l"(a), "l"(b)                                                                   \
               : "memory")
#endif
