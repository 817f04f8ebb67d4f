// The cell of a long short-term memory and its gradient (S. Hochreiter, J. Schmidhuber, 1997, with the forget
// gate of F. Gers, 2000). Gates are input, forget, cell and output: i, f, g, o; the workspace holds them
// after their functions, and may be the memory of either gates.
//   A (rnn.h); HAS_BIAS: both biases are there; HAS_HY, HAS_CY defined: which gradients are
#include "rnn.h"

#if HAS_BIAS
#define BIAS(READ, k) +READ(A, input_bias, BIAS_AT(k)) + READ(A, hidden_bias, BIAS_AT(k))
#else
#define BIAS(READ, k)
#endif
#define RAW(READ, k) (READ(A, input, GATE_AT(4, k)) + READ(A, hidden, GATE_AT(4, k)) BIAS(READ, k))

#define FORWARD(V, READ, WRITE)                                                                      \
  {                                                                                                  \
    const V i = sigmoid_(RAW(READ, 0)), f = sigmoid_(RAW(READ, 1));                                  \
    const V g = tanh_(RAW(READ, 2)), o = sigmoid_(RAW(READ, 3));                                     \
    const V c = f * READ(A, cx, STATE_AT) + i * g;                                                   \
    WRITE(A, workspace, GATE_AT(4, 0), i);                                                           \
    WRITE(A, workspace, GATE_AT(4, 1), f);                                                           \
    WRITE(A, workspace, GATE_AT(4, 2), g);                                                           \
    WRITE(A, workspace, GATE_AT(4, 3), o);                                                           \
    WRITE(A, cy, STATE_AT, c);                                                                       \
    WRITE(A, hy, STATE_AT, o * tanh_(c));                                                            \
  }

GROUP __kernel void forward(__global void *hy_base, ulong hy_offset, __global void *cy_base, ulong cy_offset,
                            __global void *workspace_base, ulong workspace_offset,
                            __global const void *input_base, ulong input_offset,
                            __global const void *hidden_base, ulong hidden_offset,
                            __global const void *cx_base, ulong cx_offset,
                            __global const void *input_bias_base, ulong input_bias_offset,
                            __global const void *hidden_bias_base, ulong hidden_bias_offset,
                            const RnnParams p) {
  __global const STYPE(A) *input = OF(input), *hidden = OF(hidden), *cx = OF(cx);
  __global const STYPE(A) *input_bias = OF(input_bias), *hidden_bias = OF(hidden_bias);
  __global STYPE(A) *hy = TARGET(hy), *cy = TARGET(cy), *workspace = TARGET(workspace);
  EACH_PIECE(FORWARD)
}

#ifdef HAS_HY
#define FROM_HY(V, READ, value) (READ(A, grad_hy, STATE_AT) * (value))
#else
#define FROM_HY(V, READ, value) (V)(0)
#endif
#ifdef HAS_CY
#define FROM_CY(READ) +READ(A, grad_cy, STATE_AT)
#else
#define FROM_CY(READ)
#endif

#define BACKWARD(V, READ, WRITE)                                                                     \
  {                                                                                                  \
    const V i = READ(A, workspace, GATE_AT(4, 0)), f = READ(A, workspace, GATE_AT(4, 1));            \
    const V g = READ(A, workspace, GATE_AT(4, 2)), o = READ(A, workspace, GATE_AT(4, 3));            \
    const V c = tanh_(READ(A, cy, STATE_AT)), one = (V)(1);                                          \
    const V dc = FROM_HY(V, READ, o * (one - c * c)) FROM_CY(READ);                                  \
    const V df = dc * READ(A, cx, STATE_AT) * f * (one - f);                                         \
    WRITE(A, grad_gates, GATE_AT(4, 3), FROM_HY(V, READ, c * o * (one - o)));                        \
    WRITE(A, grad_gates, GATE_AT(4, 0), dc * g * i * (one - i));                                     \
    WRITE(A, grad_gates, GATE_AT(4, 1), df);                                                         \
    WRITE(A, grad_gates, GATE_AT(4, 2), dc * i * (one - g * g));                                     \
    WRITE(A, grad_cx, STATE_AT, dc * f);                                                             \
  }

// grad_cx may be the memory of grad_cy.
GROUP __kernel void backward(__global void *grad_gates_base, ulong grad_gates_offset,
                             __global void *grad_cx_base, ulong grad_cx_offset,
                             __global const void *grad_hy_base, ulong grad_hy_offset,
                             __global const void *grad_cy_base, ulong grad_cy_offset,
                             __global const void *cx_base, ulong cx_offset, __global const void *cy_base,
                             ulong cy_offset, __global const void *workspace_base, ulong workspace_offset,
                             const RnnParams p) {
  __global const STYPE(A) *grad_hy = OF(grad_hy), *grad_cy = OF(grad_cy), *cx = OF(cx), *cy = OF(cy);
  __global const STYPE(A) *workspace = OF(workspace);
  __global STYPE(A) *grad_gates = TARGET(grad_gates), *grad_cx = TARGET(grad_cx);
  EACH_PIECE(BACKWARD)
}
