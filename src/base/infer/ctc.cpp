// Inference for connectionist temporal classification.
#include <algorithm>

#include "common.h"

namespace ocltensor::infer {
namespace {

// Checks the arguments; log_probs is [time, sample, class]. Returns the number of places of the
// longest target: its labels with blanks between and around them.
int64_t check_ctc(const Args& args) {
  const auto probs = args.tensor(Arg::log_probs), targets = args.tensor(Arg::targets);
  const auto inputs = args.ints(Arg::input_lengths), lengths = args.ints(Arg::target_lengths);
  const int64_t blank = args.integer(Arg::blank);
  check(probs.dtype() == DType::Float32 || probs.dtype() == DType::Float64,
        "ctc_loss: log_probs must be float32 or float64, got {}", name(probs.dtype()));
  check_index_type(args, targets);
  check(probs.ndim() == 3 && targets.ndim() >= 1 && targets.ndim() <= 2,
        "ctc_loss: log_probs must have 3 dimensions and targets 1 or 2, got {} and {}",
        to_string(probs.sizes()), to_string(targets.sizes()));
  const int64_t samples = probs.size(1);
  check(blank >= 0 && blank < probs.size(2), "blank must be in label range");
  check(static_cast<int64_t>(inputs.size()) == samples, "input_lengths must be of size batch_size");
  check(static_cast<int64_t>(lengths.size()) == samples,
        "target_lengths must be of size batch_size");
  check(targets.ndim() == 1 || targets.size(0) == samples,
        "ctc_loss: targets must have a row for each of the {} samples, got {}", samples,
        to_string(targets.sizes()));
  int64_t all = 0, longest = 0;
  for (size_t n = 0; n < inputs.size(); ++n) {
    check(inputs[n] >= 0 && inputs[n] <= probs.size(0),
          "Expected input_lengths to have value at most {}, but got value {} (while checking "
          "arguments for ctc_loss)",
          probs.size(0), inputs[n]);
    check(lengths[n] >= 0,
          "Expected target_lengths to have value at least 0, but got value {} (while checking "
          "arguments for ctc_loss)",
          lengths[n]);
    check(targets.ndim() == 1 || lengths[n] <= targets.size(1),
          "Expected tensor to have size at least {} at dimension 1, but got {} (while checking "
          "arguments for ctc_loss)",
          lengths[n], to_string(targets.sizes()));
    all += lengths[n];
    longest = std::max(longest, lengths[n]);
  }
  check(targets.ndim() == 2 || all == targets.size(0),
        "Expected tensor to have size {} at dimension 0, but got size {} (while checking "
        "arguments for ctc_loss)",
        all, targets.size(0));
  return 2 * longest + 1;
}

}  // namespace

Specs ctc_loss(const Args& args) {
  const int64_t places = check_ctc(args);
  const auto probs = args.tensor(Arg::log_probs);
  return {spec(probs.dtype(), Dims{probs.size(1)}),
          spec(probs.dtype(), Dims{probs.size(1), probs.size(0), places})};
}

Specs ctc_loss_backward(const Args& args) {
  const int64_t places = check_ctc(args);
  const auto probs = args.tensor(Arg::log_probs), alphas = args.tensor(Arg::log_alpha);
  for (const Arg a : {Arg::grad, Arg::neg_log_likelihood, Arg::log_alpha})
    check_same_type(args, args.tensor(a), probs);
  for (const Arg a : {Arg::grad, Arg::neg_log_likelihood})
    check(args.tensor(a).numel() == probs.size(1),
          "{}: gradient and loss must have one number for each of {} samples, got shape {}",
          args.schema().full_name(), probs.size(1), to_string(args.tensor(a).sizes()));
  const Dims expected{probs.size(1), probs.size(0), places};
  check(Dims(alphas.sizes()) == expected, "{}: log_alpha must have shape {}, got {}",
        args.schema().full_name(), to_string(expected), to_string(alphas.sizes()));
  return {spec(probs.dtype(), probs.sizes())};
}

}  // namespace ocltensor::infer
