#define COUNT 320
#line 1 "planted/spill.cl"
// A kernel that needs more registers than any GPU gives a work-item: the farm's test of its gate.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void spill(__global float *p, uint n) {
  float x[COUNT];
  const uint item = get_global_id(0);
  __attribute__((opencl_unroll_hint(COUNT)))
  for (uint i = 0; i < COUNT; ++i) x[i] = p[i * n + item];
  for (uint round = 0; round < n; ++round) {
    __attribute__((opencl_unroll_hint(COUNT)))
    for (uint i = 0; i < COUNT; ++i) x[i] = x[i] * x[(i + 7) % COUNT] + x[(i + 160) % COUNT];
  }
  __attribute__((opencl_unroll_hint(COUNT)))
  for (uint i = 0; i < COUNT; ++i) p[i * n + item] = x[i];
}
