// Intel's XMX: 8 x GENERATION sums of 32 bytes of k, by a sub-group of GENERATION lanes: 8 (Arc's first
// generation) or 16 (Data Center GPU Max, and Arc from the second on).
// Layouts: cl_intel_subgroup_matrix_multiply_accumulate 1.1.0 (Khronos' OpenCL registry). A lane has a column
// of the right operand, 32 bytes, and one of sums; of each of the left operand's 8 rows it has the lane-th
// part, a word or, of 16 lanes, half of one.
// Both lie in local memory as the unit wants them: one block read brings a fragment to adjacent registers
// (cl_intel_subgroup_local_block_io).
#if UNIT == UNIT_INTEL_XMX
#define LANES GENERATION
#define FRAGMENT_M 8
#define FRAGMENT_N LANES
#define STEP_WORDS 8
#define SUMS 8
typedef SUM_VECTOR(8) sums_t;
#define SUM_ROW(lane, e) (e)
#define SUM_COLUMN(lane, e) (lane)
#define UNIT_ATTRIBUTES __attribute__((intel_reqd_sub_group_size(LANES)))
#if GENERATION == 8
typedef uint8 left_t;
#else
typedef ushort8 left_t;
#endif
typedef uint8 right_t;

// A fragment is a block of 8 rows of 8 words, or of 8 words of each column.
#define BLOCK_OF(line, word, lines) ((line) / (lines) * (lines)*LINE_WORDS + (word) / 8 * 8 * (lines))
#define LEFT_PLACE(line, word) (BLOCK_OF(line, word, 8) + (line) % 8 * 8 + (word) % 8)
#define RIGHT_PLACE(line, word) (BLOCK_OF(line, word, LANES) + (word) % 8 * LANES + (line) % LANES)
#define LEFT_STRIDE 1  // from a word of a line to the next
#define RIGHT_STRIDE LANES

#if EMULATED
#define EIGHT(at, stride) \
  (at)[0], (at)[stride], (at)[2 * (stride)], (at)[3 * (stride)], (at)[4 * (stride)], (at)[5 * (stride)], \
      (at)[6 * (stride)], (at)[7 * (stride)]
#define LEFT_FRAGMENT(lines, first, word, lane) load_left((lines) + LEFT_PLACE(first, word), lane)
#define RIGHT_FRAGMENT(lines, first, word, lane) load_right((lines) + RIGHT_PLACE(first, word), lane)
INLINE left_t load_left(__local const uint *at, int lane) {
#if GENERATION == 8
  return (uint8)(EIGHT(at + lane, 8));
#else
  __local const ushort *halves = (__local const ushort *)at + lane;
  return (ushort8)(EIGHT(halves, 16));
#endif
}
INLINE right_t load_right(__local const uint *at, int lane) { return (uint8)(EIGHT(at + lane, LANES)); }

#define HELD_WORDS 16
INLINE void show(__local uint *held, left_t a, right_t b) {
  vstore8(convert_uint8(a), 0, held);
  vstore8(b, 0, held + 8);
}
INLINE uint left_of(__local const uint *held, int row, int word, int lane) {
#if GENERATION == 8
  return held[word * HELD_WORDS + row];
#else
  return held[2 * word * HELD_WORDS + row] | held[(2 * word + 1) * HELD_WORDS + row] << 16;
#endif
}
INLINE uint right_of(__local const uint *held, int column, int word, int lane) {
  return held[column * HELD_WORDS + 8 + word];
}
#else
#if KIND == KIND_i8
#define MATRIX_MAD intel_sub_group_i8_i8_matrix_mad_k32
#elif KIND == KIND_bf16
#define MATRIX_MAD intel_sub_group_bf16_bf16_matrix_mad_k16
#else
#define MATRIX_MAD intel_sub_group_f16_f16_matrix_mad_k16
#endif
#if GENERATION == 8
#define LEFT_ARGUMENT int8
#define READ_LEFT(at) intel_sub_group_block_read8(at)
#else
#define LEFT_ARGUMENT short8
#define READ_LEFT(at) intel_sub_group_block_read_us8((__local const ushort *)(at))
#endif
// Drivers before the extensions have the functions without a declaration.
#ifndef cl_intel_subgroup_matrix_multiply_accumulate
sums_t __attribute__((overloadable)) MATRIX_MAD(LEFT_ARGUMENT a, int8 b, sums_t d);
#endif
#ifndef cl_intel_subgroup_local_block_io
uint8 __attribute__((overloadable)) intel_sub_group_block_read8(const __local uint *at);
ushort8 __attribute__((overloadable)) intel_sub_group_block_read_us8(const __local ushort *at);
#endif
#define LEFT_FRAGMENT(lines, first, word, lane) READ_LEFT((lines) + LEFT_PLACE(first, word))
#define RIGHT_FRAGMENT(lines, first, word, lane) \
  intel_sub_group_block_read8((lines) + RIGHT_PLACE(first, word))
INLINE sums_t unit_product(sums_t d, left_t a, right_t b, int lane) {
  return MATRIX_MAD(CAT(as_, LEFT_ARGUMENT)(a), as_int8(b), d);
}
#endif
#endif
