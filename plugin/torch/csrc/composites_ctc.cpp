// Connectionist temporal classification (Graves et al., 2006): the forward and backward variables
// step by step over time, for all samples and positions at once, in logarithms.
#include <limits>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::IntArrayRef;
using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;
using Numbers = std::vector<int64_t>;

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Labels with blanks between and around: a row of 2 * (longest target) + 1 places per sample.
// Places behind a sample's own target are reached, but lead nowhere back.
struct Labels {
  Tensor classes;  // [sample, place]
  Tensor skips;    // may the blank before this place be left out?
  int64_t places;
};

Labels make_labels(const Tensor& probs, const Tensor& targets, IntArrayRef lengths, int64_t blank) {
  const int64_t samples = probs.size(1),
                longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  Labels l;
  l.places = 2 * longest + 1;
  const auto numbers = targets.options().dtype(at::kLong);
  l.classes = at::full({samples, l.places}, blank, numbers);
  if (longest > 0) {
    Numbers from;  // places behind the target repeat its start
    int64_t start = 0;
    for (int64_t n = 0; n < samples; ++n) {
      const int64_t length = lengths[static_cast<size_t>(n)];
      const int64_t base = targets.dim() == 1 ? start : n * targets.size(1);
      for (int64_t s = 0; s < longest; ++s)
        from.push_back(std::min(base + (s < length ? s : 0), targets.numel() - 1));
      start += length;
    }
    const Tensor given = targets.reshape({-1}).to(at::kLong).index_select(0, upload(from, targets));
    l.classes.slice(1, 1, std::nullopt, 2).copy_(given.view({samples, longest}));
  }
  l.skips = at::zeros(l.classes.sizes(), numbers.dtype(at::kBool));
  if (l.places > 2)
    l.skips.narrow(1, 2, l.places - 2)
        .copy_(l.classes.narrow(1, 2, l.places - 2)
                   .ne(l.classes.narrow(1, 0, l.places - 2))
                   .logical_and_(l.classes.narrow(1, 2, l.places - 2).ne(blank)));
  return l;
}

// Rows moved by `by` places to the right (negative: left); nothing comes in.
Tensor moved(const Tensor& x, int64_t by) {
  const int64_t n = x.size(1), gap = std::min(n, std::abs(by));
  const Tensor nothing = at::full({x.size(0), gap}, kNever, x.options());
  return by > 0 ? at::cat({nothing, x.narrow(1, 0, n - gap)}, 1)
                : at::cat({x.narrow(1, gap, n - gap), nothing}, 1);
}

// Log probabilities of the labels: [time, sample, place].
Tensor of_labels(const Tensor& probs, const Labels& l) {
  return probs.gather(2, l.classes.unsqueeze(0).expand({probs.size(0), -1, -1}));
}

void check(const Tensor& probs, const Tensor& targets, IntArrayRef inputs, IntArrayRef lengths,
           int64_t blank) {
  const auto samples = static_cast<size_t>(probs.size(1));
  TORCH_CHECK(probs.dim() == 3 && targets.dim() >= 1 && targets.dim() <= 2,
              "ctc_loss: log_probs must have 3 dimensions and targets 1 or 2, got ", probs.sizes(),
              " and ", targets.sizes());
  TORCH_CHECK(blank >= 0 && blank < probs.size(2), "blank must be in label range");
  TORCH_CHECK(inputs.size() == samples, "input_lengths must be of size batch_size");
  TORCH_CHECK(lengths.size() == samples, "target_lengths must be of size batch_size");
  int64_t all = 0;
  for (size_t n = 0; n < samples; ++n) {
    TORCH_CHECK(inputs[n] >= 0 && inputs[n] <= probs.size(0),
                "Expected input_lengths to have value at most ", probs.size(0), ", but got value ",
                inputs[n], " (while checking arguments for ctc_loss)");
    TORCH_CHECK(lengths[n] >= 0, "Expected target_lengths to have value at least 0, but got value ",
                lengths[n], " (while checking arguments for ctc_loss)");
    all += lengths[n];
    TORCH_CHECK(targets.dim() == 1 || lengths[n] <= targets.size(1),
                "Expected tensor to have size at least ", lengths[n], " at dimension 1, but got ",
                targets.sizes());
  }
  TORCH_CHECK(targets.dim() == 2 || all == targets.size(0), "Expected tensor to have size ", all,
              " at dimension 0, but got size ", targets.size(0),
              " (while checking arguments for ctc_loss)");
}

