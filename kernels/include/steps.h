// Loops over steps that read local memory, where compilers reorder these reads. STEPS_AT_ONCE, of the device:
// how many steps are unrolled together, where all would be too many: AMD's compiler reads what all of them
// need first, and spills. Where the steps index numbers in registers, SOME_STEPS unrolls none of them wholly,
// and the kernel turns these numbers by one place a step, so that their indices are constant (TURNS).
#ifndef OCLTENSOR_STEPS_H
#define OCLTENSOR_STEPS_H
#ifdef STEPS_AT_ONCE
#define PRAGMA_(text) _Pragma(#text)
#define PRAGMA(text) PRAGMA_(text)
#define SOME_STEPS PRAGMA(unroll STEPS_AT_ONCE)
#define UNROLL_STEPS SOME_STEPS
#define TURNS 1
#else
#define SOME_STEPS  // as many as the compiler likes
#define UNROLL_STEPS UNROLL
#define TURNS 0
#endif
#endif
