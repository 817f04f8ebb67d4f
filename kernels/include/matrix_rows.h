// Rows of matrices as pieces of work: ROW is a work-item's row, or column, counted through the batch. On GPUs
// PANEL adjacent work-items share one: each takes every SHARERS-th element, from LANE on. CPU_STYLE
#ifndef OCLTENSOR_MATRIX_ROWS_H
#define OCLTENSOR_MATRIX_ROWS_H
#include "linalg.h"
#include "range.h"
#if CPU_STYLE
#define ROW ((long)get_global_id(0))
#define LANE 0
#define SHARERS 1
#else
#define ROW ((long)get_global_id(0) / PANEL)
#define LANE ((int)get_local_id(0))
#undef GROUP
#define GROUP __attribute__((reqd_work_group_size(PANEL, 1, 1)))
#define SHARERS PANEL
#endif
#endif
