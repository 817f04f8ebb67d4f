// Products of some rows of x with a quantised weight by mma.sync: the forms of their kernel, and
// the proof of each specialisation.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "kernels/defines.h"
#include "ops/quantised/quantised.h"

namespace ocltensor::opencl::nvidia_mma {

// How a work-group divides a product.
struct RowsForm {
  int64_t w_tiles;  // of 16 rows of the weight that a warp takes
  int64_t items, pieces;
  bool contiguous;  // a piece's units are neighbours, and their scales are loaded several at once
  const char* use;

  int64_t rows() const { return items / 32 / pieces * 16 * w_tiles; }  // of the weight
};
inline constexpr std::array<RowsForm, 6> kRowsForms = {{
    {1, 128, 4, true, "weights of many rows, scales of 128 elements and more"},
    {1, 256, 8, false, "weights of fewer rows, scales of 64"},
    {1, 512, 16, false, "weights of fewer long rows"},
    {1, 128, 4, false, "scales of 32 elements and fewer"},
    {2, 128, 4, false, "more than 8 rows of x, weights of many rows"},
    {2, 256, 8, false, "more than 8 rows of x"},
}};

// How kernels/nvidia_mma/quantised/rows.cl is specialised.
struct QuantisedRows {
  const WeightFormat* format;
  DType type;         // Float16, BFloat16
  size_t form;        // in kRowsForms
  int64_t x_tiles;    // of 8 rows of x: 1, 2, 4
  int64_t spread;     // of four neighbouring units, how many scales they have: 1, 2, 4
  int64_t x_columns;  // of a right matrix that a row of x takes at most: 1; of one tile 2, 4, too
  bool same_scales = false;  // all units of a row have one scale; `spread` is 1
  bool all_units = false;    // there are units for every step of every warp

  const RowsForm& division() const { return kRowsForms[form]; }
  int64_t window() const { return division().contiguous ? 4 / spread : 1; }
  int64_t units_of_step() const { return 4 * division().pieces * window(); }  // of a work-group
  int64_t columns() const { return std::min(x_columns, spread); }
  // Rows of x that one launch takes.
  int64_t rows_of_x() const { return x_tiles * 8 / columns(); }
  size_t index() const;
};
inline constexpr size_t kMostWeightFormats = 32;
inline constexpr size_t kQuantisedRows = kMostWeightFormats * 2 * kRowsForms.size() * 5 * 4 * 2;

// Runs a product that the algorithm takes; public for its proof.
void run_quantised_rows(const OpCall& call, const quantised::Product& p, const QuantisedRows& v);

// rows_proof.cpp: compares a product by the kernel (`what`: const QuantisedRows*) with the host's
// sums of the values that are unpacked; returns what is wrong, or an empty text.
std::string wrong_quantised_rows(const OpCall& call, const void* what);

extern const AlgorithmFor<quantised::Product> kQuantisedRowsProduct;  // rows.cpp

}  // namespace ocltensor::opencl::nvidia_mma
