// Inference for products of sparse matrices.
#include "common.h"

namespace ocltensor::infer {

Specs csr_mm(const Args& args) {
  const auto values = args.tensor(Arg::self), start = args.tensor(Arg::start);
  const auto index = args.tensor(Arg::index), mat = args.tensor(Arg::mat2);
  const std::string& name = args.schema().full_name();
  check_same_type(args, values, mat);
  check_index_type(args, index);
  check_same_type(args, start, index);
  check(start.ndim() == 1 && start.size(0) > 0,
        "{}: start must have one element more than the matrix has rows, got shape {}", name,
        to_string(start.sizes()));
  check(values.ndim() == 1 && same(values.sizes(), index.sizes()),
        "{}: expected a column for each entry, got entries of shape {} and an index of shape {}",
        name, to_string(values.sizes()), to_string(index.sizes()));
  check(mat.ndim() == 2, "{}: mat2 must be a matrix, got shape {}", name, to_string(mat.sizes()));
  const std::string_view reduce = args.string(Arg::reduce);
  check(reduce == "sum" || reduce == "mean" || reduce == "amax" || reduce == "amin",
        "{}: reduce argument must be either sum, mean, amax or amin, got {}", name, reduce);
  if (reduce != "sum") check_floating(args, values);
  return {spec(values.dtype(), Dims{start.size(0) - 1, mat.size(1)})};
}

}  // namespace ocltensor::infer
