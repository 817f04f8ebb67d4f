// How formats of weights are kept: unpack_<format> makes numbers of a unit's bytes, which begin at element k
// of row n, with a scale for each span and an offset where the format has some. Included by quantised.h; the
// table is src/base/weight_formats.def. Blocks of GGUF: ggml's ggml-common.h describes them.
#ifndef OCLTENSOR_WEIGHT_FORMATS_H
#define OCLTENSOR_WEIGHT_FORMATS_H

#define UNPACKS(format) \
  INLINE void CAT(unpack_, format)(const Weight w, long n, long k, float16 *v, float *scale, float *offset)
#define LOW(bytes) ((bytes) & (uchar16)(15))
#define HIGH(bytes) ((bytes) >> (uchar16)(4))

UNPACKS(int8) {
  UNROLL for (int i = 0; i < 2; ++i) v[i] = signed16(bytes16(w, n * w.pitch + k + 16 * i));
  scale[0] = scale_at(w, n, k);
}

// The exponent and the digits of a number of 8 bits stand at the right place of a float; what is left is the
// difference of their biases, and numbers without a leading digit.
INLINE float16 e4m3_values(uchar16 bytes) {
  const uint16 bits = convert_uint16(bytes), magnitude = bits & 0x7f;
  const float16 normal = as_float16((magnitude << 20) + (120u << 23));
  const float16 tiny = as_float16((magnitude << 20) + (121u << 23)) - 0x1p-6f;
  float16 v = select(normal, tiny, as_int16(magnitude - 8u));
  v = select(v, (float16)(NAN), as_int16(0x7eu - magnitude));
  return as_float16(as_uint16(v) | (bits & 0x80u) << 24);
}
UNPACKS(e4m3) {
  UNROLL for (int i = 0; i < 2; ++i) v[i] = e4m3_values(bytes16(w, n * w.pitch + k + 16 * i));
  scale[0] = scale_at(w, n, k);
}

UNPACKS(int4) {
  const uchar16 bytes = bytes16(w, n * w.pitch + (k >> 1));
  const float16 zero = (float16)(zero_at(w, n, k));
  v[0] = convert_float16(LOW(bytes)) - zero;
  v[1] = convert_float16(HIGH(bytes)) - zero;
  scale[0] = scale_at(w, n, k);
}

UNPACKS(int4_tiles) {
  const long t = w.tile, tile = (n >> 3) * (w.k >> t) + (k >> t);
  const long place = ((n & 7) << (t - 1)) + ((k & ((1L << t) - 1)) >> 1);
  const uchar16 bytes = bytes16(w, (tile << (t + 2)) + place);
  v[0] = signed16(LOW(bytes) - (uchar16)(8));
  v[1] = signed16(HIGH(bytes) - (uchar16)(8));
  scale[0] = scale_at(w, n, k);
  offset[0] = zero_at(w, n, k);
}

#if CODED
#define UNPACKS_CODES(format)                                  \
  UNPACKS(format) {                                            \
    const uchar16 bytes = bytes16(w, (n * w.k + k) >> 1);      \
    v[0] = codes16(w, HIGH(bytes));                            \
    v[1] = codes16(w, LOW(bytes));                             \
    scale[0] = scale_at(w, n, k);                              \
  }
UNPACKS_CODES(nf4)
UNPACKS_CODES(fp4)
#endif

UNPACKS(q8_0) {
  const long at = n * w.pitch + k / 32 * 34;
  UNROLL for (int i = 0; i < 2; ++i) v[i] = signed16(bytes16(w, at + 2 + 16 * i));
  scale[0] = half_at(w, at);
}

UNPACKS(q4_0) {
  const long at = n * w.pitch + k / 32 * 18;
  const uchar16 bytes = bytes16(w, at + 2);
  v[0] = signed16(LOW(bytes) - (uchar16)(8));
  v[1] = signed16(HIGH(bytes) - (uchar16)(8));
  scale[0] = half_at(w, at);
}

// Of 64 elements the first half is in the low nibbles. Scales and minima of 32 have 6 bits: of the first four
// the low ones of 4 bytes each, of the others 4 bits in the last four bytes and 2 at the top of the first
// ones.
UNPACKS(q4_k) {
  const long at = n * w.pitch + k / 256 * 144;
  const int chunk = (int)(k % 256) / 64;
  UNROLL for (int i = 0; i < 2; ++i) {
    const uchar16 bytes = bytes16(w, at + 16 + 32 * chunk + 16 * i);
    v[i] = convert_float16(LOW(bytes));
    v[2 + i] = convert_float16(HIGH(bytes));
  }
  // Two neighbours at once.
  __global const ushort *pair = (__global const ushort *)(w.bytes + at + 4) + chunk % 2;
  const uint a = pair[0], b = pair[2], c = pair[4];
  const uint s = chunk < 2 ? a & 0x3f3f : (c & 0x0f0f) | (a >> 2 & 0x3030);
  const uint m = chunk < 2 ? b & 0x3f3f : (c >> 4 & 0x0f0f) | (b >> 2 & 0x3030);
  const float d = half_at(w, at), least = -half_at(w, at + 2);
  scale[0] = d * (s & 0xff);
  scale[1] = d * (s >> 8);
  offset[0] = least * (m & 0xff);
  offset[1] = least * (m >> 8);
}

// Of 128 elements: 64 bytes of low nibbles, 32 with two upper bits of four elements each, 8 scales.
UNPACKS(q6_k) {
  const long at = n * w.pitch + k / 256 * 210;
  const int part = (int)(k % 256) / 128;
  UNROLL for (int i = 0; i < 2; ++i) {
    const uchar16 a = bytes16(w, at + 64 * part + 16 * i), b = bytes16(w, at + 64 * part + 32 + 16 * i);
    const uchar16 top = bytes16(w, at + 128 + 32 * part + 16 * i), two = (uchar16)(0x30);
    v[i] = signed16((LOW(a) | (top << (uchar16)(4) & two)) - (uchar16)(32));
    v[2 + i] = signed16((LOW(b) | (top << (uchar16)(2) & two)) - (uchar16)(32));
    v[4 + i] = signed16((HIGH(a) | (top & two)) - (uchar16)(32));
    v[6 + i] = signed16((HIGH(b) | (top >> (uchar16)(2) & two)) - (uchar16)(32));
  }
  const float d = half_at(w, at + 208);
  vstore8(d * convert_float8(vload8(0, (__global const char *)w.bytes + at + 192 + 8 * part)), 0, scale);
}
#endif
