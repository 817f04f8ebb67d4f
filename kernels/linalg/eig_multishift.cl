// The Schur form of one large matrix in Hessenberg form on GPUs by sweeps with many shifts (Braman, Byers and
// Mathias, "The multishift QR algorithm, part I", 2002). Each pair of shifts has a bulge of three rows;
// BULGES of them follow each other as a chain, through windows of SPAN rows in local memory. Chains take part
// in a sweep one behind the other, all at once, a work-group each: a stage moves each by a window. Many
// work-groups apply the products of the windows' reflectors to the rest. TYPE, PART, GROUP
#include "eig_multishift_params.h"
#include "eig_chase.h"
#include "eig_deflation.h"
#define TEAM_ITEMS 64  // work-items of a bulge, of which GROUP is a multiple, and at least SPAN
#define APART 4        // rows from a bulge to the next one: reflectors of all of them commute
#define VECTORS 64     // that a work-group multiplies by a product
#define UNROLL_16 _Pragma("unroll 16")  // so many loads are on their way at once

// flag [n]: whether row k > lo of the active block begins a block of its own; the element left of it becomes
// zero.
TEAM __kernel void deflate(__global void *a_base, ulong a_offset, __global void *flag_base, ulong flag_offset,
                           const EigMultishiftParams p) {
  __global T *a = NUMBERS(a_base, a_offset);
  __global int *flag = (__global int *)((__global char *)flag_base + flag_offset);
  FOR_TEAM(k, p.lo + 1, p.hi + 1) flag[k] = is_negligible(a, p.n, k, p.hi);
  SYNC;
  FOR_TEAM(k, p.lo + 1, p.hi + 1) if (flag[k]) a[k * p.n + k - 1] = number(0);
}

