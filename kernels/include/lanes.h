// Combining the values of the work-items of a group that share a result ("lanes", a power of two) in local
// memory: lane l of an output is item first + l * step. Needs T.
#ifndef OCLTENSOR_LANES_H
#define OCLTENSOR_LANES_H
// name(shared, v, id, lane, lanes, step): the combination of v over the lanes, in all of them. Every item of
// the group must call it.
#define COMBINE_LANES(name, expression)                                                  \
  INLINE T name(__local T *shared, T v, uint id, uint lane, uint lanes, uint step) {     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                        \
    shared[id] = v;                                                                      \
    for (uint far = lanes / 2; far > 0; far /= 2) {                                      \
      barrier(CLK_LOCAL_MEM_FENCE);                                                      \
      if (lane < far) {                                                                  \
        const T x = shared[id], y = shared[id + far * step];                             \
        shared[id] = (expression);                                                       \
      }                                                                                  \
    }                                                                                    \
    barrier(CLK_LOCAL_MEM_FENCE);                                                        \
    return shared[id - lane * step];                                                     \
  }
// A kernel whose work-groups have GROUP items.
#define ROW_KERNEL __attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel
COMBINE_LANES(sum_of_lanes, x + y)
COMBINE_LANES(max_of_lanes, (x > y) ? x : y)
#endif
