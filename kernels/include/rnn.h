// What the cells of recurrent layers share. All tensors have the element type A; rows of gates hold the gates
// one after another, `hidden` numbers each. A piece is an element of the state, on CPU drivers 16 of them:
//   EACH_PIECE(CELL)   runs CELL(V, READ, WRITE) for row `r` and the elements from `j` on; V is the number
//                      that it computes with, T or T16, and READ and WRITE are LOAD and STORE, or LOAD16 and
//                      STORE16
#ifndef OCLTENSOR_RNN_H
#define OCLTENSOR_RNN_H
#define COMPUTE A
#define FLOATING 1
#define UNSIGNED 0
#define MAXIMUM INFINITY
#if CPU_STYLE
#define VECTORS
#endif
#include "types.h"
typedef CTYPE(A) T;
typedef CVEC(A) T16;
#include "math.h"
#include "range.h"
#include "rnn_params.h"

#if CPU_STYLE
#define EACH_PIECE(CELL)                                                           \
  FOR_EACH(piece, p.pieces, p.per_item) {                                          \
    const long r = piece / p.per_row, first = (piece - r * p.per_row) * 16;        \
    long j = first;                                                                \
    if (j + 16 <= p.hidden)                                                        \
      CELL(T16, LOAD16, STORE16)                                                   \
    else                                                                           \
      for (; j < p.hidden; ++j) CELL(T, LOAD, STORE)                               \
  }
#else
#define EACH_PIECE(CELL)                                                           \
  FOR_EACH(piece, p.pieces, p.per_item) {                                          \
    const long r = piece / p.per_row, j = piece - r * p.per_row;                   \
    CELL(T, LOAD, STORE)                                                           \
  }
#endif

// Element j of gate k in row r of a tensor with `gates` gates; of a vector with a gate after another.
#define GATE_AT(gates, k) ((r * (gates) + (k)) * p.hidden + j)
#define STATE_AT (r * p.hidden + j)
#define BIAS_AT(k) ((k) * p.hidden + j)
#define OF(name) AT_CONST(A, name##_base, name##_offset)
#define TARGET(name) AT(A, name##_base, name##_offset)
#endif
