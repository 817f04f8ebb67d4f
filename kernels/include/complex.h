// Complex arithmetic on float2 (real part x, imaginary part y), for kernels of complex64. Special values are
// those of C99's Annex G, which torch's CPU kernels inherit from the C library; division is numpy's (as
// c10::complex has it). Inverse functions follow W. Kahan, "Branch Cuts for Complex Elementary Functions, or
// Much Ado About Nothing's Sign Bit" (1987): products of square roots, so that signed zeros choose the side
// of a cut.
#ifndef OCLTENSOR_COMPLEX_H
#define OCLTENSOR_COMPLEX_H
#include "types.h"

typedef float2 stype_c64;
typedef float2 ctype_c64;
INLINE float2 load_c64(__global const float2 *p, long i) { return p[i]; }
INLINE void store_c64(__global float2 *p, long i, float2 v) { p[i] = v; }
#define from_bits_c64(u) as_float2((ulong)(u))

// Any element as a complex number, and a complex number as an element: a real type takes the real part.
#define CLOAD(A, p, i) CAT(cload_, A)(p, i)
#define CSTORE(A, p, i, v) CAT(cstore_, A)(p, i, v)
#define Z(re, im) ((float2)((re), (im)))
#define REAL_ELEMENT(A)                                                                                   \
  INLINE float2 CAT(cload_, A)(__global const STYPE(A) *p, long i) { return Z((float)LOAD(A, p, i), 0); } \
  INLINE void CAT(cstore_, A)(__global STYPE(A) *p, long i, float2 v) { STORE(A, p, i, TO(A, v.x)); }
REAL_ELEMENT(u8)
REAL_ELEMENT(i8)
REAL_ELEMENT(i16)
REAL_ELEMENT(i32)
REAL_ELEMENT(i64)
REAL_ELEMENT(f16)
REAL_ELEMENT(bf16)
REAL_ELEMENT(f32)
REAL_ELEMENT(bool)
#ifdef cl_khr_fp64
REAL_ELEMENT(f64)
#endif
#define cload_c64(p, i) load_c64(p, i)
#define cstore_c64(p, i, v) store_c64(p, i, v)

#define CPI 3.14159265f
#define CLN2 0.693147181f

