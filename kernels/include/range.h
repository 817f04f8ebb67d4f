// The loop over a work-item's pieces of work, as ops/division.h divides them: GROUP in front of __kernel,
// FOR_EACH(i, count, per_item) around the body. CPU_STYLE is 1 on CPU drivers.
#ifndef OCLTENSOR_RANGE_H
#define OCLTENSOR_RANGE_H
#if CPU_STYLE
#define GROUP ONE_ITEM
#else
#define GROUP
#endif
#define FOR_EACH(i, count, per_item)                                                                     \
  for (long i = (long)get_global_id(0) * (per_item), i##_end = min((long)(count), i + (long)(per_item)); \
       i < i##_end; ++i)
#endif
