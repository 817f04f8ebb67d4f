// Helpers of pointwise formulas, for the element type T and its vector T16 alike (FLOATING: T is a floating
// type).
#ifndef OCLTENSOR_MATH_H
#define OCLTENSOR_MATH_H
#define OVERLOAD __attribute__((overloadable))

// A NaN in either operand gives NaN, as in ATen's maximum and minimum; of equal operands (zeros of both
// signs) the first is taken, so that clamping keeps a zero's sign.
#define ORDER_FUNCTIONS(V)                                                                    \
  INLINE V OVERLOAD maximum_(V a, V b) { return (a >= b || a != a) ? a : b; }                 \
  INLINE V OVERLOAD minimum_(V a, V b) { return (a <= b || a != a) ? a : b; }                 \
  INLINE V OVERLOAD clamp_(V a, V low, V high) { return minimum_(maximum_(a, low), high); }
ORDER_FUNCTIONS(T)
#ifdef VECTORS
ORDER_FUNCTIONS(T16)
#endif

#if FLOATING
#include "fmod.h"
#include "pow.h"
// exp where the result is added to numbers near 1: on CPU drivers results under 2.7e-38 may be 0.
#ifdef VECTORS
#include "exp.h"
INLINE T16 OVERLOAD exp_(T16 a) { return exp_16(a); }
#endif
INLINE T OVERLOAD exp_(T a) { return exp(a); }
// tanh on CPU drivers: 1 - 2 / (exp(2|x|) + 1), and near 0 the approximations of Cephes (S. Moshier, tanhf.c
// and tanh.c), with the sign of a, which a zero has, too. PoCL's own vector tanh saturates one ulp below 1.
#define TANH_SMALL_FLOAT(V, z)                                                                    \
  ((((((V)(-5.70498872745e-3f) * z + (V)(2.06390887954e-2f)) * z + (V)(-5.37397155531e-2f)) * z + \
     (V)(1.33314422036e-1f)) * z + (V)(-3.33332819422e-1f)) * z)
#ifdef cl_khr_fp64
#define TANH_SMALL_DOUBLE(V, z)                                                               \
  (z * (((V)(-9.64399179425052238628e-1) * z + (V)(-9.92877231001918586564e1)) * z +          \
        (V)(-1.61468768441708447952e3)) /                                                     \
   (((z + (V)(1.12811678491632931402e2)) * z + (V)(2.23548839060100448583e3)) * z +           \
    (V)(4.84406305325125486048e3)))
#define TANH_SMALL(V, z) (sizeof(T) == 8 ? TANH_SMALL_DOUBLE(V, z) : TANH_SMALL_FLOAT(V, z))
#else
#define TANH_SMALL(V, z) TANH_SMALL_FLOAT(V, z)
#endif
#ifdef VECTORS
#define TANH_FUNCTION(V)                                                      \
  INLINE V OVERLOAD tanh_(V a) {                                              \
    const V x = fabs(a);                                                      \
    const V z = a * a;                                                        \
    const V large = (V)(1) - (V)(2) / (exp_(x + x) + (V)(1));                 \
    return copysign((x < (V)(0.625f)) ? x + x * TANH_SMALL(V, z) : large, a); \
  }
TANH_FUNCTION(T)
TANH_FUNCTION(T16)
#else
// From 9.02 (19.1 in float64) on the nearest number is 1. PoCL's scalar tanh stays one ulp below, so that
// gelu would multiply the difference by infinity.
INLINE T tanh_(T a) {
  return (fabs(a) > (sizeof(T) == 8 ? (T)19.1f : (T)9.02f)) ? copysign((T)1, a) : tanh(a);
}
#endif
/* Some drivers give -inf at -inf. */
INLINE T lgamma_(T a) { return isinf(a) ? (T)INFINITY : lgamma(a); }
/* In integers, so that a device that flushes denormals gives them: `order` counts representable numbers
   from 0. */