INLINE bool cfinite(float2 a) { return isfinite(a.x) && isfinite(a.y); }
INLINE bool cnan(float2 a) { return isnan(a.x) || isnan(a.y); }
INLINE bool ceq(float2 a, float2 b) { return a.x == b.x && a.y == b.y; }
INLINE bool ctrue(float2 a) { return a.x != 0 || a.y != 0; }
INLINE float2 cconj(float2 a) { return Z(a.x, -a.y); }
INLINE float2 cturn(float2 a) { return Z(-a.y, a.x); }  // times i
INLINE float2 cmul(float2 a, float2 b) { return Z(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// times a number that is usually real: then an infinite part of b does not affect the other part
INLINE float2 cscale(float2 s, float2 b) { return s.y == 0 ? s.x * b : cmul(s, b); }
INLINE float cabs_(float2 a) { return hypot(a.x, a.y); }
INLINE float carg_(float2 a) { return atan2(a.y, a.x); }

// Smith's algorithm as numpy has it: the larger part of the divisor scales. Very large and very small
// operands are scaled towards 1 first, so that no intermediate result overflows or underflows.
INLINE float2 cdiv_scaled(float2 a, float2 b) {
  const float c = fabs(b.x), d = fabs(b.y);
  if (c >= d) {
    if (c == 0 && d == 0) return Z(a.x / c, a.y / d);
    const float ratio = b.y / b.x, scale = 1 / (b.x + b.y * ratio);
    return Z((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
  }
  const float ratio = b.x / b.y, scale = 1 / (b.x * ratio + b.y);
  return Z((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
}
INLINE float2 cdiv(float2 a, float2 b) {
  const float big = fmax(fabs(b.x), fabs(b.y));
  float back = 1;
  if (big > 1e37f) b *= 0.25f, back = 0.25f;
  if (big < 1e-30f) b *= 281474976710656.0f, back = 281474976710656.0f;
  if (fmax(fabs(a.x), fabs(a.y)) > 1e37f) a *= 0.25f, back *= 4;
  return back * cdiv_scaled(a, b);
}
INLINE float2 creciprocal(float2 a) { return cdiv(Z(1, 0), a); }
INLINE float2 csgn(float2 a) {
  if (!ctrue(a)) return Z(0, 0);
  const float r = cabs_(a);
  return Z(a.x / r, a.y / r);
}

// e^x (cos y, sin y); e^x as two factors, because it may overflow where the products do not.
INLINE float2 cexp_(float2 a) {
  if (a.y == 0) return Z(exp(a.x), a.y);
  if (isinf(a.x) && !isfinite(a.y)) return a.x < 0 ? Z(0, copysign(0.0f, a.y)) : Z(a.x, NAN);
  const float e = exp(0.5f * a.x);
  if (e > 1e15f && isfinite(e)) return Z(cos(a.y) * e * e, sin(a.y) * e * e);
  const float whole = exp(a.x);
  return Z(whole * cos(a.y), whole * sin(a.y));
}
// (e^x - 1) cos y + (cos y - 1), the second by the half angle.
INLINE float2 cexpm1(float2 a) {
  if (a.y == 0) return Z(expm1(a.x), a.y);
  const float h = sin(0.5f * a.y);
  if (fabs(a.x) > 40 || !cfinite(a)) return cexp_(a) - Z(1, 0);
  return Z(expm1(a.x) * cos(a.y) - 2 * h * h, exp(a.x) * sin(a.y));
}
// log |z|: by log1p near 1, where the logarithm of a rounded modulus is inaccurate.
INLINE float clog_abs(float2 a) {
  const float x = fabs(a.x), y = fabs(a.y), big = fmax(x, y), small = fmin(x, y);
  if (isinf(x) || isinf(y)) return INFINITY;
  if (isnan(x) || isnan(y)) return NAN;
  if (big == 0) return -INFINITY;
  if (big > 0.5f && big < 2) return 0.5f * log1p((big - 1) * (big + 1) + small * small);
  const float ratio = small / big;
  return log(big) + 0.5f * log1p(ratio * ratio);
}
INLINE float2 clog_(float2 a) { return Z(clog_abs(a), carg_(a)); }
INLINE float2 clog1p(float2 a) {
  const float re = fabs(a.x) < 0.5f && fabs(a.y) < 0.5f ? 0.5f * log1p(a.x * (2 + a.x) + a.y * a.y)
                                                        : clog_abs(Z(1 + a.x, a.y));
  return Z(re, atan2(a.y, 1 + a.x));
}
INLINE float2 csqrt_(float2 a) {
  if (!ctrue(a)) return Z(0, a.y);
  if (isinf(a.y)) return Z(INFINITY, a.y);
  if (isinf(a.x)) {
    if (a.x > 0) return Z(a.x, isnan(a.y) ? a.y : copysign(0.0f, a.y));
    return isnan(a.y) ? Z(a.y, a.x) : Z(0, copysign(-a.x, a.y));
  }
  const float big = fmax(fabs(a.x), fabs(a.y));
  float back = 1;
  if (big > 1e37f) a *= 0.0625f, back = 4;
  if (big < 1e-30f) a *= 281474976710656.0f, back = 5.9604644775390625e-8f;
  const float t = sqrt(0.5f * (fabs(a.x) + cabs_(a)));
  return back * (a.x >= 0 ? Z(t, a.y / (2 * t)) : Z(fabs(a.y) / (2 * t), copysign(t, a.y)));
}
INLINE float2 crsqrt(float2 a) { return creciprocal(csqrt_(a)); }
INLINE float2 cpow(float2 a, float2 b) {
  if (!ctrue(b)) return Z(1, 0);
  if (!ctrue(a) && b.x > 0) return Z(0, 0);
  return cexp_(cmul(b, clog_(a)));
}

INLINE float2 csinh(float2 a) {
  if (a.y == 0) return Z(sinh(a.x), a.y);
  if (isinf(a.x) && !isfinite(a.y)) return Z(a.x, NAN);
  if (a.x == 0) return Z(isfinite(a.y) ? a.x * cos(a.y) : a.x, sin(a.y));
  if (fabs(a.x) > 80) {  // e^|x| / 2, in factors
    const float e = exp(0.5f * fabs(a.x));
    return Z(copysign(0.5f, a.x) * cos(a.y) * e * e, 0.5f * sin(a.y) * e * e);
  }
  return Z(sinh(a.x) * cos(a.y), cosh(a.x) * sin(a.y));
}
INLINE float2 ccosh(float2 a) {
  if (a.y == 0) return Z(cosh(a.x), isnan(a.x) ? a.y : copysign(0.0f, a.x) * a.y);
  if (isinf(a.x) && !isfinite(a.y)) return Z(INFINITY, NAN);
  if (a.x == 0) return Z(cos(a.y), isfinite(a.y) ? a.x * sin(a.y) : a.x);
  if (fabs(a.x) > 80) {
    const float e = exp(0.5f * fabs(a.x));
    return Z(0.5f * cos(a.y) * e * e, copysign(0.5f, a.x) * sin(a.y) * e * e);
  }
  return Z(cosh(a.x) * cos(a.y), sinh(a.x) * sin(a.y));
}
// Kahan's formula: with t = tan y and s = sinh x, the denominator is 1 + (1 + t^2) s^2.
INLINE float2 ctanh(float2 a) {
  if (isinf(a.x)) return Z(copysign(1.0f, a.x), copysign(0.0f, isfinite(a.y) ? sin(2 * a.y) : a.y));
  if (a.y == 0) return Z(tanh(a.x), a.y);
  if (!isfinite(a.y)) return Z(a.x == 0 ? a.x : NAN, NAN);
  if (fabs(a.x) > 11) return Z(copysign(1.0f, a.x), 4 * sin(a.y) * cos(a.y) * exp(-2 * fabs(a.x)));
  const float t = tan(a.y), b = 1 + t * t, s = sinh(a.x), r = sqrt(1 + s * s);
  if (isinf(b)) return Z(r / s, 1 / t);
  const float d = 1 + b * s * s;
  return Z(b * r * s / d, t / d);
}
// f(z) = -i g(iz) for odd g
INLINE float2 cback(float2 w) { return Z(w.y, -w.x); }
INLINE float2 csin(float2 a) { return cback(csinh(cturn(a))); }
INLINE float2 ccos(float2 a) { return ccosh(cturn(a)); }
INLINE float2 ctan(float2 a) { return cback(ctanh(cturn(a))); }

INLINE float cimag_mul(float2 a, float2 b) { return a.x * b.y + a.y * b.x; }
INLINE float creal_mul(float2 a, float2 b) { return a.x * b.x - a.y * b.y; }
// 1 at an infinite part, else 0, with the part's sign.
INLINE float cmark(float v) { return copysign(isinf(v) ? 1.0f : 0.0f, v); }
// Above this the inverse functions are logarithms of 2z; Kahan's products would overflow for larger numbers.
INLINE bool chuge(float2 a) { return fmax(fabs(a.x), fabs(a.y)) > 1e18f && cfinite(a); }
INLINE bool cinf(float2 a) { return isinf(a.x) || isinf(a.y); }

INLINE float2 casin(float2 a) {
  if (cinf(a)) {
    if (isnan(a.x)) return Z(a.x, a.y);
    if (isnan(a.y)) return Z(NAN, a.x);
    return Z(atan2(cmark(a.x), fabs(cmark(a.y))), copysign(INFINITY, a.y));
  }
  if (chuge(a)) return Z(atan2(a.x, fabs(a.y)), copysign(clog_abs(a) + CLN2, a.y));
  const float2 down = csqrt_(Z(1 - a.x, -a.y)), up = csqrt_(Z(1 + a.x, a.y));
  return Z(a.x == 0 ? a.x : atan2(a.x, creal_mul(down, up)), asinh(cimag_mul(cconj(down), up)));
}
INLINE float2 cacos(float2 a) {
  if (cinf(a)) {
    if (isnan(a.x)) return Z(a.x, -a.y);
    if (isnan(a.y)) return Z(NAN, -a.x);
    return Z(atan2(fabs(cmark(a.y)), cmark(a.x)), -copysign(INFINITY, a.y));
  }
  if (a.x == 0 && isnan(a.y)) return Z(0.5f * CPI, a.y);
  if (chuge(a)) return Z(atan2(fabs(a.y), a.x), -copysign(clog_abs(a) + CLN2, a.y));
  const float2 down = csqrt_(Z(1 - a.x, -a.y)), up = csqrt_(Z(1 + a.x, a.y));
  return Z(2 * atan2(down.x, up.x), asinh(cimag_mul(cconj(up), down)));
}
INLINE float2 cacosh(float2 a) {
  if (cinf(a)) {
    if (cnan(a)) return Z(INFINITY, NAN);
    return Z(INFINITY, atan2(cmark(a.y), cmark(a.x)));
  }
  if (a.x == 0 && isnan(a.y)) return Z(NAN, 0.5f * CPI);
  if (chuge(a)) return Z(clog_abs(a) + CLN2, carg_(a));
  const float2 down = csqrt_(Z(a.x - 1, a.y)), up = csqrt_(Z(a.x + 1, a.y));
  return Z(asinh(creal_mul(cconj(down), up)), 2 * atan2(down.y, up.x));
}
INLINE float2 casinh(float2 a) { return casin(a.yx).yx; }
INLINE float2 catanh(float2 a) {
  const float x = fabs(a.x), y = fabs(a.y);
  if (cinf(a)) return Z(copysign(0.0f, a.x), isnan(a.y) ? NAN : copysign(0.5f * CPI, a.y));
  if (a.x == 0) return Z(a.x, atan(a.y));
  if (a.y == 0 && x < 1) return Z(atanh(a.x), a.y);
  float re, im;
  if (fmax(x, y) > 1e8f) {  // 1 / z
    re = x > y ? 1 / (x + y * (y / x)) : x / y / (x * (x / y) + y);
    im = 0.5f * CPI;
  } else {
    re = x == 1 && y < 1e-15f ? 0.5f * (CLN2 - log(y)) : 0.25f * log1p(4 * x / ((1 - x) * (1 - x) + y * y));
    im = 0.5f * atan2(2 * y, (1 - x) * (1 + x) - y * y);
  }
  return Z(copysign(re, a.x), copysign(im, a.y));
}
INLINE float2 catan(float2 a) { return catanh(a.yx).yx; }

INLINE float2 csigmoid(float2 a) {
  const float2 e = cexp_(a.x < 0 ? a : -a);
  return cdiv(a.x < 0 ? e : Z(1, 0), Z(1, 0) + e);
}
INLINE float2 csinc(float2 a) { return ctrue(a) ? cdiv(csin(CPI * a), CPI * a) : Z(1, 0); }
// log(e^a + e^b), as the operand with the larger real part plus a logarithm.
INLINE float2 clogaddexp(float2 a, float2 b) {
  if (cnan(a) || cnan(b)) return Z(NAN, NAN);
  const float2 m = a.x < b.x ? b : a, n = a.x < b.x ? a : b;
  if (isinf(m.x) && m.x < 0) return m;
  return isinf(m.x) && a.x != b.x ? m : m + clog1p(cexp_(n - m));
}
INLINE float cnumber(float a, float nan, float high, float low) {
  if (isnan(a)) return isnan(nan) ? 0 : nan;
  if (!isinf(a)) return a;
  return a > 0 ? (isnan(high) ? FLT_MAX : high) : isnan(low) ? -FLT_MAX : low;
}
// As in ATen, the modulus of the weight decides.
INLINE float2 clerp(float2 a, float2 b, float2 w) {
  return w.x * w.x + w.y * w.y < 0.25f ? a + cmul(w, b - a) : b - cmul(b - a, Z(1, 0) - w);
}
#endif
