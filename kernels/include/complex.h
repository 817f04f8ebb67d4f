// Complex arithmetic on vectors of a real part x and an imaginary part y: cplx, whose parts are creal. They
// are of the type PART, f32 or f64. Special values are those of C99's Annex G, which torch's
// CPU kernels inherit from the C library; division is numpy's (as c10::complex has it). Inverse functions
// follow W. Kahan, "Branch Cuts for Complex Elementary Functions, or Much Ado About Nothing's Sign Bit"
// (1987): products of square roots, so that signed zeros choose the side of a cut.
#ifndef OCLTENSOR_COMPLEX_H
#define OCLTENSOR_COMPLEX_H
#include "types.h"

#define CPLX_f32 float2
#define CPLX_f64 double2
typedef CTYPE(PART) creal;
typedef CAT(CPLX_, PART) cplx;
// A constant with the digits of creal.
#define NUM_f32(x) x##f
#define NUM_f64(x) x
#define NUM(x) CAT(NUM_, PART)(x)

// Complex numbers in memory that have the type of computation.
#define AT_CPLX(base, offset) ((__global cplx *)((__global char *)(base) + (offset)))
#define AT_CPLX_CONST(base, offset) ((__global const cplx *)((__global const char *)(base) + (offset)))

// complex32 in memory is two float16; complex128 is declared in types.h.
typedef float2 stype_c64;
typedef ushort2 stype_c32;

// Any element as a complex number, and a complex number as an element: a real type takes the real part.
#define CLOAD(A, p, i) CAT(cload_, A)(p, i)
#define CSTORE(A, p, i, v) CAT(cstore_, A)(p, i, v)
#define Z(re, im) ((cplx)((re), (im)))
#define REAL_ELEMENT(A)                                                                                   \
  INLINE cplx CAT(cload_, A)(__global const STYPE(A) *p, long i) { return Z((creal)LOAD(A, p, i), 0); }   \
  INLINE void CAT(cstore_, A)(__global STYPE(A) *p, long i, cplx v) { STORE(A, p, i, TO(A, v.x)); }
REAL_ELEMENT(u8)
REAL_ELEMENT(i8)
REAL_ELEMENT(i16)
REAL_ELEMENT(i32)
REAL_ELEMENT(i64)
REAL_ELEMENT(u16)
REAL_ELEMENT(u32)
REAL_ELEMENT(u64)
REAL_ELEMENT(f16)
REAL_ELEMENT(bf16)
REAL_ELEMENT(f32)
REAL_ELEMENT(bool)
INLINE cplx cload_c64(__global const float2 *p, long i) { return Z(p[i].x, p[i].y); }
INLINE void cstore_c64(__global float2 *p, long i, cplx v) { p[i] = (float2)((float)v.x, (float)v.y); }
INLINE cplx cload_c32(__global const ushort2 *p, long i) {
  return Z(load_f16((__global const half *)p, 2 * i), load_f16((__global const half *)p, 2 * i + 1));
}
INLINE void cstore_c32(__global ushort2 *p, long i, cplx v) {
  store_f16((__global half *)p, 2 * i, (float)v.x);
  store_f16((__global half *)p, 2 * i + 1, (float)v.y);
}
#ifdef cl_khr_fp64
REAL_ELEMENT(f64)
INLINE cplx cload_c128(__global const ulong2 *p, long i) {
  const double2 v = as_double2(p[i]);
  return Z((creal)v.x, (creal)v.y);
}
INLINE void cstore_c128(__global ulong2 *p, long i, cplx v) { p[i] = as_ulong2((double2)(v.x, v.y)); }
#endif