#define NEXT_AFTER(F, I, INFINITE)                                                            \
  INLINE F OVERLOAD nextafter_(F a, F b) {                                                    \
    const I lowest = (I)1 << (8 * sizeof(I) - 1);                                             \
    const I ia = as_##I(a), ib = as_##I(b), ma = ia & ~lowest, mb = ib & ~lowest;             \
    if (ma > INFINITE || mb > INFINITE) return (F)NAN;                                        \
    const I order_a = ia < 0 ? -ma : ma, order_b = ib < 0 ? -mb : mb;                         \
    if (order_a == order_b) return b;                                                         \
    const I next = order_a < order_b ? order_a + 1 : order_a - 1;                             \
    return as_##F(next < 0 ? -next | lowest : next == 0 ? ia & lowest : next);                \
  }
NEXT_AFTER(float, int, 0x7f800000)
#ifdef cl_khr_fp64
NEXT_AFTER(double, long, 0x7ff0000000000000L)
#endif
/* The same for the patterns of 16-bit numbers, which are computed as floats. */
INLINE ushort next_pattern(int a, int b, int infinite) {
  const int ma = a & 0x7fff, mb = b & 0x7fff;
  if (ma > infinite || mb > infinite) return (ushort)0x7fff;
  const int order_a = a >> 15 ? -ma : ma, order_b = b >> 15 ? -mb : mb;
  if (order_a == order_b) return (ushort)b;
  const int next = order_a < order_b ? order_a + 1 : order_a - 1;
  return (ushort)(next < 0 ? -next | 0x8000 : next == 0 ? a & 0x8000 : next);
}
INLINE float nextafter_f16(float a, float b) {
  ushort bits[2];
  vstore_half_rte(a, 0, (half *)bits);
  vstore_half_rte(b, 1, (half *)bits);
  const ushort next = next_pattern(bits[0], bits[1], 0x7c00);
  return vload_half(0, (const half *)&next);
}
INLINE float nextafter_bf16(float a, float b) {
  return as_float((uint)next_pattern(round_bf16(a), round_bf16(b), 0x7f80) << 16);
}
// erf in float on CPU drivers, 1.4 ulp: x + x P(x^2) under 0.9, else 1 - exp(-Q(x)), where Q approximates
// -log(erfc(x)). P and Q are minimax fits to the definition by Lawson's iteratively reweighted least squares
// (C. L. Lawson, 1961). Without branches, unlike PoCL's vector erf, which computes lane by lane.
#ifdef VECTORS
#define ERF_FUNCTION(V)                                                                       \
  INLINE V OVERLOAD erf_(V a) {                                                               \
    if (sizeof(T) == 8) return erf(a);                                                        \
    const V x = fabs(a), z = a * a, t = (x > (V)(4)) ? (V)(4) : x;                            \
    V p = fma(z, (V)(-6.090342649e-4f), (V)(5.011959933e-3f));                                \
    p = fma(p, z, (V)(-2.677890658e-2f));                                                     \
    p = fma(p, z, (V)(1.128214076e-1f));                                                      \
    p = fma(p, z, (V)(-3.761252463e-1f));                                                     \
    p = fma(p, z, (V)(1.283791512e-1f));                                                      \
    V q = fma(t, (V)(-1.982218819e-4f), (V)(3.065511351e-3f));                                \
    q = fma(q, t, (V)(-2.231529355e-2f));                                                     \
    q = fma(q, t, (V)(1.041138396e-1f));                                                      \
    q = fma(q, t, (V)(6.369758844e-1f));                                                      \
    q = fma(q, t, (V)(1.127797365f));                                                         \
    q = fma(q, t, (V)(1.664244774e-4f));                                                      \
    const V large = copysign((V)(1) - exp_(-q), a);                                           \
    return (x < (V)(0.9f)) ? fma(p, a, a) : large;                                            \
  }
