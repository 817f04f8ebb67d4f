// The order in which work-groups of attention take tiles of rows.
#ifndef OCLTENSOR_ATTENTION_ORDER_H
#define OCLTENSOR_ATTENTION_ORDER_H
typedef struct {
  int batch, head, first;  // the first row
} Tile;

// Tile `index`. Heads are taken in bundles; in each, the tiles of the first rows come first, or of the last.
INLINE Tile tile_at(int index, int bundle, int row_tiles, int heads, int all_heads, bool last_first,
                    int rows) {
  const int span = bundle * row_tiles, start = index / span * bundle, in_bundle = index % span;
  const int here = min(bundle, all_heads - start), head = start + in_bundle % here, down = in_bundle / here;
  Tile t;
  t.batch = head / heads;
  t.head = head % heads;
  t.first = (last_first ? row_tiles - 1 - down : down) * rows;
  return t;
}
#endif
