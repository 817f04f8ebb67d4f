// Inference for distances between the rows of one matrix.
#include "common.h"

namespace ocltensor::infer {
namespace {

// Checks the matrix and p; returns the number of pairs of rows.
int64_t check_rows(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_floating(args, self);
  check(self.ndim() == 2, "{}: expected a matrix, got shape {}", args.schema().full_name(),
        to_string(self.sizes()));
  check(args.real(Arg::p) >= 0, "pdist only supports non-negative p values");
  return self.size(0) * (self.size(0) - 1) / 2;
}

}  // namespace

Specs pdist_forward(const Args& args) {
  const int64_t pairs = check_rows(args);
  return {spec(args.tensor(Arg::self).dtype(), Dims{pairs})};
}

Specs pdist_backward(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const int64_t pairs = check_rows(args);
  for (const Arg a : {Arg::grad, Arg::pdist}) {
    check_same_type(args, args.tensor(a), self);
    check(Dims(args.tensor(a).sizes()) == Dims{pairs},
          "{}: expected a number for each of {} pairs, got shape {}", args.schema().full_name(),
          pairs, to_string(args.tensor(a).sizes()));
  }
  return {spec(self.dtype(), self.sizes())};
}

}  // namespace ocltensor::infer
