// AMD's MFMA of CDNA, a wave of 64: FRAGMENT x FRAGMENT (32 or 16) sums. GENERATION 1 (gfx908), 2 (gfx90a),
// 3 (gfx940 to gfx942), 4 (gfx950).
// Layouts: AMD's matrix instruction calculator (github.com/ROCm/amd_matrix_instruction_calculator): lane l
// has row (column) l % FRAGMENT, and the l / FRAGMENT-th of equal parts of k; sums of a lane are four
// adjacent rows of one column at a time. A lane reads 16 bytes of its line, which one to four products take.
#if UNIT == UNIT_AMD_MFMA
#define LANES 64
#define FRAGMENT_M FRAGMENT
#define FRAGMENT_N FRAGMENT
#define LANE_WORDS 4
#define PARTS_OF_K (LANES / FRAGMENT)
#define STEP_WORDS (4 * PARTS_OF_K)
#define LANE_LINE(lane) ((lane) % FRAGMENT)
#define LANE_WORD(lane) ((lane) / FRAGMENT * 4)
#define HOLDER(line, word, lane) ((line) + (word) / 4 * FRAGMENT)
#define HELD_AT(word) ((word) % 4)
#define SUM_ROW(lane, e) ((e) / 4 * (4 * PARTS_OF_K) + (lane) / FRAGMENT * 4 + (e) % 4)
#define SUM_COLUMN(lane, e) ((lane) % FRAGMENT)
// Two waves of a SIMD leave each 256 registers: then compilers keep sums in ordinary ones, and do not move
// them to the accumulation registers and back around loops.
#define UNIT_ATTRIBUTES __attribute__((amdgpu_waves_per_eu(2, 2)))
#if FRAGMENT == 32
#define SUMS 16
typedef SUM_VECTOR(16) sums_t;
#else
#define SUMS 4
typedef SUM_VECTOR(4) sums_t;
#endif

#if !EMULATED
#if FRAGMENT == 32
#define MFMA(of_32, of_16, x, y, d) __builtin_amdgcn_mfma_##of_32(x, y, d, 0, 0, 0)
#else
#define MFMA(of_32, of_16, x, y, d) __builtin_amdgcn_mfma_##of_16(x, y, d, 0, 0, 0)
#endif
INLINE sums_t unit_product(sums_t d, uint4 a, uint4 b, int lane) {
#if KIND == KIND_f32
  d = MFMA(f32_32x32x2f32, f32_16x16x4f32, as_float(a.x), as_float(b.x), d);
  d = MFMA(f32_32x32x2f32, f32_16x16x4f32, as_float(a.y), as_float(b.y), d);
  d = MFMA(f32_32x32x2f32, f32_16x16x4f32, as_float(a.z), as_float(b.z), d);
  return MFMA(f32_32x32x2f32, f32_16x16x4f32, as_float(a.w), as_float(b.w), d);
#elif KIND == KIND_i8
#if GENERATION >= 4
  return MFMA(i32_32x32x32_i8, i32_16x16x64_i8, as_int4(a), as_int4(b), d);
#elif GENERATION == 3
  d = MFMA(i32_32x32x16_i8, i32_16x16x32_i8, as_long(a.xy), as_long(b.xy), d);
  return MFMA(i32_32x32x16_i8, i32_16x16x32_i8, as_long(a.zw), as_long(b.zw), d);
#else
  d = MFMA(i32_32x32x8i8, i32_16x16x16i8, as_int(a.x), as_int(b.x), d);
  d = MFMA(i32_32x32x8i8, i32_16x16x16i8, as_int(a.y), as_int(b.y), d);
  d = MFMA(i32_32x32x8i8, i32_16x16x16i8, as_int(a.z), as_int(b.z), d);
  return MFMA(i32_32x32x8i8, i32_16x16x16i8, as_int(a.w), as_int(b.w), d);
#endif
#elif KIND == KIND_bf16
#if GENERATION == 1
  d = MFMA(f32_32x32x4bf16, f32_16x16x8bf16, as_short2(a.x), as_short2(b.x), d);
  d = MFMA(f32_32x32x4bf16, f32_16x16x8bf16, as_short2(a.y), as_short2(b.y), d);
  d = MFMA(f32_32x32x4bf16, f32_16x16x8bf16, as_short2(a.z), as_short2(b.z), d);
  return MFMA(f32_32x32x4bf16, f32_16x16x8bf16, as_short2(a.w), as_short2(b.w), d);
#else
  d = MFMA(f32_32x32x8bf16_1k, f32_16x16x16bf16_1k, as_short4(a.xy), as_short4(b.xy), d);
  return MFMA(f32_32x32x8bf16_1k, f32_16x16x16bf16_1k, as_short4(a.zw), as_short4(b.zw), d);
#endif
#elif GENERATION >= 4
  return MFMA(f32_32x32x16_f16, f32_16x16x32_f16, as_half8(a), as_half8(b), d);
#else
  d = MFMA(f32_32x32x8f16, f32_16x16x16f16, as_half4(a.xy), as_half4(b.xy), d);
  return MFMA(f32_32x32x8f16, f32_16x16x16f16, as_half4(a.zw), as_half4(b.zw), d);
#endif
}
#endif
#endif