ERF_FUNCTION(T)
ERF_FUNCTION(T16)
#else
INLINE T erf_(T a) { return erf(a); }
#endif
#define FLOAT_FUNCTIONS(V)                                                                   \
  INLINE V OVERLOAD remainder_(V a, V b) {                                                   \
    const V m = fmod_(a, b);                                                                 \
    return (m != (V)(0) && ((b < (V)(0)) != (m < (V)(0)))) ? m + b : m;                      \
  }                                                                                          \
  INLINE V OVERLOAD divide_floor_(V a, V b) {                                                \
    const V m = fmod_(a, b);                                                                 \
    V q = (a - m) / b;                                                                       \
    q = (m != (V)(0) && ((b < (V)(0)) != (m < (V)(0)))) ? q - (V)(1) : q;                    \
    const V f = floor(q);                                                                    \
    const V rounded = (q - f > (V)(0.5f)) ? f + (V)(1) : f;                                  \
    const V result = (q != (V)(0)) ? rounded : copysign((V)(0), a / b);                      \
    return (b == (V)(0)) ? a / b : result;                                                   \
  }                                                                                          \
  INLINE V OVERLOAD sigmoid_(V a) { return (V)(1) / ((V)(1) + exp_(-a)); }                   \
  INLINE V OVERLOAD softplus_(V a) { return log1p(exp(a)); }                                 \
  INLINE V OVERLOAD logit_(V a, V eps) {                                                     \
    const V inside = clamp_(a, eps, (V)(1) - eps);                                           \
    const V z = (eps >= (V)(0)) ? inside : a;                                                \
    return log(z / ((V)(1) - z));                                                            \
  }                                                                                          \
  INLINE V OVERLOAD logit_backward_(V grad, V a, V eps) {                                    \
    const V slope = grad / (a * ((V)(1) - a));                                               \
    const V outside = (eps >= (V)(0)) ? (V)(0) : (V)(NAN);                                   \
    const V low = (eps >= (V)(0)) ? eps : (V)(0);                                            \
    return (a < low || a > (V)(1) - low) ? outside : slope;                                  \
  }                                                                                          \
  INLINE V OVERLOAD logaddexp_(V a, V b) {                                                   \
    const V m = maximum_(a, b);                                                              \
    return (a == b && isinf(a)) ? a : m + log1p(exp(-fabs(a - b)));                          \
  }                                                                                          \
  INLINE V OVERLOAD logaddexp2_(V a, V b) {                                                  \
    const V m = maximum_(a, b);                                                              \
    return (a == b && isinf(a)) ? a : m + log1p(exp2(-fabs(a - b))) * (V)(LOG2_E);           \
  }                                                                                          \
  INLINE V OVERLOAD round_decimals_(V a, V decimals) {                                       \
    const V ten = rint(exp10(fabs(decimals)));                                               \
    return (decimals >= (V)(0)) ? rint(a * ten) / ten : rint(a / ten) * ten;                 \
  }                                                                                          \
  INLINE V OVERLOAD gelu_tanh_(V a) {                                                        \
    const V inner = (V)(SQRT_2_OVER_PI) * (a + (V)(GELU_CUBIC) * a * a * a);                 \
    return (V)(0.5f) * a * ((V)(1) + tanh_(inner));                                          \
  }                                                                                          \
  INLINE V OVERLOAD gelu_slope_(V a) {                                                       \
    return normal_cdf_(a) + a * exp_((V)(-0.5f) * a * a) * (V)(INVERSE_SQRT_2PI);            \
  }                                                                                          \
  INLINE V OVERLOAD gelu_tanh_slope_(V a) {                                                  \
    /* beyond 100 the slope is constant; the square of a could give infinity times 0 */      \
    const V x = (fabs(a) > (V)(100) && !isinf(a)) ? copysign((V)(100), a) : a;               \
    const V t = tanh_((V)(SQRT_2_OVER_PI) * (x + (V)(GELU_CUBIC) * x * x * x));              \
    const V inner = (V)(SQRT_2_OVER_PI) * ((V)(1) + (V)(3 * GELU_CUBIC) * x * x);            \
    return (V)(0.5f) * ((V)(1) + t) + (V)(0.5f) * x * ((V)(1) - t * t) * inner;              \
  }                                                                                          \
  INLINE V OVERLOAD mish_slope_(V a) {                                                       \
    const V t = tanh_(softplus_(a));                                                         \
    return t + a * ((V)(1) - t * t) * sigmoid_(a);                                           \
  }                                                                                          \
  INLINE V OVERLOAD silu_slope_(V a) {                                                       \
    const V s = sigmoid_(a);                                                                 \
    return s * ((V)(1) + a * ((V)(1) - s));                                                  \
  }                                                                                          \
  INLINE V OVERLOAD elu_slope_(V a, V alpha, V scale, V input_scale, V is_result) {          \
    const V by_result = input_scale * (a + alpha * scale);                                   \
    const V by_input = input_scale * alpha * scale * exp(a * input_scale);                   \
    const V negative = (is_result != (V)(0)) ? by_result : by_input;                         \
    return (a <= (V)(0)) ? negative : scale;                                                 \
  }
