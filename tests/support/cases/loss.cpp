// Cases of the loss family.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool is_ctc(const Operator& op) { return op.schema.name.starts_with("_ctc"); }

bool accepts(const Operator& op, DType dtype) {
  return is_ctc(op) ? dtype == DType::Float32 || dtype == DType::Float64 : is_floating(dtype);
}

Dims shape(Draw& draw, int64_t low, int64_t high) {
  Dims sizes = draw.shape(low, high);
  for (int64_t& s : sizes) s = std::max<int64_t>(s, 1);
  return sizes;
}

Dims result_shape(const Dims& sizes, int64_t reduction) { return reduction == 0 ? sizes : Dims{}; }

void classes(Case& c, Draw& draw, bool backward) {
  auto& rng = draw.rng;
  const bool images = c.op->schema.name.find("2d") != std::string::npos;
  const Dims self = images ? shape(draw, 4, 4) : shape(draw, 1, 2);
  const size_t at = self.size() == 1 ? 0 : 1;
  Dims target = self;
  target.erase(at);
  const int64_t count = self[at];
  const int64_t reduction = rng.range(0, 2);
  const int64_t ignore = rng.chance(0.5) ? -100 : rng.range(0, count - 1);
  HostTensor labels(DType::Int64, target);
  for (int64_t i = 0, n = labels.numel(); i < n; ++i)
    labels.set_integer(i, rng.chance(0.15) ? ignore : rng.range(0, count - 1));
  c.set("self", draw.tensor(c.dtype, self, {-6, 0}));
  c.set("target", draw.place(std::move(labels)));
  if (rng.chance(0.5)) c.set("weight", draw.tensor(c.dtype, {count}, {0.25, 2}));
  c.set("reduction", Scalar(reduction));
  c.set("ignore_index", Scalar(ignore));
  if (backward) {
    c.set("grad_output", draw.tensor(c.dtype, result_shape(target, reduction)));
    c.set("total_weight", draw.tensor(c.dtype, {}, {1, 4}));
  }
}

void pointwise(Case& c, Draw& draw, bool backward) {
  auto& rng = draw.rng;
  const bool entropy = c.op->schema.name.starts_with("binary");
  const Dims sizes = shape(draw, 0, 5);
  const int64_t reduction = rng.range(0, 2);
  c.set("self", draw.tensor(c.dtype, sizes, entropy ? Domain{0.05, 0.95} : Domain{}));
  c.set("target", draw.tensor(c.dtype, sizes, entropy ? Domain{0, 1} : Domain{}));
  c.set("reduction", Scalar(reduction));
  if (entropy && rng.chance(0.4)) c.set("weight", draw.tensor(c.dtype, sizes, {0.25, 2}));
  constexpr double kBorders[] = {1.0, 0.5, 2.0};
  if (c.op->schema.input("beta") >= 0) c.set("beta", Scalar(rng.pick(kBorders)));
  if (c.op->schema.input("delta") >= 0) c.set("delta", Scalar(rng.pick(kBorders)));
  if (backward) c.set("grad_output", draw.tensor(c.dtype, result_shape(sizes, reduction)));
}

// All samples are as long as the longest: PyTorch leaves what is behind others' ends unwritten.
// Gradients hold for any alphas.
void ctc(Case& c, Draw& draw, bool backward) {
  auto& rng = draw.rng;
  const int64_t time = rng.range(1, 12), samples = rng.range(1, 4);
  const int64_t classes = rng.range(2, 9), length = rng.range(0, 5);
  const auto count = static_cast<size_t>(samples);
  const bool rows = rng.chance(0.5);
  const DType type = rng.chance(0.3) ? DType::Int32 : DType::Int64;
  c.set("log_probs", draw.tensor(c.dtype, {time, samples, classes}, {-4, 0}));
  const bool low = rng.chance(0.5);  // labels are never blank
  c.set("targets", draw.indices(rows ? Dims{samples, length} : Dims{samples * length}, low ? 1 : 0,
                                low ? classes - 1 : classes - 2, type));
  c.set("input_lengths", std::vector<int64_t>(count, time));
  c.set("target_lengths", std::vector<int64_t>(count, length));
  c.set("blank", Scalar(low ? int64_t{0} : classes - 1));
  if (backward) {
    c.set("grad", draw.tensor(c.dtype, {samples}));
    c.set("neg_log_likelihood", draw.tensor(c.dtype, {samples}, {0, 4}));
    c.set("log_alpha", draw.tensor(c.dtype, {samples, time, 2 * length + 1}, {-4, 0}));
    c.set("zero_infinity", Scalar(rng.chance(0.5)));
  }
  c.tolerance = {{Scale::Largest, 16, 4.0 * static_cast<double>(time), 1, nullptr,
                  "a chain of sums of three exponentials, one for each time"}};
}

// A list of classes in each row, some of which end at -1.
void multilabel(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const Dims sizes = shape(draw, 0, 2);
  const int64_t classes = sizes.empty() ? 1 : sizes.back();
  HostTensor listed(DType::Int64, sizes);
  for (int64_t i = 0; i < listed.numel(); ++i)
    listed.set_integer(i, rng.chance(0.2) ? -1 : rng.range(0, classes - 1));
  c.set("self", draw.tensor(c.dtype, sizes));
  c.set("target", draw.place(std::move(listed)));
  c.set("reduction", Scalar(rng.range(0, 2)));
  const auto terms = static_cast<double>(classes * classes);
  c.tolerance = {{Scale::Largest, 16, terms, 1, nullptr, "a sum of differences"}, exact()};
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  if (op.schema.name.starts_with("multilabel")) {
    multilabel(c, draw);
    return c;
  }
  const bool backward = op.schema.name.ends_with("backward");
  if (is_ctc(op)) {
    ctc(c, draw, backward);
    return c;
  }
  if (op.schema.name.starts_with("nll"))
    classes(c, draw, backward);
  else
    pointwise(c, draw, backward);
  const double n = static_cast<double>(numel(c.tensor(backward ? 1 : 0).value.sizes));
  c.tolerance = {{Scale::Largest, 16, n, 1, nullptr,
                  "a sum of n terms, each a short formula; a mean divides all by the same number"}};
  return c;
}

}  // namespace

const FamilyCases& loss_cases() {
  static constexpr FamilyCases kCases = {"loss", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
