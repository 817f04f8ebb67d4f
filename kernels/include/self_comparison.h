// For kernels that test `x != x` for any type of x: true for a NaN, never for integers. Compilers of the
// clang family warn about integers, and PoCL reports that on the terminal; so the warning is switched off.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wtautological-compare"
#endif
