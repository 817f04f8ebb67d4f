#define TYPE f32
#line 1 "planted/mistake.cl"
// A program that no compiler takes: the farm's test of its gate.
__kernel void mistake(__global float *p) { p[get_global_id(0)] = not_declared; }
