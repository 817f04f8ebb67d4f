// The indices of compressed tensors: conversion from and to coordinates, and their validation.
#include "sparse.h"

namespace torch_ocl::sparse {
namespace {

int64_t product_of(at::IntArrayRef sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

Tensor& coo_to_csr_out(const Tensor& self, int64_t size, bool out_int32, Tensor& out) {
  const Tensor start = start_from_rows(self, size).to(out_int32 ? at::kInt : at::kLong);
  at::native::resize_output(out, start.sizes());
  return out.copy_(start);
}

// Of a batch: the coordinates of all matrices one after another, those of the batch first.
Tensor coordinates_of(const Tensor& start, const Tensor& plain, bool transpose) {
  const auto batch = start.sizes().slice(0, static_cast<size_t>(start.dim() - 1));
  const int64_t matrices = product_of(batch), entries = plain.size(-1);
  const Tensor starts = start.reshape({matrices, start.size(-1)});
  const Tensor places = at::arange(entries, start.options()).expand({matrices, entries});
  const Tensor rows =
      at::searchsorted(starts, places.contiguous(), start.scalar_type() == at::kInt, true).sub_(1);
  std::vector<Tensor> coordinates;
  Tensor rest = at::arange(matrices, start.options());
  for (size_t d = batch.size(); d-- > 0;) {
    const Tensor at = rest.remainder(batch[d]).unsqueeze(1).expand({matrices, entries});
    coordinates.insert(coordinates.begin(), at.reshape({-1}));
    rest = rest.floor_divide(batch[d]);
  }
  const Tensor flat = plain.reshape({-1});
  coordinates.push_back(transpose ? flat : rows.reshape({-1}));
  coordinates.push_back(transpose ? rows.reshape({-1}) : flat);
  return at::stack(coordinates);
}

Tensor& csr_to_coo_out(const Tensor& start, const Tensor& plain, bool out_int32, bool transpose,
                       Tensor& out) {
  const Tensor indices =
      coordinates_of(start, plain, transpose).to(out_int32 ? at::kInt : at::kLong);
  at::native::resize_output(out, indices.sizes());
  return out.copy_(indices);
}

// ---- validation: all invariants are computed, and read by the host at once

struct Invariants {
  std::vector<Tensor> hold;
  std::vector<std::string> texts;
  void add(const Tensor& all, std::string text) {
    hold.push_back(all.all());
    texts.push_back(std::move(text));
  }
  void check() const {
    const Tensor held = at::stack(hold).to(at::kCPU);
    for (size_t i = 0; i < texts.size(); ++i)
      TORCH_CHECK(held[static_cast<int64_t>(i)].item<bool>(), "`", texts[i], "` is not satisfied.");
  }
};

void validate(bool is_crow, const Tensor& compressed, const Tensor& plain, int64_t cdim,
              int64_t dim, int64_t entries) {
  const std::string starts = is_crow ? "crow_indices" : "ccol_indices";
  const std::string indices = is_crow ? "col_indices" : "row_indices";
  const std::string limit = is_crow ? "ncols" : "nrows", count = is_crow ? "nrows" : "ncols";
  (void)cdim;
  const int64_t matrices = product_of(
                    compressed.sizes().slice(0, static_cast<size_t>(compressed.dim() - 1))),
                length = compressed.size(-1);
  if (matrices == 0) return;
  const Tensor start = compressed.reshape({matrices, length});
  const Tensor index = plain.reshape({matrices, plain.size(-1)});
  Invariants invariants;
  invariants.add(index.ge(0).logical_and_(index.lt(dim)), "0 <= " + indices + " < " + limit);
  invariants.add(start.select(1, 0).eq(0), starts + "[..., 0] == 0");
  invariants.add(start.select(1, length - 1).eq(entries), starts + "[..., -1] == nnz");
  const Tensor counts = start.narrow(1, 1, length - 1).sub(start.narrow(1, 0, length - 1));
  invariants.add(counts.ge(0).logical_and_(counts.le(dim)),
                 "0 <= " + starts + "[..., 1:] - " + starts + "[..., :-1] <= " + limit);
  if (index.size(1) > 1) {
    // An index is larger than the one before, or begins a row.
    const int64_t steps = index.size(1) - 1;
    const Tensor begins = at::zeros({matrices, steps + 2}, index.options().dtype(at::kBool))
                              .scatter_(1, start.clamp(0, steps + 1).to(at::kLong), true);
    invariants.add(index.narrow(1, 1, steps)
                       .gt(index.narrow(1, 0, steps))
                       .logical_or_(begins.narrow(1, 1, steps)),
                   indices + "[..., " + starts + "[..., i - 1]:" + starts +
                       "[..., i]] for all i = 1, ..., " + count +
                       " are sorted and distinct along the last dimension values");
  }
  invariants.check();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_convert_indices_from_coo_to_csr.out", TORCH_FN(coo_to_csr_out));
  m.impl("_convert_indices_from_csr_to_coo.out", TORCH_FN(csr_to_coo_out));
  m.impl("_validate_compressed_sparse_indices", TORCH_FN(validate));
}

}  // namespace torch_ocl::sparse