#define CPI NUM(3.14159265358979324)
#define CLN2 NUM(0.693147180559945309)
// Powers of two near the ends of the type's range, from which numbers are scaled, and the factors; where
// exponential functions are taken in two factors, and where they no longer count beside 1.
#define CHUGE_f32 0x1p122f
#define CHUGE_f64 0x1p1018
#define CTINY_f32 0x1p-100f
#define CTINY_f64 0x1p-960
#define CUP_f32 0x1p48f
#define CUP_f64 0x1p108
#define CROOT_DOWN_f32 0x1p-24f
#define CROOT_DOWN_f64 0x1p-54
#define CEXP_LARGE_f32 1e15f
#define CEXP_LARGE_f64 1e150
#define CSINH_LARGE_f32 80.0f
#define CSINH_LARGE_f64 700.0
#define CONE_f32 11.0f
#define CONE_f64 22.0
#define CEXPM1_f32 40.0f
#define CEXPM1_f64 80.0
#define CSQUARE_f32 1e18f
#define CSQUARE_f64 1e150
#define CATAN_f32 1e8f
#define CATAN_f64 1e17
#define CSMALL_f32 1e-15f
#define CSMALL_f64 1e-150
#define CMAX_f32 FLT_MAX
#define CMAX_f64 DBL_MAX
#define LIMIT(name) CAT(CAT(name, _), PART)