Two ctc_loss(const Tensor& probs, const Tensor& targets, IntArrayRef inputs, IntArrayRef lengths,
             int64_t blank, bool) {
  check(probs, targets, inputs, lengths, blank);
  const int64_t time = probs.size(0), samples = probs.size(1);
  const Labels l = make_labels(probs, targets, lengths, blank);
  const Tensor emitted = of_labels(probs, l);
  Tensor alphas = at::full({samples, time, l.places}, kNever, probs.options());
  Tensor alpha;
  for (int64_t t = 0; t < time; ++t) {
    if (t == 0) {
      alpha = at::full({samples, l.places}, kNever, probs.options());
      const int64_t starts = std::min<int64_t>(2, l.places);
      alpha.narrow(1, 0, starts).copy_(emitted[0].narrow(1, 0, starts));
    } else {
      const Tensor skipping = moved(alpha, 2).masked_fill_(l.skips.logical_not(), kNever);
      alpha = at::logaddexp(at::logaddexp(alpha, moved(alpha, 1)), skipping).add_(emitted[t]);
    }
    alphas.select(1, t).copy_(alpha);
  }
  // The last label or the blank behind it, at the sample's last time.
  Numbers last, before;
  for (size_t n = 0; n < inputs.size(); ++n) {
    const int64_t row =
        (static_cast<int64_t>(n) * time + std::max<int64_t>(0, inputs[n] - 1)) * l.places;
    last.push_back(row + 2 * lengths[n]);
    before.push_back(row + std::max<int64_t>(0, 2 * lengths[n] - 1));
  }
  const Tensor flat = alphas.reshape({-1});
  Tensor ends = at::full({samples}, kNever, probs.options());
  if (time > 0 && samples > 0)
    ends = at::logaddexp(flat.index_select(0, upload(last, probs)),
                         flat.index_select(0, upload(before, probs))
                             .masked_fill_(upload(Numbers(lengths.vec()), probs).eq(0), kNever));
  Numbers empty;  // no time at all: certain for an empty target, impossible for others
  for (size_t n = 0; n < inputs.size(); ++n)
    empty.push_back(inputs[n] > 0 ? 0 : lengths[n] == 0 ? 1 : 2);
  const Tensor kind = upload(empty, probs);
  return {ends.neg().masked_fill_(kind.eq(1), 0).masked_fill_(kind.eq(2), -kNever), alphas};
}

// The backward variables, [sample, time, place].
Tensor betas_of(const Tensor& emitted, const Labels& l, IntArrayRef inputs, IntArrayRef lengths) {
  const int64_t time = emitted.size(0), samples = emitted.size(1);
  const Tensor ends = upload(Numbers(inputs.vec()), emitted).sub_(1).unsqueeze(1);
  const Tensor lasts = upload(Numbers(lengths.vec()), emitted).mul_(2).unsqueeze(1);
  const Tensor places = at::arange(l.places, l.classes.options());
  const Tensor is_end = places.eq(lasts).logical_or_(places.eq(lasts.sub(1)));
  // Whether the blank behind this place may be left out.
  const Tensor skips = at::zeros_like(l.skips);
  if (l.places > 2) skips.narrow(1, 0, l.places - 2).copy_(l.skips.narrow(1, 2, l.places - 2));
  Tensor betas = at::full({samples, time, l.places}, kNever, emitted.options());
  Tensor beta = at::full({samples, l.places}, kNever, emitted.options());
  for (int64_t t = time - 1; t >= 0; --t) {
    const Tensor skipping = moved(beta, -2).masked_fill_(skips.logical_not(), kNever);
    const Tensor onward =
        at::logaddexp(at::logaddexp(beta, moved(beta, -1)), skipping).add_(emitted[t]);
    const Tensor first = emitted[t].masked_fill(is_end.logical_not(), kNever);
    beta = at::where(ends.eq(t), first, onward);
    betas.select(1, t).copy_(beta);
  }
  return betas;
}

Tensor ctc_loss_backward(const Tensor& grad, const Tensor& probs, const Tensor& targets,
                         IntArrayRef inputs, IntArrayRef lengths, const Tensor& loss,
                         const Tensor& alphas, int64_t blank, bool zero_infinity) {
  const int64_t time = probs.size(0);
  const Labels l = make_labels(probs, targets, lengths, blank);
  if (probs.numel() == 0) return at::zeros_like(probs);
  const Tensor both = (alphas + betas_of(of_labels(probs, l), l, inputs, lengths)).transpose(0, 1);
  // log of the sum over the places of each class, relative to the largest
  const Tensor largest = both.amax(2, true).nan_to_num_(std::nullopt, std::nullopt, 0);
  const Tensor of_classes =
      at::zeros(probs.sizes(), probs.options())
          .scatter_add_(2, l.classes.unsqueeze(0).expand({time, -1, -1}), (both - largest).exp_())
          .log_()
          .add_(largest);
  const Tensor result = probs.exp() - (of_classes + loss.unsqueeze(1) - probs).exp_();
  const Tensor ends = upload(Numbers(inputs.vec()), probs);
  const Tensor after = at::arange(time, ends.options()).unsqueeze(1).ge(ends);
  Tensor dead = after;
  if (zero_infinity) dead = dead.logical_or(loss.eq(-kNever));
  return (result * grad.unsqueeze(1)).masked_fill_(dead.unsqueeze(2), 0);
}

Numbers numbers_of(const Tensor& lengths) {
  const Tensor host = lengths.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}
Two ctc_loss_tensor(const Tensor& probs, const Tensor& targets, const Tensor& inputs,
                    const Tensor& lengths, int64_t blank, bool zero_infinity) {
  return ctc_loss(probs, targets, numbers_of(inputs), numbers_of(lengths), blank, zero_infinity);
}
Tensor ctc_loss_tensor_backward(const Tensor& grad, const Tensor& probs, const Tensor& targets,
                                const Tensor& inputs, const Tensor& lengths, const Tensor& loss,
                                const Tensor& alphas, int64_t blank, bool zero_infinity) {
  return ctc_loss_backward(grad, probs, targets, numbers_of(inputs), numbers_of(lengths), loss,
                           alphas, blank, zero_infinity);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_ctc_loss", TORCH_FN(ctc_loss));
  m.impl("_ctc_loss.Tensor", TORCH_FN(ctc_loss_tensor));
  m.impl("_ctc_loss_backward", TORCH_FN(ctc_loss_backward));
  m.impl("_ctc_loss_backward.Tensor", TORCH_FN(ctc_loss_tensor_backward));
}

}  // namespace torch_ocl
