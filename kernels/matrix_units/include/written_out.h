// Loops of few steps that are written out on devices: Intel's compiler unrolls a kernel's loops only up to
// some size of the kernel, and what they index stays in memory then. EACH_M(B, x) is B(0, x) B(1, x) .. for
// the FRAGMENTS_M row fragments of a sub-group; EACH_N is of column fragments, EACH_SUM of a lane's sums in a
// fragment, EACH_WORD of words, EACH_A and EACH_B of an item's shares of operands. One may stand in another's
// body. The counts are 1, 2, 4, 8 or 16.
#ifndef OCLTENSOR_WRITTEN_OUT_H
#define OCLTENSOR_WRITTEN_OUT_H

#if EMULATED
#define EACH_M(B, x) for (int m_ = 0; m_ < FRAGMENTS_M; ++m_) { B(m_, x) }
#define EACH_N(B, x) for (int n_ = 0; n_ < FRAGMENTS_N; ++n_) { B(n_, x) }
#define EACH_SUM(B, x) for (int e_ = 0; e_ < SUMS; ++e_) { B(e_, x) }
#define EACH_WORD(B, x) for (int w_ = 0; w_ < CHUNK_ELEMENTS; ++w_) { B(w_, x) }
#define EACH_A(B, x) for (int a_ = 0; a_ < SHARE_OF_A; ++a_) { B(a_, x) }
#define EACH_B(B, x) for (int b_ = 0; b_ < SHARE_OF_B; ++b_) { B(b_, x) }
#else
#define M_1(B, x) B(0, x)
#define M_2(B, x) M_1(B, x) B(1, x)
#define M_4(B, x) M_2(B, x) B(2, x) B(3, x)
#define M_8(B, x) M_4(B, x) B(4, x) B(5, x) B(6, x) B(7, x)
#define N_1(B, x) B(0, x)
#define N_2(B, x) N_1(B, x) B(1, x)
#define N_4(B, x) N_2(B, x) B(2, x) B(3, x)
#define N_8(B, x) N_4(B, x) B(4, x) B(5, x) B(6, x) B(7, x)
#define E_1(B, x) B(0, x)
#define E_2(B, x) E_1(B, x) B(1, x)
#define E_4(B, x) E_2(B, x) B(2, x) B(3, x)
#define E_8(B, x) E_4(B, x) B(4, x) B(5, x) B(6, x) B(7, x)
#define E_16(B, x) E_8(B, x) B(8, x) B(9, x) B(10, x) B(11, x) B(12, x) B(13, x) B(14, x) B(15, x)
#define EACH_M(B, x) CAT(M_, FRAGMENTS_M)(B, x)
#define EACH_N(B, x) CAT(N_, FRAGMENTS_N)(B, x)
#define EACH_SUM(B, x) CAT(E_, SUMS)(B, x)
#define EACH_WORD(B, x) CAT(E_, CHUNK_ELEMENTS)(B, x)
#if SHARE_OF_A == 1
#define EACH_A(B, x) M_1(B, x)
#elif SHARE_OF_A == 2
#define EACH_A(B, x) M_2(B, x)
#elif SHARE_OF_A == 4
#define EACH_A(B, x) M_4(B, x)
#elif SHARE_OF_A == 8
#define EACH_A(B, x) M_8(B, x)
#else
#error "no such share of the left operand"
#endif
#if SHARE_OF_B == 1
#define EACH_B(B, x) M_1(B, x)
#elif SHARE_OF_B == 2
#define EACH_B(B, x) M_2(B, x)
#elif SHARE_OF_B == 4
#define EACH_B(B, x) M_4(B, x)
#elif SHARE_OF_B == 8
#define EACH_B(B, x) M_8(B, x)
#else
#error "no such share of the right operand"
#endif
#endif
#endif
