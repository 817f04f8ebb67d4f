// Loops over a row of which each work-group takes a chunk: HELD elements per item, adjacent elements to
// adjacent items. Needs T.
#ifndef OCLTENSOR_LONG_ROWS_H
#define OCLTENSOR_LONG_ROWS_H
#define HELD 16
#define CHUNK_OF_ROW                                                                                \
  __local T shared[GROUP];                                                                          \
  const uint id = get_local_id(0);                                                                  \
  const long group = get_group_id(0), row = group / pieces, first = (group - row * pieces) * chunk, \
             start = row * n + first;                                                               \
  const uint count = (uint)min(chunk, n - first);
#define PLACE(k) ((k) * GROUP + id)
#define IN_CHUNK(k) (PLACE(k) < count)
#endif
