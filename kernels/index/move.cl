// Moving elements between a tensor that is traversed in order (`direct`) and one that an index tensor indexes
// (`indexed`). A is the element type (an integer of its width; on GPUs also b128, 16 bytes of a line), I the
// index type. MODE:
//   0  direct = indexed[index], 0 if the index is out of range
//   1  indexed[index] = direct, nothing if the index is out of range
//   2  direct = the offset into `indexed`, or NOWHERE (A is i64)
//   3  direct += the offset, or NOWHERE
// OFFSETS: the index tensor holds offsets or NOWHERE, as modes 2 and 3 leave them. ROW_INDEX: the index is
// constant along the inner dimension. UNIT: both tensors' inner strides are 1.
#include "types.h"
#include "faults.h"
#include "range.h"
#include "indexed_params.h"
#define NOWHERE LONG_MAX  // sorts after all offsets, also by its lowest bits alone
typedef uint4 stype_b128;

INLINE long offset_of(const IndexedParams p, FAULT_PARAMETERS, long v) {
#if OFFSETS
  return v;
#else
  const long at = p.wrap && v < 0 ? v + p.size : v;
  if (at >= 0 && at < p.size) return at * p.step;
  report_fault(faults, fault_site, v, p.size);
  return NOWHERE;
#endif
}

INLINE void move_one(__global STYPE(A) *direct, __global STYPE(A) *indexed, long offset, long d, long at) {
#if MODE == 0
  direct[d] = offset == NOWHERE ? (STYPE(A))0 : indexed[at + offset];
#elif MODE == 1
  if (offset != NOWHERE) indexed[at + offset] = direct[d];
#elif MODE == 2
  direct[d] = offset == NOWHERE ? NOWHERE : at + offset;
#else
  direct[d] = offset == NOWHERE || direct[d] == NOWHERE ? NOWHERE : direct[d] + at + offset;
#endif
}

#if CPU_STYLE
// Moves part [i0, i1) of a row.
INLINE void move_row(const IndexedParams p, FAULT_PARAMETERS, __global STYPE(A) *direct,
                     __global STYPE(A) *indexed, long a, __global const STYPE(I) *index, long i0, long i1) {
  const long sd = p.strides[0][0], sa = p.strides[1][0];
#if ROW_INDEX
  const long offset = offset_of(p, faults, fault_site, index[0]);
#if UNIT && MODE < 2
#if MODE == 0
  if (offset == NOWHERE) {
    for (long i = i0; i < i1; ++i) direct[i] = 0;
    return;
  }
  __global const STYPE(A) *from = indexed + a + offset;
  __global STYPE(A) *to = direct;
#else
  if (offset == NOWHERE) return;
  __global const STYPE(A) *from = direct;
  __global STYPE(A) *to = indexed + a + offset;
#endif
  long i = i0;
  for (; i + 16 <= i1; i += 16) STORE16(A, to, i, LOAD16(A, from, i));
  for (; i < i1; ++i) to[i] = from[i];
#else
  for (long i = i0; i < i1; ++i) move_one(direct, indexed, offset, i * sd, a + i * sa);
#endif
#else
  for (long i = i0; i < i1; ++i)
    move_one(direct, indexed, offset_of(p, faults, fault_site, index[i * p.strides[2][0]]), i * sd,
             a + i * sa);
#endif
}

#endif
GROUP __kernel void indexed(__global void *direct_base, ulong direct_offset, __global void *indexed_base,
                      ulong indexed_offset, __global const void *index_base, ulong index_offset,
                      FAULT_PARAMETERS, const IndexedParams p) {
  __global STYPE(A) *direct = AT(A, direct_base, direct_offset);
  __global STYPE(A) *indexed = AT(A, indexed_base, indexed_offset);
  __global const STYPE(I) *index = AT_CONST(I, index_base, index_offset);
#if CPU_STYLE
  const long i0 = get_global_id(0) * p.chunk, i1 = min((long)p.sizes[0], i0 + p.chunk);
  const long r0 = get_global_id(1) * p.rows_per_item, r1 = min((long)p.rows, r0 + p.rows_per_item);
  for (long r = r0; r < r1; ++r) {
    long rest = r, d = p.first[0], a = p.first[1], x = p.first[2];
    for (int k = 1; k < p.rank; ++k) {
      const long next = rest / p.sizes[k], at = rest - next * p.sizes[k];
      rest = next;
      d += at * p.strides[0][k];
      a += at * p.strides[1][k];
      x += at * p.strides[2][k];
    }
    move_row(p, faults, fault_site, direct + d, indexed, a, index + x, i0, i1);
  }
#else
  INDEX rest = get_global_id(0);
  long d = p.first[0], a = p.first[1], x = p.first[2];
  if (rest >= (INDEX)(p.sizes[0] * p.rows)) return;
  EACH_AXIS(k, 0, p.rank, INDEXED_RANK) {
    const INDEX size = p.sizes[k], next = rest / size;
    const long at = rest - next * size;
    rest = next;
    d += at * p.strides[0][k];
    a += at * p.strides[1][k];
    x += at * p.strides[2][k];
  }
  move_one(direct, indexed, offset_of(p, faults, fault_site, index[x]), d, a);
#endif
}