INLINE bool cfinite(cplx a) { return isfinite(a.x) && isfinite(a.y); }
INLINE bool cnan(cplx a) { return isnan(a.x) || isnan(a.y); }
INLINE bool ceq(cplx a, cplx b) { return a.x == b.x && a.y == b.y; }
INLINE bool ctrue(cplx a) { return a.x != 0 || a.y != 0; }
INLINE cplx cconj(cplx a) { return Z(a.x, -a.y); }
INLINE cplx cturn(cplx a) { return Z(-a.y, a.x); }  // times i
INLINE cplx cmul(cplx a, cplx b) { return Z(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// times a number that is usually real: then an infinite part of b does not affect the other part
INLINE cplx cscale(cplx s, cplx b) { return s.y == 0 ? s.x * b : cmul(s, b); }
INLINE creal cabs_(cplx a) { return hypot(a.x, a.y); }
INLINE creal carg_(cplx a) { return atan2(a.y, a.x); }

// Smith's algorithm as numpy has it: the larger part of the divisor scales. Very large and very small
// operands are scaled towards 1 first, so that no intermediate result overflows or underflows.
INLINE cplx cdiv_scaled(cplx a, cplx b) {
  const creal c = fabs(b.x), d = fabs(b.y);
  if (c >= d) {
    if (c == 0 && d == 0) return Z(a.x / c, a.y / d);
    const creal ratio = b.y / b.x, scale = 1 / (b.x + b.y * ratio);
    return Z((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
  }
  const creal ratio = b.x / b.y, scale = 1 / (b.x * ratio + b.y);
  return Z((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
}
INLINE cplx cdiv(cplx a, cplx b) {
  const creal big = fmax(fabs(b.x), fabs(b.y));
  creal back = 1;
  if (big > LIMIT(CHUGE)) b *= NUM(0.25), back = NUM(0.25);
  if (big < LIMIT(CTINY)) b *= LIMIT(CUP), back = LIMIT(CUP);
  if (fmax(fabs(a.x), fabs(a.y)) > LIMIT(CHUGE)) a *= NUM(0.25), back *= 4;
  return back * cdiv_scaled(a, b);
}
INLINE cplx creciprocal(cplx a) { return cdiv(Z(1, 0), a); }
INLINE cplx csgn(cplx a) {
  if (!ctrue(a)) return Z(0, 0);
  const creal r = cabs_(a);
  return Z(a.x / r, a.y / r);
}

// e^x (cos y, sin y); e^x as two factors, because it may overflow where the products do not.
INLINE cplx cexp_(cplx a) {
  if (a.y == 0) return Z(exp(a.x), a.y);
  if (isinf(a.x) && !isfinite(a.y)) return a.x < 0 ? Z(0, copysign(NUM(0.0), a.y)) : Z(a.x, NAN);
  const creal e = exp(NUM(0.5) * a.x);
  if (e > LIMIT(CEXP_LARGE) && isfinite(e)) return Z(cos(a.y) * e * e, sin(a.y) * e * e);
  const creal whole = exp(a.x);
  return Z(whole * cos(a.y), whole * sin(a.y));
}
// (e^x - 1) cos y + (cos y - 1), the second by the half angle.
INLINE cplx cexpm1(cplx a) {
  if (a.y == 0) return Z(expm1(a.x), a.y);
  const creal h = sin(NUM(0.5) * a.y);
  if (fabs(a.x) > LIMIT(CEXPM1) || !cfinite(a)) return cexp_(a) - Z(1, 0);
  return Z(expm1(a.x) * cos(a.y) - 2 * h * h, exp(a.x) * sin(a.y));
}
// log |z|: by log1p near 1, where the logarithm of a rounded modulus is inaccurate.
INLINE creal clog_abs(cplx a) {
  const creal x = fabs(a.x), y = fabs(a.y), big = fmax(x, y), small = fmin(x, y);
  if (isinf(x) || isinf(y)) return INFINITY;
  if (isnan(x) || isnan(y)) return NAN;
  if (big == 0) return -INFINITY;
  if (big > NUM(0.5) && big < 2) return NUM(0.5) * log1p((big - 1) * (big + 1) + small * small);
  const creal ratio = small / big;
  return log(big) + NUM(0.5) * log1p(ratio * ratio);
}
INLINE cplx clog_(cplx a) { return Z(clog_abs(a), carg_(a)); }
INLINE cplx clog1p(cplx a) {
  const bool small = fabs(a.x) < NUM(0.5) && fabs(a.y) < NUM(0.5);
  creal grown = a.x * (2 + a.x);
  if (a.y != 0) grown += a.y * a.y;  // -0 stays
  const creal re = small ? NUM(0.5) * log1p(grown) : clog_abs(Z(1 + a.x, a.y));
  return Z(re, atan2(a.y, 1 + a.x));
}
INLINE cplx csqrt_(cplx a) {
  if (!ctrue(a)) return Z(0, a.y);
  if (isinf(a.y)) return Z(INFINITY, a.y);
  if (isinf(a.x)) {
    if (a.x > 0) return Z(a.x, isnan(a.y) ? a.y : copysign(NUM(0.0), a.y));
    return isnan(a.y) ? Z(a.y, a.x) : Z(0, copysign(-a.x, a.y));
  }
  const creal big = fmax(fabs(a.x), fabs(a.y));
  creal back = 1;
  if (big > LIMIT(CHUGE)) a *= NUM(0.0625), back = 4;
  if (big < LIMIT(CTINY)) a *= LIMIT(CUP), back = LIMIT(CROOT_DOWN);
  const creal t = sqrt(NUM(0.5) * (fabs(a.x) + cabs_(a)));
  return back * (a.x >= 0 ? Z(t, a.y / (2 * t)) : Z(fabs(a.y) / (2 * t), copysign(t, a.y)));
}
INLINE cplx crsqrt(cplx a) { return creciprocal(csqrt_(a)); }
INLINE cplx cpow(cplx a, cplx b) {
  if (!ctrue(b)) return Z(1, 0);
  if (!ctrue(a) && b.x > 0) return Z(0, 0);
  return cexp_(cmul(b, clog_(a)));
}

INLINE cplx csinh(cplx a) {
  if (a.y == 0) return Z(sinh(a.x), a.y);
  if (isinf(a.x) && !isfinite(a.y)) return Z(a.x, NAN);
  if (a.x == 0) return Z(isfinite(a.y) ? a.x * cos(a.y) : a.x, sin(a.y));
  if (fabs(a.x) > LIMIT(CSINH_LARGE)) {  // e^|x| / 2, in factors
    const creal e = exp(NUM(0.5) * fabs(a.x));
    return Z(copysign(NUM(0.5), a.x) * cos(a.y) * e * e, NUM(0.5) * sin(a.y) * e * e);
  }
  return Z(sinh(a.x) * cos(a.y), cosh(a.x) * sin(a.y));
}
INLINE cplx ccosh(cplx a) {
  if (a.y == 0) return Z(cosh(a.x), isnan(a.x) ? a.y : copysign(NUM(0.0), a.x) * a.y);
  if (isinf(a.x) && !isfinite(a.y)) return Z(INFINITY, NAN);
  if (a.x == 0) return Z(cos(a.y), isfinite(a.y) ? a.x * sin(a.y) : a.x);
  if (fabs(a.x) > LIMIT(CSINH_LARGE)) {
    const creal e = exp(NUM(0.5) * fabs(a.x));
    return Z(NUM(0.5) * cos(a.y) * e * e, copysign(NUM(0.5), a.x) * sin(a.y) * e * e);
  }
  return Z(cosh(a.x) * cos(a.y), sinh(a.x) * sin(a.y));
}
// Kahan's formula: with t = tan y and s = sinh x, the denominator is 1 + (1 + t^2) s^2.
INLINE cplx ctanh(cplx a) {
  /* The sign of sin 2y, whose argument may be too large for a number. */
  if (isinf(a.x))
    return Z(copysign(NUM(1.0), a.x), copysign(NUM(0.0), isfinite(a.y) ? sin(a.y) * cos(a.y) : a.y));
  if (a.y == 0) return Z(tanh(a.x), a.y);
  if (!isfinite(a.y)) return Z(a.x == 0 ? a.x : NAN, NAN);
  if (fabs(a.x) > LIMIT(CONE))
    return Z(copysign(NUM(1.0), a.x), 4 * sin(a.y) * cos(a.y) * exp(-2 * fabs(a.x)));
  const creal t = tan(a.y), b = 1 + t * t, s = sinh(a.x), r = sqrt(1 + s * s);
  if (isinf(b)) return Z(r / s, 1 / t);
  const creal d = 1 + b * s * s;
  return Z(b * r * s / d, t / d);
}
// f(z) = -i g(iz) for odd g
INLINE cplx cback(cplx w) { return Z(w.y, -w.x); }
INLINE cplx csin(cplx a) { return cback(csinh(cturn(a))); }
INLINE cplx ccos(cplx a) { return ccosh(cturn(a)); }
INLINE cplx ctan(cplx a) { return cback(ctanh(cturn(a))); }

INLINE creal cimag_mul(cplx a, cplx b) { return a.x * b.y + a.y * b.x; }
INLINE creal creal_mul(cplx a, cplx b) { return a.x * b.x - a.y * b.y; }
// 1 at an infinite part, else 0, with the part's sign.
INLINE creal cmark(creal v) { return copysign(isinf(v) ? NUM(1.0) : NUM(0.0), v); }
// Above this the inverse functions are logarithms of 2z; Kahan's products would overflow for larger numbers.
INLINE bool chuge(cplx a) { return fmax(fabs(a.x), fabs(a.y)) > LIMIT(CSQUARE) && cfinite(a); }
INLINE bool cinf(cplx a) { return isinf(a.x) || isinf(a.y); }

INLINE cplx casin(cplx a) {
  if (cinf(a)) {
    if (isnan(a.x)) return Z(a.x, a.y);
    if (isnan(a.y)) return Z(NAN, a.x);
    return Z(atan2(cmark(a.x), fabs(cmark(a.y))), copysign((creal)INFINITY, a.y));
  }
  if (chuge(a)) return Z(atan2(a.x, fabs(a.y)), copysign(clog_abs(a) + CLN2, a.y));
  const cplx down = csqrt_(Z(1 - a.x, -a.y)), up = csqrt_(Z(1 + a.x, a.y));
  return Z(a.x == 0 ? a.x : atan2(a.x, creal_mul(down, up)), asinh(cimag_mul(cconj(down), up)));
}
INLINE cplx cacos(cplx a) {
  if (cinf(a)) {
    if (isnan(a.x)) return Z(a.x, -a.y);
    if (isnan(a.y)) return Z(NAN, -a.x);
    return Z(atan2(fabs(cmark(a.y)), cmark(a.x)), -copysign((creal)INFINITY, a.y));
  }
  if (a.x == 0 && isnan(a.y)) return Z(NUM(0.5) * CPI, a.y);
  if (chuge(a)) return Z(atan2(fabs(a.y), a.x), -copysign(clog_abs(a) + CLN2, a.y));
  const cplx down = csqrt_(Z(1 - a.x, -a.y)), up = csqrt_(Z(1 + a.x, a.y));
  return Z(2 * atan2(down.x, up.x), asinh(cimag_mul(cconj(up), down)));
}
INLINE cplx cacosh(cplx a) {
  if (cinf(a)) {
    if (cnan(a)) return Z(INFINITY, NAN);
    return Z(INFINITY, atan2(cmark(a.y), cmark(a.x)));
  }
  if (a.x == 0 && isnan(a.y)) return Z(NAN, NUM(0.5) * CPI);
  if (chuge(a)) return Z(clog_abs(a) + CLN2, carg_(a));
  const cplx down = csqrt_(Z(a.x - 1, a.y)), up = csqrt_(Z(a.x + 1, a.y));
  return Z(asinh(creal_mul(cconj(down), up)), 2 * atan2(down.y, up.x));
}
INLINE cplx casinh(cplx a) { return casin(a.yx).yx; }
INLINE cplx catanh(cplx a) {
  const creal x = fabs(a.x), y = fabs(a.y);
  if (cinf(a)) return Z(copysign(NUM(0.0), a.x), isnan(a.y) ? NAN : copysign(NUM(0.5) * CPI, a.y));
  if (a.x == 0) return Z(a.x, atan(a.y));
  if (a.y == 0 && x < 1) return Z(atanh(a.x), a.y);
  if (cnan(a)) return Z(NAN, NAN);
  creal re, im;
  if (fmax(x, y) > LIMIT(CATAN)) {  // 1 / z
    re = x > y ? 1 / (x + y * (y / x)) : x / y / (x * (x / y) + y);
    im = NUM(0.5) * CPI;
  } else {
    re = x == 1 && y < LIMIT(CSMALL) ? NUM(0.5) * (CLN2 - log(y))
                                     : NUM(0.25) * log1p(4 * x / ((1 - x) * (1 - x) + y * y));
    im = NUM(0.5) * atan2(2 * y, (1 - x) * (1 + x) - y * y);
  }
  return Z(copysign(re, a.x), copysign(im, a.y));
}
INLINE cplx catan(cplx a) { return catanh(a.yx).yx; }

INLINE cplx csigmoid(cplx a) {
  const cplx e = cexp_(a.x < 0 ? a : -a);
  return cdiv(a.x < 0 ? e : Z(1, 0), Z(1, 0) + e);
}
INLINE cplx csilu(cplx a) {  // as one quotient, which decides the signs of zeros
  const cplx e = cexp_(a.x < 0 ? a : -a);
  return cdiv(a.x < 0 ? cmul(a, e) : a, Z(1, 0) + e);
}
INLINE cplx csinc(cplx a) { return ctrue(a) ? cdiv(csin(CPI * a), CPI * a) : Z(1, 0); }
// log(e^a + e^b), as the operand with the larger real part plus a logarithm.
INLINE cplx clogaddexp(cplx a, cplx b) {
  if (cnan(a) || cnan(b)) return Z(NAN, NAN);
  const cplx m = a.x < b.x ? b : a, n = a.x < b.x ? a : b;
  if (isinf(m.x) && m.x < 0) return m;
  return isinf(m.x) && a.x != b.x ? m : m + clog1p(cexp_(n - m));
}
INLINE creal cnumber(creal a, creal nan, creal high, creal low) {
  if (isnan(a)) return isnan(nan) ? 0 : nan;
  if (!isinf(a)) return a;
  return a > 0 ? (isnan(high) ? LIMIT(CMAX) : high) : isnan(low) ? -LIMIT(CMAX) : low;
}
// As in ATen, the modulus of the weight decides.
INLINE cplx clerp(cplx a, cplx b, cplx w) {
  return w.x * w.x + w.y * w.y < NUM(0.25) ? a + cmul(w, b - a) : b - cmul(b - a, Z(1, 0) - w);
}
#endif
