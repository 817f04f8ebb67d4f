// Loops over the chunks of a list of tensors. Defines: COMPUTE (suffix), ROLES, CPU_STYLE, FLOATING, SPAN.
//   ITEMS __kernel void name(TENSOR_LISTS, const MultiTensorParams p) { CHUNKS_OF_ITEM { LOCATE ... } }
// The body has: `record` of the tensor, its elements `start` .. `end`, and `chunk`. On CPU drivers an item
// takes a run of chunks; on GPUs a work-group takes one.
#include "types.h"
#include "multi_tensor_params.h"
#if CPU_STYLE
#ifndef VECTORS
#define VECTORS
#endif
#define ITEMS ONE_ITEM
#elif !defined(SPAN)  // a program whose chunks are not launched
#define ITEMS
#else
#define ITEMS __attribute__((reqd_work_group_size(SPAN, 1, 1)))
#endif
#ifdef EXPRESSION
#include "pointwise_formula.h"
#else
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#endif

#define TENSOR_LISTS                                                                                      \
  __global char *b0, __global char *b1, __global char *b2, __global char *b3, __global char *b4,          \
      __global char *b5, __global char *b6, __global char *b7, __global char *b8, __global char *b9,      \
      __global char *b10, __global char *b11, __global char *b12, __global char *b13, __global char *b14, \
      __global char *b15, __global void *table_base, ulong table_offset
#define TABLE ((__global const ulong *)((__global const char *)table_base + table_offset))

INLINE __global char *place(TENSOR_LISTS, ulong address) {
  __global char *base = b0;
  switch ((uint)(address >> 56)) {
    case 1: base = b1; break;
    case 2: base = b2; break;
    case 3: base = b3; break;
    case 4: base = b4; break;
    case 5: base = b5; break;
    case 6: base = b6; break;
    case 7: base = b7; break;
    case 8: base = b8; break;
    case 9: base = b9; break;
    case 10: base = b10; break;
    case 11: base = b11; break;
    case 12: base = b12; break;
    case 13: base = b13; break;
    case 14: base = b14; break;
    case 15: base = b15; break;
  }
  return base + (address & 0xffffffffffffffUL);
}
#define PLACE(address)                                                                                  \
  place(b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, table_base, table_offset, \
        address)
// Pointers to the tensor of a role, and to a number that all tensors share.
#define ROLE(A, k) ((__global STYPE(A) *)PLACE(record[3 + (k)]))
#define SHARED(A, k) TO(COMPUTE, LOAD(A, (__global const STYPE(A) *)PLACE(p.shared[k]), 0))
#define NUMBER(k) FROM_BITS(COMPUTE, p.numbers[k])
#define TENSOR_NUMBER FROM_BITS(COMPUTE, record[2])

// The tensor of a chunk: the last one whose first chunk is at most `chunk` (empty tensors before it have the
// same first chunk).
INLINE long tensor_of(__global const ulong *table, long tensors, long chunk) {
  long low = 0, high = tensors - 1;
  while (low < high) {
    const long middle = (low + high + 1) / 2;
    if ((long)table[middle * (3 + ROLES)] <= chunk)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

#if CPU_STYLE
#define CHUNKS_OF_ITEM                                                                        \
  for (long chunk = (long)get_global_id(0) * p.per_item,                                      \
            last = min((long)p.chunks, chunk + (long)p.per_item);                             \
       chunk < last; ++chunk)
#else
#define CHUNKS_OF_ITEM for (long chunk = get_group_id(0), once = 1; once; once = 0)
#endif
#define LOCATE                                                                                \
  __global const ulong *record = TABLE + tensor_of(TABLE, p.tensors, chunk) * (3 + ROLES);    \
  const long start = (chunk - (long)record[0]) * p.chunk, end = min((long)record[1], start + (long)p.chunk);

// Runs BODY(V, N) over elements i of the chunk: N is 16 for vectors, else empty. GET and PUT are its loads
// and stores.
#if CPU_STYLE
#define SWEEP(BODY)                                  \
  {                                                  \
    long i = start;                                  \
    for (; i + 16 <= end; i += 16) { BODY(T16, 16) } \
    ROLLED for (; i < end; ++i) { BODY(T, ) }        \
  }
#else
#define SWEEP(BODY) \
  for (long i = start + get_local_id(0); i < end; i += get_local_size(0)) { BODY(T, ) }
#endif
#define GET(N, A, from) TO##N(COMPUTE, LOAD##N(A, from, i))
#define PUT(N, A, to, v) STORE##N(A, to, i, TO##N(A, v))
