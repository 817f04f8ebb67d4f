// Margin losses of one and of several classes, and their gradients.
#include <ATen/core/Reduction.h>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;

// One sample or a batch as a batch.
Tensor batch(const Tensor& x) { return x.dim() < 2 ? x.reshape({1, -1}) : x; }

Tensor reduced(const Tensor& losses, int64_t reduction, bool one_sample) {
  if (reduction == at::Reduction::Mean) return losses.mean();
  if (reduction == at::Reduction::Sum) return losses.sum();
  return one_sample ? losses.reshape({}) : losses;
}
// The factor of each sample's gradient, as a column.
Tensor outer(const Tensor& grad, int64_t reduction, int64_t samples) {
  if (reduction == at::Reduction::None) return grad.reshape({-1, 1});
  return reduction == at::Reduction::Mean ? grad / samples : grad;
}

// ---- multi_margin_loss: one class against all others
struct OneClass {
  Tensor excess;  // max(0, margin - x[class] + x[other]), 0 for the class itself
  Tensor target;  // as a column
  Tensor factor;  // weight / classes, a column or one number
};

OneClass one_class(const Tensor& self, const Tensor& target, const at::Scalar& p,
                   const at::Scalar& margin, const std::optional<Tensor>& weight) {
  TORCH_CHECK(p.equal(1) || p.equal(2), "multi_margin_loss: only p == 1 and p == 2 supported");
  const Tensor x = batch(self);
  TORCH_CHECK(self.dim() <= 2 && x.size(1) > 0,
              "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
              self.sizes());
  TORCH_CHECK(target.dim() <= 1 && target.numel() == x.size(0),
              "inconsistent target size, expected ", x.size(0), " but got ", target.sizes());
  const Tensor place = target.reshape({-1, 1});
  const Tensor excess = (x - x.gather(1, place)).add_(margin).clamp_min_(0).scatter_(1, place, 0);
  Tensor factor = at::full({}, 1.0 / static_cast<double>(x.size(1)), x.options());
  if (weight.has_value() && weight->defined())
    factor = weight->index_select(0, place.reshape({-1})).unsqueeze(1) * factor;
  return {excess, place, factor};
}

Tensor multi_margin(const Tensor& self, const Tensor& target, const at::Scalar& p,
                    const at::Scalar& margin, const std::optional<Tensor>& weight,
                    int64_t reduction) {
  const OneClass c = one_class(self, target, p, margin, weight);
  const Tensor losses = c.excess.pow(p).mul_(c.factor).sum(1);
  return reduced(losses, reduction, target.dim() == 0);
}

Tensor multi_margin_back(const Tensor& grad, const Tensor& self, const Tensor& target,
                         const at::Scalar& p, const at::Scalar& margin,
                         const std::optional<Tensor>& weight, int64_t reduction) {
  const OneClass c = one_class(self, target, p, margin, weight);
  const Tensor slope = p.equal(1) ? c.excess.gt(0).to(self.scalar_type()) : c.excess * 2;
  const Tensor each = slope * c.factor * outer(grad, reduction, slope.size(0));
  return each.scatter(1, c.target, each.sum(1, true).neg_()).reshape(self.sizes());
}

// ---- multilabel_margin_loss: several classes, listed up to the first negative number
struct ManyClasses {
  Tensor place, listed, is_target;  // listed: which entries of `place` count
  Tensor excess;                    // [sample, entry, class]
};

ManyClasses many_classes(const Tensor& self, const Tensor& target) {
  TORCH_CHECK(self.dim() <= 2 && self.sizes() == target.sizes(),
              "multilabel_margin_loss: inconsistent target size ", target.sizes(),
              " for input of size ", self.sizes());
  const Tensor x = batch(self);
  const int64_t classes = x.size(1);
  const Tensor given = batch(target);
  ManyClasses c;
  c.listed = given.ge(0).to(at::kInt).cumprod(1).to(at::kBool);
  c.place = given.masked_fill(c.listed.logical_not(), 0);
  c.is_target = at::zeros({x.size(0), classes + 1}, x.options())
                    .scatter_(1, given.masked_fill(c.listed.logical_not(), classes), 1)
                    .narrow(1, 0, classes);
  const Tensor counts = c.listed.unsqueeze(2).logical_and(c.is_target.eq(0).unsqueeze(1));
  c.excess = (x.unsqueeze(1) - x.gather(1, c.place).unsqueeze(2))
                 .add_(1)
                 .clamp_min_(0)
                 .masked_fill_(counts.logical_not(), 0);
  return c;
}

Tensor multilabel_back(const Tensor& grad, const Tensor& self, const Tensor& target,
                       int64_t reduction, const Tensor&) {
  if (self.numel() == 0) return at::zeros_like(self);
  const ManyClasses c = many_classes(self, target);
  const Tensor each = c.excess.gt(0).to(self.scalar_type());
  const Tensor result = each.sum(1).scatter_add(1, c.place, each.sum(2).neg_());
  return (result.div_(c.excess.size(2)) * outer(grad, reduction, each.size(0)))
      .reshape(self.sizes());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("multi_margin_loss", TORCH_FN(multi_margin));
  register_out<multi_margin>(m, "multi_margin_loss.out");
  m.impl("multi_margin_loss_backward", TORCH_FN(multi_margin_back));
  register_out<multi_margin_back>(m, "multi_margin_loss_backward.grad_input");
  m.impl("multilabel_margin_loss_backward", TORCH_FN(multilabel_back));
  register_out<multilabel_back>(m, "multilabel_margin_loss_backward.grad_input");
}

}  // namespace torch_ocl
