// AMD's WMMA of RDNA 3 (GENERATION 11) and RDNA 4 (12), a wave of 32: 16 x 16 sums of 16 of k.
// Layouts: AMD's matrix instruction calculator (github.com/ROCm/amd_matrix_instruction_calculator), for
// v_wmma_f32_16x16x16_f16 of both. RDNA 3: a lane has a whole row (column), the second half of the wave the
// same as the first; sums e of lanes below 16 are in even rows. RDNA 4: the halves of a wave share k, and
// lanes have eight adjacent rows of sums.
#if UNIT == UNIT_AMD_WMMA
#define LANES 32
#define FRAGMENT_M 16
#define FRAGMENT_N 16
#define LANE_LINE(lane) ((lane)&15)
#define SUMS 8
typedef SUM_VECTOR(8) sums_t;
#define UNIT_ATTRIBUTES

#if GENERATION == 11
#if KIND == KIND_i8
#define LANE_WORDS 4
#else
#define LANE_WORDS 8
#endif
#define STEP_WORDS LANE_WORDS
#define LANE_WORD(lane) 0
#define HOLDER(line, word, lane) ((line) + ((lane)&16))  // each half of the wave reads its own copy
#define HELD_AT(word) (word)
#define SUM_ROW(lane, e) (2 * (e) + ((lane) >> 4))
#define SUM_COLUMN(lane, e) ((lane)&15)
#else
#define LANE_WORDS 4
#define STEP_WORDS 8
#define LANE_WORD(lane) ((lane) >> 4 << 2)
#define HOLDER(line, word, lane) ((line) + ((word) >> 2 << 4))
#define HELD_AT(word) ((word)&3)
#define SUM_ROW(lane, e) (((lane) >> 4 << 3) + (e))
#define SUM_COLUMN(lane, e) ((lane)&15)
#endif

#if !EMULATED
INLINE sums_t unit_product(sums_t d, CAT(uint, LANE_WORDS) a, CAT(uint, LANE_WORDS) b, int lane) {
#if GENERATION == 11
#if KIND == KIND_i8  // both signed, without saturation
  return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, as_int4(a), true, as_int4(b), d, false);
#elif KIND == KIND_bf16
  return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16(a), as_short16(b), d);
#else
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16(a), as_half16(b), d);
#endif
#else
#if KIND == KIND_i8
  d = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, as_int2(a.xy), true, as_int2(b.xy), d, false);
  return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, as_int2(a.zw), true, as_int2(b.zw), d, false);
#elif KIND == KIND_bf16
  return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(as_short8(a), as_short8(b), d);
#else
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(as_half8(a), as_half8(b), d);
#endif
#endif
}
#endif
#endif
