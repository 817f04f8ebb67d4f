// Inference for distances between the rows of one matrix.
#include "common.h"

namespace ocltensor::infer {
namespace {

// Pairs of rows.
int64_t check_rows(const Args& args, size_t self_at, double p) {
  const auto self = args.tensor(self_at);
  check_floating(args, self);
  check(self.ndim() == 2, "{}: expected a matrix, got shape {}", args.schema().full_name(),
        to_string(self.sizes()));
  check(p >= 0, "pdist only supports non-negative p values");
  return self.size(0) * (self.size(0) - 1) / 2;
}

}  // namespace

Specs pdist_forward(const Args& args) {
  const int64_t pairs = check_rows(args, 0, args.real(Arg::p));
  return {spec(args.tensor(Arg::self).dtype(), Dims{pairs})};
}

Specs pdist_backward(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const int64_t pairs = check_rows(args, 1, args.real(Arg::p));
  for (const size_t i : {0, 3}) {
    check_same_type(args, args.tensor(i), self);
    check(Dims(args.tensor(i).sizes()) == Dims{pairs},
          "{}: expected a number for each of {} pairs, got shape {}", args.schema().full_name(),
          pairs, to_string(args.tensor(i).sizes()));
  }
  return {spec(self.dtype(), self.sizes())};
}

}  // namespace ocltensor::infer