#ifdef cl_khr_fp64
#define SQRT_2_OVER_PI 0.79788456080286535588
#define SQRT_HALF 0.70710678118654752440
#define INVERSE_SQRT_2PI 0.39894228040143267794
#define PI_ 3.14159265358979323846
#define GELU_CUBIC 0.044715
#define LOG2_E 1.44269504088896340736
#else
#define SQRT_2_OVER_PI 0.797884561f
#define SQRT_HALF 0.707106781f
#define INVERSE_SQRT_2PI 0.398942280f
#define PI_ 3.14159265f
#define GELU_CUBIC 0.044715f
#define LOG2_E 1.44269504f
#endif
#include "normal.h"
#include "trigonometry.h"
FLOAT_FUNCTIONS(T)
#ifdef VECTORS
FLOAT_FUNCTIONS(T16)
#endif

#else  // integers: division by 0 gives 0, and the lowest value over -1 wraps, where hardware would trap
#define INTEGER_FUNCTIONS(V)                                                                     \
  INLINE V OVERLOAD quotient_(V a, V b) {                                                        \
    const V safe = (b == (V)(0) || b == (V)(-1)) ? (V)(1) : b;                                   \
    const V q = a / safe;                                                                        \
    const V minus_one = UNSIGNED ? ((a == (V)(-1)) ? (V)(1) : (V)(0)) : -a;                      \
    return (b == (V)(0)) ? (V)(0) : ((b == (V)(-1)) ? minus_one : q);                            \
  }                                                                                              \
  INLINE V OVERLOAD fmod_(V a, V b) { return a - quotient_(a, b) * b; }                          \
  INLINE V OVERLOAD remainder_(V a, V b) {                                                       \
    const V m = fmod_(a, b);                                                                     \
    return (m != (V)(0) && ((b < (V)(0)) != (m < (V)(0)))) ? m + b : m;                          \
  }                                                                                              \
  INLINE V OVERLOAD divide_floor_(V a, V b) {                                                    \
    const V q = quotient_(a, b);                                                                 \
    const V m = a - q * b;                                                                       \
    return (m != (V)(0) && ((b < (V)(0)) != (m < (V)(0)))) ? q - (V)(1) : q;                     \
  }                                                                                              \
  INLINE V OVERLOAD shift_left_(V a, V b) {                                                      \
    return (b < (V)(0) || b >= (V)(8 * sizeof(T))) ? (V)(0) : a << b;                            \
  }                                                                                              \
  INLINE V OVERLOAD shift_right_(V a, V b) {                                                     \
    return (b < (V)(0) || b >= (V)(8 * sizeof(T))) ? ((a < (V)(0)) ? (V)(-1) : (V)(0)) : a >> b; \
  }
INTEGER_FUNCTIONS(T)
#ifdef VECTORS
INTEGER_FUNCTIONS(T16)
#endif

INLINE T power_(T base, T exponent) {
  if (exponent < (T)0)
    return base == (T)1 ? (T)1 : base == (T)(-1) ? (exponent % (T)2 == (T)0 ? (T)1 : (T)(-1)) : (T)0;
  T result = 1;
  while (exponent != (T)0) {
    if (exponent & (T)1) result *= base;
    base *= base;
    exponent >>= (T)1;
  }
  return result;
}
INLINE T gcd_(T a, T b) {
  a = a < (T)0 ? -a : a;
  b = b < (T)0 ? -b : b;
  while (b != (T)0) {
    const T next = a % b;
    a = b;
    b = next;
  }
  return a;
}
INLINE T lcm_(T a, T b) {
  const T g = gcd_(a, b);
  const T l = g == (T)0 ? (T)0 : (a / g) * b;
  return l < (T)0 ? -l : l;
}
#endif
#endif
