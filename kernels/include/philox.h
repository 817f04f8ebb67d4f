// Philox4x32-10 (Salmon and others, SC'11) for one counter block, or 16 in vectors, whose third word is c2;
// src/base/philox.h has the rules that all backends follow. Attention's dropout has seven rounds
// (attention.h).
#ifndef OCLTENSOR_PHILOX_H
#define OCLTENSOR_PHILOX_H
#define OVERLOADED __attribute__((overloadable))
#define PHILOX_ROUND(V, c0, c1, c2, c3, k0, k1)                            \
  {                                                                        \
    const V h0 = mul_hi((V)(0xD2511F53u), c0), l0 = c0 * (V)(0xD2511F53u); \
    const V h1 = mul_hi((V)(0xCD9E8D57u), c2), l1 = c2 * (V)(0xCD9E8D57u); \
    c0 = h1 ^ c1 ^ (V)(k0);                                                \
    c2 = h0 ^ c3 ^ (V)(k1);                                                \
    c1 = l1;                                                               \
    c3 = l0;                                                               \
  }
#define PHILOX_KEY_0(seed, round) ((uint)(seed) + (round)*0x9E3779B9u)
#define PHILOX_KEY_1(seed, round) ((uint)((seed) >> 32) + (round)*0xBB67AE85u)
#define PHILOX_FUNCTION(V)                                                                        \
  INLINE void OVERLOADED philox_block(ulong seed, V c0, V c1, V c2, V *w0, V *w1, V *w2, V *w3) { \
    V c3 = (V)(0);                                                                                \
    UNROLL for (uint round = 0; round < 10; ++round)                                              \
      PHILOX_ROUND(V, c0, c1, c2, c3, PHILOX_KEY_0(seed, round), PHILOX_KEY_1(seed, round))       \
    *w0 = c0;                                                                                     \
    *w1 = c1;                                                                                     \
    *w2 = c2;                                                                                     \
    *w3 = c3;                                                                                     \
  }
PHILOX_FUNCTION(uint)
PHILOX_FUNCTION(uint16)

// a0 b0 a1 b1 ..
#define ZIP_LOW(a, b) \
  ((uint16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7))
#define ZIP_HIGH(a, b) \
  ((uint16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf))
// The words of 16 counters in order.
INLINE void store_words(uint16 w0, uint16 w1, uint16 w2, uint16 w3, uint *w) {
  const uint16 even_low = ZIP_LOW(w0, w2), even_high = ZIP_HIGH(w0, w2);
  const uint16 odd_low = ZIP_LOW(w1, w3), odd_high = ZIP_HIGH(w1, w3);
  vstore16(ZIP_LOW(even_low, odd_low), 0, w);
  vstore16(ZIP_HIGH(even_low, odd_low), 1, w);
  vstore16(ZIP_LOW(even_high, odd_high), 2, w);
  vstore16(ZIP_HIGH(even_high, odd_high), 3, w);
}
// counter .. counter + 15.
INLINE ulong16 counters_from(ulong counter) {
  return (ulong16)(counter) + (ulong16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// The four words of block `counter`.
INLINE void words_of_block(ulong seed, ulong counter, uint *w) {
  philox_block(seed, (uint)counter, (uint)(counter >> 32), (uint)0, w, w + 1, w + 2, w + 3);
}

// The 64 words of blocks counter .. counter + 15, in order.
INLINE void words_of_blocks(ulong seed, ulong counter, uint *w) {
  const ulong16 c = counters_from(counter);
  uint16 w0, w1, w2, w3;
  philox_block(seed, convert_uint16(c), convert_uint16(c >> 32), (uint16)(0), &w0, &w1, &w2, &w3);
  store_words(w0, w1, w2, w3, w);
}
#endif
