// AMD's dot products of Vega 20 and RDNA 2: a lane adds the products of two pairs of float16 numbers, or of
// four pairs of int8 numbers, by one instruction. A unit of 1 x 1 sums, whose sub-groups are single
// work-items. v_dot2_f32_f16, v_dot4_i32_i8: LLVM's list of AMDGPU built-ins (clang's BuiltinsAMDGPU.def).
#if UNIT == UNIT_AMD_DOT
#define LANES 1
#define FRAGMENT_M 1
#define FRAGMENT_N 1
#define LANE_WORDS 4
#define STEP_WORDS 4
#define LANE_LINE(lane) 0
#define LANE_WORD(lane) 0
#define HOLDER(line, word, lane) 0
#define HELD_AT(word) (word)
#define SUMS 1
typedef sum_t sums_t;
#define SUM_ROW(lane, e) 0
#define SUM_COLUMN(lane, e) 0
#define UNIT_ATTRIBUTES

#if !EMULATED
#if KIND == KIND_i8
#define DOT(a, b, d) __builtin_amdgcn_sdot4(as_int(a), as_int(b), d, false)
#else
#define DOT(a, b, d) __builtin_amdgcn_fdot2(as_half2(a), as_half2(b), d, false)
#endif
INLINE sums_t unit_product(sums_t d, uint4 a, uint4 b, int lane) {
  d = DOT(a.x, b.x, d);
  d = DOT(a.y, b.y, d);
  d = DOT(a.z, b.z, d);
  return DOT(a.w, b.w, d);
}
#endif
#endif