// A stage of the chain p.chain + the work-group's number. shift [pairs, 3]: s0, s1 and im of
// shifted_reflector. place [groups, 2]: the window's first row and its size; u [groups, SPAN, SPAN]: row r is
// column r of the product of the reflectors.
TEAM __kernel void chase(__global void *a_base, ulong a_offset, __global const void *shift_base,
                         ulong shift_offset, __global void *place_base, ulong place_offset,
                         __global void *u_base, ulong u_offset, const EigMultishiftParams p) {
  __local T window[SPAN][SPAN + 1], u[SPAN][SPAN];
  const int steps = SPAN - APART * BULGES, group = (int)get_group_id(0);
  const long n = p.n, lo = p.lo, hi = p.hi, chain = p.chain + group;
  const long first = lo + (p.stage - chain * p.lag) * steps;  // the row of the foremost bulge
  const long base = max(lo, first - (APART * (BULGES - 1) + 1));
  const int size = (int)(min(hi, first + steps + 2) - base) + 1;
  __global T *a = NUMBERS(a_base, a_offset) + base * n + base;
  __global T *product_of = NUMBERS(u_base, u_offset) + group * SPAN * SPAN;
  __global int *place = (__global int *)((__global char *)place_base + place_offset) + group * 2;
  const int item = (int)get_local_id(0), team = item / TEAM_ITEMS, i = item % TEAM_ITEMS;
  const long bulge = chain * BULGES + team;
  const bool exists = bulge < p.pairs;
  __global const T *shift = NUMBERS_CONST(shift_base, shift_offset) + (exists ? bulge : 0) * 3;
  const T s0 = shift[0], s1 = shift[1];
  const R im = real_part(shift[2]);
  UNROLL_16 for (int e = item; e < SPAN * SPAN; e += GROUP) {
    const int r = e / SPAN, c = e % SPAN;
    u[r][c] = number(r == c);
    if (r < size && c < size) window[r][c] = a[r * n + c];
  }
  SYNC;
  // The block's first and last row as the window counts them, and the last step in which a bulge begins.
  const int top = (int)(lo - base), bottom = (int)(hi - base);
  const int last_begin = (int)(lo - first) + APART * (BULGES - 1);
  int r = (int)(first - base) - APART * team;
  Reflector g = reflector(number(0), number(0), number(0));
  for (int step = 0; step < steps; ++step, ++r) {
    const bool is_on = exists && r >= top && r < bottom, three = r + 2 <= bottom, begins = r == top;
    if (is_on && !begins)
      g = reflector(window[r][r - 1], window[r + 1][r - 1], three ? window[r + 2][r - 1] : number(0));
    if (step <= last_begin) {  // a bulge that begins changes the columns that it reads
      if (is_on && begins)
        g = shifted_reflector(window[0][0], window[0][1], window[1][0], window[1][1], window[2][1], s0, s1,
                              im);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (is_on && i >= r && i < size) turn_local(&window[r][i], SPAN + 1, g, three, false);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (is_on) {
      if (i < min(r + 4, size)) turn_local(&window[i][r], 1, g, three, true);
      if (i < size) turn_local(&u[r][i], SPAN, g, three, true);
      if (i == 0 && !begins) {
        window[r][r - 1] = g.beta;
        window[r + 1][r - 1] = number(0);
        if (three) window[r + 2][r - 1] = number(0);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  FOR_TEAM(e, 0, SPAN * SPAN) {
    const int r = (int)e / SPAN, c = (int)e % SPAN;
    product_of[e] = u[r][c];
    if (r < size && c < size) a[r * n + c] = window[r][c];
  }
  if (item < 2) place[item] = item == 0 ? (int)base : size;
}

// Rows of u in local memory are read by vectors.
#if COMPLEX
#define LANES_OF_V 1
typedef T V;
INLINE V product_of_vectors(V x, V y) { return product(x, y); }
INLINE T sum_of(V x) { return x; }
#else
#define LANES_OF_V 4
#define VECTOR_f32 float4
#define VECTOR_f64 double4
typedef CAT(VECTOR_, TYPE) V;
INLINE V product_of_vectors(V x, V y) { return x * y; }
INLINE T sum_of(V x) { return (x.x + x.y) + (x.z + x.w); }
#endif
#define SPAN_V (SPAN / LANES_OF_V)

// Multiplies `size` numbers that are `step` apart.
INLINE void multiply(__global T *x, long step, int size, __local const V *u) {
  V held[SPAN_V];
  UNROLL for (int k = 0; k < SPAN_V; ++k) {
#if COMPLEX
    held[k] = k < size ? x[k * step] : number(0);
#else
    const int j = 4 * k;
    held[k] = (V)(j < size ? x[j * step] : 0, j + 1 < size ? x[(j + 1) * step] : 0,
                  j + 2 < size ? x[(j + 2) * step] : 0, j + 3 < size ? x[(j + 3) * step] : 0);
#endif
  }
  for (int r = 0; r < size; ++r) {
    V sum = 0;
    UNROLL for (int k = 0; k < SPAN_V; ++k) sum += product_of_vectors(u[r * SPAN_V + k], held[k]);
    x[r * step] = sum_of(sum);
  }
}

// Applies the products u [windows, rows, rows] of windows to what p.part and the following parts name:
// 0: columns right of the window, 1: q, which becomes the transpose of Q, 2: rows above it. Windows are the
// second dimension of work-groups; their parts 0 and 1 may run together, or all three for one window.
__attribute__((reqd_work_group_size(VECTORS, 1, 1))) __kernel void
apply(__global void *a_base, ulong a_offset, __global void *q_base, ulong q_offset,
      __global const void *place_base, ulong place_offset, __global const void *u_base, ulong u_offset,
      const EigMultishiftParams p) {
  __local V u[SPAN * SPAN_V];
  const long window = get_group_id(1), n = p.n, part = p.part + get_group_id(0) / p.tiles;
  const long tile = get_group_id(0) % p.tiles * VECTORS, i = tile + get_local_id(0);
  __global const int *place = (__global const int *)((__global const char *)place_base + place_offset);
  const long base = place[window * 2];
  const int size = place[window * 2 + 1], rows = (int)p.rows;
  const long from = part == 0 ? base + size : part == 1 ? 0 : p.begin;
  const long to = part == 0 ? p.end : part == 1 ? n : base;
  __global const T *product_of = NUMBERS_CONST(u_base, u_offset) + window * rows * rows;
  __local T *numbers = (__local T *)u;
  const bool is_needed = tile < to && tile + VECTORS > from;
  UNROLL_16 for (int e = get_local_id(0); is_needed && e < SPAN * SPAN; e += VECTORS) {
    const int r = e / SPAN, c = e % SPAN;
    const T x = r < size && c < size ? product_of[r * rows + c] : number(0);
    numbers[e] = part == 0 ? conjugate(x) : x;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i >= from && i < to) {
    __global T *a = NUMBERS(a_base, a_offset), *q = NUMBERS(q_base, q_offset);
    __global T *x = part == 0 ? a + base * n + i : part == 1 ? q + base * n + i : a + i * n + base;
    multiply(x, part == 2 ? 1 : n, size, u);
  }
}

// b [blocks, rows, rows] = the diagonal blocks that place [blocks, 2] names, padded with zeros; q = unit
// matrices; number [blocks, 2] as of balanced matrices.
TEAM __kernel void take_blocks(__global const void *a_base, ulong a_offset, __global const void *place_base,
                               ulong place_offset, __global void *b_base, ulong b_offset,
                               __global void *q_base, ulong q_offset, __global void *number_base,
                               ulong number_offset, const EigMultishiftParams p) {
  const long block = get_group_id(0), rows = p.rows;
  __global const int *place = (__global const int *)((__global const char *)place_base + place_offset);
  const long base = place[block * 2], size = place[block * 2 + 1];
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + base * p.n + base;
  __global T *b = NUMBERS(b_base, b_offset) + block * rows * rows;
  __global T *q = NUMBERS(q_base, q_offset) + block * rows * rows;
  FOR_TEAM(e, 0, rows * rows) {
    const long r = e / rows, c = e % rows;
    b[e] = r < size && c < size && c + 1 >= r ? a[r * p.n + c] : number(0);
    q[e] = number(r == c);
  }
  if (LANE < 2) AT(REAL, number_base, number_offset)[block * 2 + LANE] = LANE == 0;
}

// Puts the blocks back, and their eigenvalues; a NaN among those makes number[0] NaN.
TEAM __kernel void put_blocks(__global void *a_base, ulong a_offset, __global const void *place_base,
                              ulong place_offset, __global const void *b_base, ulong b_offset,
                              __global const void *found_base, ulong found_offset, __global void *value_base,
                              ulong value_offset, __global void *number_base, ulong number_offset,
                              const EigMultishiftParams p) {
  const long block = get_group_id(0), rows = p.rows;
  __global const int *place = (__global const int *)((__global const char *)place_base + place_offset);
  const long base = place[block * 2], size = place[block * 2 + 1];
  __global T *a = NUMBERS(a_base, a_offset) + base * p.n + base;
  __global const T *b = NUMBERS_CONST(b_base, b_offset) + block * rows * rows;
  __global const cplx *found = AT_CPLX_CONST(found_base, found_offset) + block * rows;
  FOR_TEAM(e, 0, size * size) a[e / size * p.n + e % size] = b[e / size * rows + e % size];
  FOR_TEAM(i, 0, size) {
    AT_CPLX(value_base, value_offset)[base + i] = found[i];
    if (isnan(found[i].x)) AT(REAL, number_base, number_offset)[0] = NAN;
  }
}

// scaled [n]: the eigenvalues of the matrix before scaling, NaN where it has not converged.
TEAM __kernel void finish(__global const void *value_base, ulong value_offset,
                          __global const void *number_base, ulong number_offset, __global void *scaled_base,
                          ulong scaled_offset, const EigMultishiftParams p) {
  const R unit = AT_CONST(REAL, number_base, number_offset)[0];
  FOR_TEAM(i, 0, p.n) {
    const cplx value = AT_CPLX_CONST(value_base, value_offset)[i];
    AT_CPLX(scaled_base, scaled_offset)[i] = isnan(unit) ? Z(NAN, NAN) : value * unit;
  }
}
