// The loop over a work-item's pieces of work, as ops/division.h divides them: GROUP in front of __kernel,
// FOR_EACH(i, count, per_item) around the body. CPU_STYLE is 1 on CPU drivers. GROUP_SIZE: work-groups share
// pieces of work, and have this many items; without it their size is the launch's choice.
#ifndef OCLTENSOR_RANGE_H
#define OCLTENSOR_RANGE_H
#if CPU_STYLE
#define GROUP ONE_ITEM
#elif defined(GROUP_SIZE)
#define GROUP __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))
#else
#define GROUP
#endif
#define FOR_EACH(i, count, per_item)                                                                     \
  for (long i = (long)get_global_id(0) * (per_item), i##_end = min((long)(count), i + (long)(per_item)); \
       i < i##_end; ++i)
#endif
