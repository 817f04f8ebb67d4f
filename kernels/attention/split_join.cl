// Adds up what pieces of keys have left of attention (split_cpu.cl, split_gpu.cl): a work-item takes a column
// of a query, and all pieces in their order. Defines: TYPE of the result; WIDTH.
#include "types.h"
#include "flash_params.h"

__kernel void attention_join(__global void *out_base, ulong out_offset, __global void *sums_base,
                             ulong sums_offset, __global const void *parts_base, ulong parts_offset,
                             const FlashParams p) {
  const long id = get_global_id(0), place = id / WIDTH;
  const int column = (int)(id % WIDTH), pieces = (int)p.piece_step;
  if (place >= p.scores.rows) return;
  __global const float *part = AT_CONST(f32, parts_base, parts_offset) + place * pieces * (WIDTH + 2);
  float top = -INFINITY;
  for (int i = 0; i < pieces; ++i) top = fmax(top, part[i * (WIDTH + 2) + WIDTH]);
  const float shift = top == -INFINITY ? 0.0f : top;
  float total = 0, sum = 0;
  for (int i = 0; i < pieces; ++i) {
    __global const float *of = part + i * (WIDTH + 2);
    const float factor = exp(of[WIDTH] - shift);
    total = fma(of[WIDTH + 1], factor, total);
    sum = fma(of[column], factor, sum);
  }
  const long queries = p.scores.queries, head = place / queries;
  __global STYPE(TYPE) *out = AT(TYPE, out_base, out_offset) + head / p.heads * p.out.batch +
                              head % p.heads * p.out.head + place % queries * p.out.row;
  STORE(TYPE, out, column, TO(TYPE, total == 0 ? 0.0f : sum / total));
  if (p.rows && column == 0)
    AT(f32, sums_base, sums_offset)[place] = total == 0 ? -INFINITY : log(total) + shift;
}
