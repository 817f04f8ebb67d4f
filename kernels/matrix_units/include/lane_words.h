// Fragments of units whose lanes hold adjacent words of a line each: how they lie in local memory, as lines,
// and how emulated lanes show each other what they hold. The unit's header says LANE_WORDS (4 or 8), how many
// a lane holds of each operand, from LANE_WORD(lane) of line LANE_LINE(lane) on, and for emulation which lane
// HOLDER(line, word, lane) has a word for `lane`, as its HELD_AT(word)-th.
#if UNIT != UNIT_INTEL_XMX
typedef CAT(uint, LANE_WORDS) left_t;
typedef CAT(uint, LANE_WORDS) right_t;

#define LEFT_PLACE(line, word) ((line)*PITCH + (word))
#define RIGHT_PLACE(line, word) LEFT_PLACE(line, word)
#define LEFT_STRIDE 1
#define RIGHT_STRIDE 1
INLINE left_t lane_words(__local const uint *at) {
#if LANE_WORDS == 8
  return (uint8)(*(__local const uint4 *)at, *(__local const uint4 *)(at + 4));
#else
  return *(__local const uint4 *)at;
#endif
}
#define LEFT_FRAGMENT(lines, first, word, lane) \
  lane_words((lines) + LEFT_PLACE((first) + LANE_LINE(lane), (word) + LANE_WORD(lane)))
#define RIGHT_FRAGMENT(lines, first, word, lane) LEFT_FRAGMENT(lines, first, word, lane)

#if EMULATED
#define HELD_WORDS (2 * LANE_WORDS)
INLINE void show(__local uint *held, left_t a, right_t b) {
  CAT(vstore, LANE_WORDS)(a, 0, held);
  CAT(vstore, LANE_WORDS)(b, 0, held + LANE_WORDS);
}
INLINE uint left_of(__local const uint *held, int row, int word, int lane) {
  return held[HOLDER(row, word, lane) * HELD_WORDS + HELD_AT(word)];
}
INLINE uint right_of(__local const uint *held, int column, int word, int lane) {
  return held[HOLDER(column, word, lane) * HELD_WORDS + LANE_WORDS + HELD_AT(word)];
}
#endif
#endif
