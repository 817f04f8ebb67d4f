// Pieces of work that are rows of a tensor if CPU_STYLE is 1, else its elements: the row of piece i, and a
// loop over the piece's part of the row. INDEX: the type that counts elements.
#ifndef OCLTENSOR_ROW_PIECES_H
#define OCLTENSOR_ROW_PIECES_H
#include "range.h"
#if CPU_STYLE
#define ROW_OF(i, columns) ((INDEX)(i))
#define FOR_COLUMNS(x, i, columns) for (int x = 0; x < (columns); ++x)
#else
#define ROW_OF(i, columns) ((INDEX)(i) / (INDEX)(columns))
#define FOR_COLUMNS(x, i, columns) const int x = (INDEX)(i) % (INDEX)(columns);
#endif
#endif
