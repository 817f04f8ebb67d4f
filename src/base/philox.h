// Philox4x32-10 (attention's dropout: Philox4x32-7), and how operators turn its words into numbers.
// Every backend must follow this exactly, so that all give the same numbers bit for bit.
//
// Source of the generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
// 3", SC'11.
//
// A generator is {seed, offset}, both 64 bits. key = (low(seed), high(seed)); counter block i of a
// call is (low(offset + i), high(offset + i), 0, 0). A call that draws n words uses words 4 i + j
// for element 4 i + j of its output in logical (row-major) order and advances the offset by
// ceil(n / 4). Types and distributions that need 64 bits use words 2 e and 2 e + 1 for element e:
// the first is the low half.
//   uniform, float32 and 16-bit types   (word >> 8) * 2^-24, in [0, 1)
//   uniform, float64                    (u64 >> 11) * 2^-53
//   integers in a range r               word % r where r <= 2^32, else u64 % r
//   normal, pairs of elements 2k, 2k+1  u1 = ((w[2k] >> 8) + 1) * 2^-24, u2 = (w[2k+1] >> 8) *
//                                       2^-24, r = sqrt(-2 ln u1): r cos(2 pi u2), r sin(2 pi u2);
//                                       float64: the same with 53 bits of 64-bit words
//   exponential                         max(-ln(((word >> 8) + 1) * 2^-24), 2^-24) / lambda: never
//                                       0; float64: the same with 53 bits
// Draws by rejection (_standard_gamma, poisson, binomial) take as many words as they need: element
// e has the counter c = offset + e to itself, its attempt t reads block (low(c), high(c), t, 0),
// and the call advances the offset by the number of elements. The block gives four numbers in
// (0, 1], (word + 1/2) * 2^-32; for float64 blocks 2 t and 2 t + 1 give them, ((u64 >> 11) + 1/2) *
// 2^-53.
// Dropout of attention draws by 7 rounds, the fewest that pass BigCrush (the paper's table 2). A
// weight is dropped if a number of 40 bits is below p, a multiple of 2^-32. A block gives 16
// weights their 8 upper bits: to weight b bits b of words 0 to 3, the lowest first, and then bits
// 16 + b. So a few operations on words decide for all at once. The 32 lower bits are the same for
// the 16: they decide only where the upper ones equal the limit's, in one case of 256, and
// correlate weights by less than 10^-4. Queries q and q + 8 of 16 share their blocks, of which they
// have 2 for every 16 keys, one for keys 0 to 3 and 8 to 11, one for the others: weight b = 4 (k %
// 4) + 2 (k % 16 / 8) + q % 16 / 8. So a warp's lanes have what matrix units give them. The
// counters begin at offset; each matrix (head of a batch) has philox_dropout_counters(queries,
// keys), pair after pair.
#ifndef OCLTENSOR_BASE_PHILOX_H
#define OCLTENSOR_BASE_PHILOX_H

#include <stdint.h>

static inline void philox_rounds(int rounds, uint64_t seed, uint64_t counter, uint32_t attempt,
                                 uint32_t out[4]) {
  uint32_t c0 = (uint32_t)counter;
  uint32_t c1 = (uint32_t)(counter >> 32);
  uint32_t c2 = attempt;
  uint32_t c3 = 0;
  uint32_t k0 = (uint32_t)seed;
  uint32_t k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/* The block of a counter and an attempt. */
static inline void philox_attempt(uint64_t seed, uint64_t counter, uint32_t attempt,
                                  uint32_t out[4]) {
  philox_rounds(10, seed, counter, attempt, out);
}

static inline void philox_block(uint64_t seed, uint64_t counter, uint32_t out[4]) {
  philox_attempt(seed, counter, 0, out);
}

static inline double philox_uniform24(uint32_t word) { return (double)(word >> 8) * 0x1p-24; }
static inline double philox_uniform53(uint64_t word) { return (double)(word >> 11) * 0x1p-53; }
/* The same in (0, 1]: safe for a logarithm. */
static inline double philox_open24(uint32_t word) { return (double)((word >> 8) + 1) * 0x1p-24; }
static inline double philox_open53(uint64_t word) { return (double)((word >> 11) + 1) * 0x1p-53; }

/* Attention's dropout: counters of a pair of rows of weights, and of a matrix. */
static inline uint64_t philox_dropout_pair_counters(uint64_t keys) { return (keys + 15) / 16 * 2; }
static inline uint64_t philox_dropout_counters(uint64_t queries, uint64_t keys) {
  return (queries + 15) / 16 * 8 * philox_dropout_pair_counters(keys);
}
/* p, below 1, in units of 2^-32. */
static inline uint32_t philox_dropout_limit(double p) {
  const double steps = p * 0x1p32 + 0.5;
  return (uint32_t)(steps < 0x1p32 ? steps : 0xFFFFFFFFu);
}
/* The 40 bits of weight `b` of a block. */
static inline uint64_t philox_dropout_number(const uint32_t words[4], uint32_t b) {
  uint64_t number = words[0] * 0x9E3779B1u + words[3];
  for (uint32_t w = 0; w < 4; ++w) {
    number |= (uint64_t)(words[w] >> b & 1) << (32 + w);
    number |= (uint64_t)(words[w] >> (16 + b) & 1) << (36 + w);
  }
  return number;
}
/* Whether a weight is kept in the matrix that begins at `counter` and has `keys` columns. */
static inline int philox_dropout_keeps(uint64_t seed, uint64_t counter, uint64_t keys,
                                       uint64_t query, uint64_t key, uint32_t limit) {
  const uint64_t pair = query / 16 * 8 + query % 8;
  uint32_t words[4];
  philox_rounds(7, seed,
                counter + pair * philox_dropout_pair_counters(keys) + key / 16 * 2 + key % 8 / 4, 0,
                words);
  const uint32_t b = (uint32_t)(key % 4 * 4 + key % 16 / 8 * 2 + query % 16 / 8);
  return philox_dropout_number(words, b) >= (uint64_t)limit << 8;
}

#endif
