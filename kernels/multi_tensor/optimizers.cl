// Steps of Adam, AdamW, SGD and Adagrad. Roles: parameter, gradient, then the state. Defines: A (the tensors'
// type), MAXIMIZE, DECAY, DECOUPLED, AMSGRAD, MOMENTUM, NESTEROV, FIRST; LR, SCALE, FOUND: types of the
// tensors that hold the learning rate, the gradients' scale, and whether to skip the step.
#include "multi_tensor.h"

#ifdef LR
#define LEARNING_RATE SHARED(LR, 0)
#else
#define LEARNING_RATE NUMBER(0)
#endif
#ifdef FOUND
#define UNLESS_FOUND if (SHARED(FOUND, 2) == (T)1) return;
#else
#define UNLESS_FOUND
#endif

// The gradient: unscaled (and stored unscaled), negated for MAXIMIZE, with weight decay.
#ifdef SCALE
#define SCALE_NUMBER const T scale = SHARED(SCALE, 1);
#define UNSCALE(V, N) \
  g = g / (V)(scale); \
  PUT(N, A, gradients, g)
#else
#define SCALE_NUMBER
#define UNSCALE(V, N)
#endif
#define GRADIENT(V, N)          \
  V p_ = GET(N, A, parameters); \
  V g = GET(N, A, gradients);   \
  UNSCALE(V, N);                \
  if (MAXIMIZE) g = -g;         \
  if (DECAY && !DECOUPLED) g = g + (V)(weight_decay) * p_;
#define PREPARE                                     \
  UNLESS_FOUND                                      \
  SCALE_NUMBER                                      \
  const T lr = LEARNING_RATE, weight_decay = NUMBER(1);

// numbers: lr, weight decay, eps, beta1, 1 - beta1, beta2, 1 - beta2, log beta1, log beta2.
#ifdef ADAM
ITEMS __kernel void adam(TENSOR_LISTS, const MultiTensorParams p) {
  PREPARE
  const T eps = NUMBER(2), beta1 = NUMBER(3), rest1 = NUMBER(4), beta2 = NUMBER(5), rest2 = NUMBER(6);
  CHUNKS_OF_ITEM {
    LOCATE
    __global STYPE(A) *parameters = ROLE(A, 0), *gradients = ROLE(A, 1), *means = ROLE(A, 2),
                      *squares = ROLE(A, 3);
#if AMSGRAD
    __global STYPE(A) *largest = ROLE(A, 5);
#define LARGEST(V, N)                  \
  const V old = GET(N, A, largest);    \
  u = (old < u) ? u : old;             \
  PUT(N, A, largest, u);
#else
#define LARGEST(V, N)
#endif
    // 1 - beta^step, by expm1: the difference would lose digits for a beta near 1.
    const T step = TO(COMPUTE, LOAD(f32, ROLE(f32, 4), 0));
    const T rate = lr / -expm1(step * NUMBER(7)), root = sqrt(-expm1(step * NUMBER(8)));
#define BODY(V, N)                                                      \
  GRADIENT(V, N)                                                        \
  if (DECAY && DECOUPLED) p_ = p_ - (V)(lr * weight_decay) * p_;        \
  const V m = (V)(beta1) * GET(N, A, means) + (V)(rest1) * g;           \
  V u = (V)(beta2) * GET(N, A, squares) + (V)(rest2) * g * g;           \
  PUT(N, A, means, m);                                                  \
  PUT(N, A, squares, u);                                                \
  LARGEST(V, N)                                                         \
  PUT(N, A, parameters, p_ - (V)(rate) * m / (sqrt(u) / (V)(root) + (V)(eps)));
    SWEEP(BODY)
#undef BODY
  }
}
#endif

// numbers: lr, weight decay, momentum, 1 - dampening.
#ifdef SGD
ITEMS __kernel void sgd(TENSOR_LISTS, const MultiTensorParams p) {
  PREPARE
  const T momentum = NUMBER(2), taken = NUMBER(3);
  CHUNKS_OF_ITEM {
    LOCATE
    __global STYPE(A) *parameters = ROLE(A, 0), *gradients = ROLE(A, 1);
#if MOMENTUM
    __global STYPE(A) *buffers = ROLE(A, 2);
#if FIRST
#define BUFFER(V, N) const V b = g;
#else
#define BUFFER(V, N) const V b = (V)(momentum) * GET(N, A, buffers) + (V)(taken) * g;
#endif
#define MOVE(V, N)                                  \
  BUFFER(V, N)                                      \
  PUT(N, A, buffers, b);                            \
  g = NESTEROV ? g + (V)(momentum) * b : b;
#else
#define MOVE(V, N)
#endif
#define BODY(V, N) \
  GRADIENT(V, N)   \
  MOVE(V, N)       \
  PUT(N, A, parameters, p_ - (V)(lr) * g);
    SWEEP(BODY)
#undef BODY
  }
}
#endif

// numbers: lr, weight decay, eps, decay of lr.
#ifdef ADAGRAD
ITEMS __kernel void adagrad(TENSOR_LISTS, const MultiTensorParams p) {
  PREPARE
  const T eps = NUMBER(2);
  CHUNKS_OF_ITEM {
    LOCATE
    __global STYPE(A) *parameters = ROLE(A, 0), *gradients = ROLE(A, 1), *sums = ROLE(A, 2);
    const T step = TO(COMPUTE, LOAD(f32, ROLE(f32, 3), 0));
    const T rate = lr / ((T)1 + (step - (T)1) * NUMBER(3));
#define BODY(V, N)                             \
  GRADIENT(V, N)                               \
  const V s = GET(N, A, sums) + g * g;         \
  PUT(N, A, sums, s);                          \
  PUT(N, A, parameters, p_ - (V)(rate) * g / (sqrt(s) + (V)(eps)));
    SWEEP(BODY)
#undef BODY
  }
}
#endif
