// The cell of a gated recurrent unit and its gradient (K. Cho et al., 2014). Gates are reset, update and new.
// The workspace holds them after their functions, the old state, and the hidden part of the new gate.
//   A (rnn.h); HAS_BIAS: both biases are there
#include "rnn.h"

#if HAS_BIAS
#define INPUT(READ, k) (READ(A, input, GATE_AT(3, k)) + READ(A, input_bias, BIAS_AT(k)))
#define HIDDEN(READ, k) (READ(A, hidden, GATE_AT(3, k)) + READ(A, hidden_bias, BIAS_AT(k)))
#else
#define INPUT(READ, k) READ(A, input, GATE_AT(3, k))
#define HIDDEN(READ, k) READ(A, hidden, GATE_AT(3, k))
#endif

// x is the old state.
#define FORWARD(V, READ, WRITE)                                                                      \
  {                                                                                                  \
    const V reset = sigmoid_(INPUT(READ, 0) + HIDDEN(READ, 0));                                      \
    const V update = sigmoid_(INPUT(READ, 1) + HIDDEN(READ, 1));                                     \
    const V hidden_new = HIDDEN(READ, 2), x = READ(A, hx, STATE_AT);                                 \
    const V fresh = tanh_(INPUT(READ, 2) + reset * hidden_new);                                      \
    WRITE(A, workspace, GATE_AT(5, 0), reset);                                                       \
    WRITE(A, workspace, GATE_AT(5, 1), update);                                                      \
    WRITE(A, workspace, GATE_AT(5, 2), fresh);                                                       \
    WRITE(A, workspace, GATE_AT(5, 3), x);                                                           \
    WRITE(A, workspace, GATE_AT(5, 4), hidden_new);                                                  \
    WRITE(A, hy, STATE_AT, fresh + update * (x - fresh));                                            \
  }

GROUP __kernel void forward(__global void *hy_base, ulong hy_offset, __global void *workspace_base,
                            ulong workspace_offset, __global const void *input_base, ulong input_offset,
                            __global const void *hidden_base, ulong hidden_offset,
                            __global const void *hx_base, ulong hx_offset,
                            __global const void *input_bias_base, ulong input_bias_offset,
                            __global const void *hidden_bias_base, ulong hidden_bias_offset,
                            const RnnParams p) {
  __global const STYPE(A) *input = OF(input), *hidden = OF(hidden), *hx = OF(hx);
  __global const STYPE(A) *input_bias = OF(input_bias), *hidden_bias = OF(hidden_bias);
  __global STYPE(A) *hy = TARGET(hy), *workspace = TARGET(workspace);
  EACH_PIECE(FORWARD)
}

#define BACKWARD(V, READ, WRITE)                                                                     \
  {                                                                                                  \
    const V reset = READ(A, workspace, GATE_AT(5, 0)), update = READ(A, workspace, GATE_AT(5, 1));   \
    const V fresh = READ(A, workspace, GATE_AT(5, 2)), x = READ(A, workspace, GATE_AT(5, 3));        \
    const V dy = READ(A, grad_hy, STATE_AT), one = (V)(1);                                           \
    const V d_update = dy * (x - fresh) * update * (one - update);                                   \
    const V d_fresh = dy * (one - update) * (one - fresh * fresh);                                   \
    const V d_reset = d_fresh * READ(A, workspace, GATE_AT(5, 4)) * reset * (one - reset);           \
    WRITE(A, grad_input, GATE_AT(3, 0), d_reset);                                                    \
    WRITE(A, grad_input, GATE_AT(3, 1), d_update);                                                   \
    WRITE(A, grad_input, GATE_AT(3, 2), d_fresh);                                                    \
    WRITE(A, grad_hidden, GATE_AT(3, 0), d_reset);                                                   \
    WRITE(A, grad_hidden, GATE_AT(3, 1), d_update);                                                  \
    WRITE(A, grad_hidden, GATE_AT(3, 2), d_fresh * reset);                                           \
    WRITE(A, grad_hx, STATE_AT, dy * update);                                                        \
  }

GROUP __kernel void backward(__global void *grad_input_base, ulong grad_input_offset,
                             __global void *grad_hidden_base, ulong grad_hidden_offset,
                             __global void *grad_hx_base, ulong grad_hx_offset,
                             __global const void *grad_hy_base, ulong grad_hy_offset,
                             __global const void *workspace_base, ulong workspace_offset,
                             const RnnParams p) {
  __global const STYPE(A) *grad_hy = OF(grad_hy), *workspace = OF(workspace);
  __global STYPE(A) *grad_input = TARGET(grad_input), *grad_hidden = TARGET(grad_hidden);
  __global STYPE(A) *grad_hx = TARGET(grad_hx);
  EACH_PIECE(BACKWARD)
}
