// For kernels that ask `x != x` whatever the type of x: NaN where it is a float, and of integers none is.
// Compilers of the clang family warn of the latter, and PoCL writes to the terminal that they did.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wtautological-compare"
#endif
