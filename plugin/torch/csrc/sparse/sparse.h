// What the files of sparse tensors share: positions of entries as single numbers, groups of equal
// ones, compressed rows, and the product that has a kernel.
#pragma once

#include <ATen/ATen.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/native/Resize.h>
#include <ATen/native/SparseTensorUtils.h>
#include <torch/library.h>

namespace torch_ocl::sparse {

using at::Tensor;

// ---- positions

// The entries' positions in row-major order of the dimensions `sizes`, of which `indices` has a row
// for each: int64 [entries].
Tensor flatten(const Tensor& indices, at::IntArrayRef sizes);
// The same of a COO tensor's own entries.
Tensor positions_of(const Tensor& coo);
// The product of a COO tensor's sparse sizes.
int64_t sparse_numel(const Tensor& coo);
// For each of `wanted` the index of an equal element of `sorted`, and whether there is one.
struct Found {
  Tensor at, exists;
};
Found find_sorted(const Tensor& sorted, const Tensor& wanted);

// Equal keys, gathered: `order` sorts them stably; the elements of a group begin at `starts`.
struct Groups {
  Tensor order;
  Tensor starts;  // [groups]
  int64_t count;
};
// Waits for the device.
Groups group_equal(const Tensor& keys);
// For each element its group's number.
Tensor numbers_of(const Groups& groups);
// The sums of rows of `values` [elements, ...] that belong to a group: [groups, ...].
Tensor sum_groups(const Groups& groups, const Tensor& values);

// ---- compressed rows

// The row of each entry; the first entry of each of `rows` rows, from sorted rows. Of the index's
// type, for one matrix.
Tensor rows_from_start(const Tensor& start, int64_t entries);
Tensor start_from_rows(const Tensor& rows, int64_t count);
// The entries of all given rows of a matrix in compressed rows: for each the place in `rows` that
// asked for it, and its number. Waits for the device.
struct Expanded {
  Tensor asked, entry;
};
Expanded expand_rows(const Tensor& start, const Tensor& rows);

// One matrix in compressed rows.
struct Rows {
  Tensor start, columns, values;
};
// Of a 2-d sparse tensor of any layout; entries of a row may repeat.
Rows rows_of(const Tensor& matrix);
Rows transposed(const Rows& rows, int64_t columns);
// rows x mat by the plugin's kernel; reduce: "sum", "mean", "amax", "amin".
Tensor multiply(const Rows& rows, const Tensor& mat, c10::string_view reduce = "sum");

// ---- new tensors

// Without checks.
Tensor make_coo(const Tensor& indices, const Tensor& values, at::IntArrayRef sizes, bool coalesced);
Tensor make_csr(const Tensor& start, const Tensor& columns, const Tensor& values,
                at::IntArrayRef sizes);
// Makes `out`, a COO tensor, be `result`, converted to its type.
Tensor& deliver_coo(Tensor& out, const Tensor& result);

// ATen's words for an argument on another device.
void check_device(const char* name, const Tensor& expected, const Tensor& other);
// ATen's words for matrices that do not fit each other.
void check_inner_sizes(const char* name, const Tensor& mat1, const Tensor& mat2);
// Whether beta makes the added tensor irrelevant: then it may even hold NaN.
bool is_zero(const at::Scalar& factor);
// beta * self + alpha * product, with the product's memory.
Tensor blend(const Tensor& self, Tensor product, const at::Scalar& beta, const at::Scalar& alpha);

}  // namespace torch_ocl::sparse
