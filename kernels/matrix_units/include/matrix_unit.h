// A vendor's matrix unit as kernels see it: fragments of operands and of sums that the lanes of a sub-group
// hold, and their product. The unit's own header says how large they are and what a lane holds, after the
// vendor's documentation; with EMULATED the product is OpenCL C, a work-item a lane, so that all that is
// around it runs on any device.
//   LANES                   of a sub-group: adjacent work-items
//   FRAGMENT_M, FRAGMENT_N  rows and columns of a product's sums
//   STEP_WORDS              of each line, along k, that one product takes; a word is 4 bytes
//   left_t, right_t         what a lane holds of a fragment of each operand
//   LEFT_PLACE(line, word)  where a word of a line is in local memory, of LINE_WORDS (PITCH) a line, and
//                           LEFT_STRIDE words from one to the next; a line is a row, of RIGHT_PLACE a column
//   LEFT_FRAGMENT(lines, first, word, lane), RIGHT_FRAGMENT    a lane's share of what begins there
//   SUMS, sums_t            of a lane; sum e is in row SUM_ROW(lane, e), column SUM_COLUMN(lane, e)
//   UNIT_ATTRIBUTES         of a kernel that uses the unit
//   unit_product(sums, a, b, lane)   sums + a b, by the unit itself
//   show(held, a, b), left_of(held, row, word, lane), right_of    for emulation: a lane puts HELD_WORDS words
//                           where others see them; the word that the unit multiplies for `lane` there
// Along k any order will do that is the same for both operands: a header may take what a lane reads at once,
// 16 bytes, for several products of fewer bytes.
// Defines: UNIT (one of those below), GENERATION (of the unit), FRAGMENT (the unit's, where it has several),
// TYPE f16, bf16, f32 or i8, EMULATED.
#ifndef OCLTENSOR_MATRIX_UNIT_H
#define OCLTENSOR_MATRIX_UNIT_H
#include "types.h"

#define UNIT_AMD_DOT 1
#define UNIT_AMD_MFMA 2
#define UNIT_AMD_WMMA 3
#define UNIT_INTEL_XMX 4

#define KIND_f16 0
#define KIND_bf16 1
#define KIND_f32 2
#define KIND_i8 3
#define KIND CAT(KIND_, TYPE)
#if KIND == KIND_i8
typedef int sum_t;
#define SUM_VECTOR(n) CAT(int, n)
#define PER_WORD 4
#define CHUNK_ELEMENTS 16  // of 16 bytes
#elif KIND == KIND_f32
typedef float sum_t;
#define SUM_VECTOR(n) CAT(float, n)
#define PER_WORD 1
#define CHUNK_ELEMENTS 4
#else
typedef float sum_t;
#define SUM_VECTOR(n) CAT(float, n)
#define PER_WORD 2
#define CHUNK_ELEMENTS 8
#endif
#define ELEMENT_BYTES (4 / PER_WORD)

#if !EMULATED && defined(cl_khr_fp16)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#include "amd_dot.h"
#include "amd_mfma.h"
#include "amd_wmma.h"
#include "intel_xmx.h"
#include "lane_words.h"

#if EMULATED
#define STEP_LOOP  // unrolling would take PoCL's compiler minutes

// sum + the products of a word's elements. Products of 16-bit numbers are exact as floats.
INLINE sum_t add_word(sum_t sum, uint left, uint right) {
#if KIND == KIND_f32
  return fma(as_float(left), as_float(right), sum);
#elif KIND == KIND_i8
  const char4 a = as_char4(left), b = as_char4(right);
  return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
#elif KIND == KIND_bf16
  return sum + as_float(left << 16) * as_float(right << 16) +
         as_float(left & 0xffff0000u) * as_float(right & 0xffff0000u);
#else
  const float2 a = vload_half2(0, (const half *)&left), b = vload_half2(0, (const half *)&right);
  return sum + a.x * b.x + a.y * b.y;
#endif
}

// d += a b, where the lanes of a sub-group see each other's words in `shown`. All items must call it.
INLINE sums_t multiply(__local uint *shown, sums_t d, left_t a, right_t b) {
  const int item = get_local_id(0), lane = item % LANES;
  __local const uint *held = shown + (item - lane) * HELD_WORDS;
  show(shown + item * HELD_WORDS, a, b);
  barrier(CLK_LOCAL_MEM_FENCE);
  sum_t *sums = (sum_t *)&d;
  for (int e = 0; e < SUMS; ++e)
    for (int w = 0; w < STEP_WORDS; ++w)
      sums[e] = add_word(sums[e], left_of(held, SUM_ROW(lane, e), w, lane),
                         right_of(held, SUM_COLUMN(lane, e), w, lane));
  barrier(CLK_LOCAL_MEM_FENCE);
  return d;
}
#undef UNIT_ATTRIBUTES
#define UNIT_ATTRIBUTES
#else
#if LANES == 1
#define STEP_LOOP ROLLED  // else LLVM reads the lines of all steps before the first product
#else
#define STEP_LOOP UNROLL
#endif
#define HELD_WORDS 0
INLINE sums_t multiply(__local uint *shown, sums_t d, left_t a, right_t b) {
  return unit_product(d, a, b, get_local_id(0) % LANES);
}
#endif
#endif
