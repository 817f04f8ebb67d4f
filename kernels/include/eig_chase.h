// QR steps of matrices in Hessenberg form: reflectors of three rows, or of two, and the chase of a bulge down
// a block. GPUs chase it in windows of the matrix that fit in local memory, and then apply the product of a
// window's reflectors to the rest of the matrix (Braman, Byers and Mathias, "The multishift QR algorithm",
// 2002).
#ifndef OCLTENSOR_EIG_CHASE_H
#define OCLTENSOR_EIG_CHASE_H
#include "matrix_elements.h"

// I - tau v v^H with v = (1, v1, v2), which makes (beta, 0, 0) of a vector.
typedef struct {
  T v1, v2, beta;
  R tau;
} Reflector;

INLINE Reflector reflector(T x0, T x1, T x2) {
  Reflector g;
  g.v1 = g.v2 = number(0);
  g.beta = x0;
  g.tau = 0;
  const R rest = fmax(largest_part(x1), largest_part(x2));
  if (rest > 0) {
    const R scale = fmax(largest_part(x0), rest);
    const R size = modulus(x0 / scale);
    const R norm = sqrt(square(x0 / scale) + square(x1 / scale) + square(x2 / scale));
    const T phase = size > 0 ? x0 / scale / size : number(1);
    const T pivot = phase * (size + norm);
    g.v1 = quotient(x1 / scale, pivot);
    g.v2 = quotient(x2 / scale, pivot);
    g.tau = (size + norm) / norm;
    g.beta = -norm * scale * phase;
  }
  return g;
}

// The reflector of the first column of the product of two shifted matrices, (H - s0 I)(H - s1 I), of which
// b00 to b21 are H's elements. The shifts are s0 + i im and s1 - i im, for complex matrices with im = 0.
INLINE Reflector shifted_reflector(T b00, T b01, T b10, T b11, T b21, T s0, T s1, R im) {
  const R size = part_sum(b00 - s1) + fabs(im) + part_sum(b10);
  const T part = b10 / size;
  const T x0 = product(part, b01) + product(b00 - s0, (b00 - s1) / size) + number(im * (im / size));
  return reflector(x0, product(part, b00 + b11 - s0 - s1), product(part, b21));
}

// Applies a reflector to three (or two) elements `next` apart, `count` times in steps of `step`, from the
// left; with `turned`, its conjugate.
INLINE void turn(__global T *x, long next, long step, long count, Reflector g, bool three, bool turned) {
  const T v1 = turned ? conjugate(g.v1) : g.v1, v2 = turned ? conjugate(g.v2) : g.v2;
  const T w1 = conjugate(v1), w2 = conjugate(v2);
  if (three) {
    FOR_TEAM(i, 0, count) {
      __global T *at = x + i * step;
      const T s = g.tau * (at[0] + product(w1, at[next]) + product(w2, at[2 * next]));
      at[0] -= s;
      at[next] -= product(v1, s);
      at[2 * next] -= product(v2, s);
    }
  } else {
    FOR_TEAM(i, 0, count) {
      __global T *at = x + i * step;
      const T s = g.tau * (at[0] + product(w1, at[next]));
      at[0] -= s;
      at[next] -= product(v1, s);
    }
  }
}

#if !CPU_STYLE
// Rows of a window: two of them, of numbers, are 20 KiB at most.
#define NUMBER_SIZE_f32 1
#define NUMBER_SIZE_f64 2
#define NUMBER_SIZE (CAT(NUMBER_SIZE_, REAL) * (COMPLEX + 1))
#define WINDOW (NUMBER_SIZE == 1 ? 48 : NUMBER_SIZE == 2 ? 32 : 24)

// A block [lo, hi] of a matrix of n rows; rows from `begin` on and columns up to `end` are updated.
typedef struct {
  long n, lo, hi, begin, end;
  bool vectors;
} Chase;

INLINE void turn_local(__local T *x, int next, Reflector g, bool three, bool turned) {
  const T v1 = turned ? conjugate(g.v1) : g.v1, v2 = turned ? conjugate(g.v2) : g.v2;
  T s = x[0] + product(conjugate(v1), x[next]);
  if (three) s += product(conjugate(v2), x[2 * next]);
  s *= g.tau;
  x[0] -= s;
  x[next] -= product(v1, s);
  if (three) x[2 * next] -= product(v2, s);
}

// Chases the bulge through a window, from step k to the last one there, which is returned; row r of `u`
// becomes column r of the product of the reflectors.
INLINE long chase_in_window(const Chase at, long base, int size, long k, Reflector *g,
                            __local T window[WINDOW][WINDOW + 1], __local T u[WINDOW][WINDOW]) {
  const long last = base + size - 1 == at.hi ? at.hi - 1 : base + size - 4;
  for (; k <= last; ++k) {
    const int i = (int)(k - base);
    const bool three = IF_REAL(k + 2 <= at.hi);
    if (k > at.lo)
      *g = reflector(window[i][i - 1], window[i + 1][i - 1], three ? window[i + 2][i - 1] : number(0));
    FOR_TEAM(c, i, size) turn_local(&window[i][c], WINDOW + 1, *g, three, false);
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_TEAM(r, 0, min(i + 4, size)) turn_local(&window[r][i], 1, *g, three, true);
    FOR_TEAM(r, 0, size) turn_local(&u[i][r], WINDOW, *g, three, true);
    if (LANE == 0 && k > at.lo) {
      window[i][i - 1] = g->beta;
      window[i + 1][i - 1] = number(0);
      if (three) window[i + 2][i - 1] = number(0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return last;
}

// Multiplies `size` elements that are `step` apart by the product of a window's reflectors.
INLINE void apply_window(__global T *x, long step, int size, bool adjoint, __local T u[WINDOW][WINDOW]) {
  T held[WINDOW];
  UNROLL for (int k = 0; k < WINDOW; ++k) held[k] = k < size ? x[k * step] : number(0);
  for (int r = 0; r < size; ++r) {
    T sum = number(0);
    UNROLL for (int k = 0; k < WINDOW; ++k) sum += product(adjoint ? conjugate(u[r][k]) : u[r][k], held[k]);
    x[r * step] = sum;
  }
}

// A QR step that begins with the reflector g.
INLINE void chase_bulge(__global T *a, __global T *q, const Chase at, Reflector g,
                        __local T window[WINDOW][WINDOW + 1], __local T u[WINDOW][WINDOW]) {
  const long n = at.n;
  for (long k = at.lo; k < at.hi;) {
    const long base = max(at.lo, k - 1);
    const int size = (int)min((long)WINDOW, at.hi + 1 - base);
    FOR_TEAM(e, 0, WINDOW * WINDOW) {
      const int r = (int)e / WINDOW, c = (int)e % WINDOW;
      u[r][c] = number(r == c);
      if (r < size && c < size) window[r][c] = a[(base + r) * n + base + c];
    }
    SYNC;
    k = chase_in_window(at, base, size, k, &g, window, u) + 1;
    FOR_TEAM(e, 0, size * size) a[(base + e / size) * n + base + e % size] = window[e / size][e % size];
    const long right = max(at.end - base - size, 0L), above = base - at.begin;
    FOR_TEAM(e, 0, right + above + (at.vectors ? n : 0)) {
      const bool is_right = e < right, is_above = !is_right && e < right + above;
      __global T *x = is_right ? a + base * n + base + size + e : a + (at.begin + e - right) * n + base;
      if (!is_right && !is_above) x = q + base * n + e - right - above;
      apply_window(x, is_above ? 1 : n, size, is_right, u);
    }
    SYNC;
  }
}
#endif
#endif
