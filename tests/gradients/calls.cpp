// The calls, and where operators are smooth.
#include "calls.h"

#include <cstring>
#include <map>

namespace ocltensor::testing {
namespace {

// Where an operator is defined and smooth; the others are checked in [-2, 2].
struct Range {
  double low = -2, high = 2;
  double zeros = 0;   // how many elements are 0, of 1
  bool keep = false;  // the kit's own values: matrices that can be factored
};
constexpr Range kKept{0, 0, 0, true};

const std::map<std::string, Range>& ranges() {
  static const auto& table = *new std::map<std::string, Range>{
      {"acosh", {1.2, 3}},
      {"acos", {-0.9, 0.9}},
      {"asin", {-0.9, 0.9}},
      {"atanh", {-0.9, 0.9}},
      {"erfinv", {-0.9, 0.9}},
      {"tan", {-1.2, 1.2}},
      {"log", {0.2, 3}},
      {"log10", {0.2, 3}},
      {"log1p", {-0.7, 3}},
      {"log2", {0.2, 3}},
      {"sqrt", {0.2, 3}},
      {"rsqrt", {0.2, 3}},
      {"digamma", {0.3, 4}},
      {"lgamma", {0.3, 4}},
      {"polygamma", {0.5, 4}},
      {"logit", {0.1, 0.9}},
      {"special_ndtri", {0.1, 0.9}},
      {"special_entr", {0.2, 3}},
      {"special_bessel_y0", {0.5, 4}},
      {"special_bessel_y1", {0.5, 4}},
      {"special_modified_bessel_k0", {0.5, 4}},
      {"special_modified_bessel_k1", {0.5, 4}},
      {"special_scaled_modified_bessel_k0", {0.5, 4}},
      {"special_scaled_modified_bessel_k1", {0.5, 4}},
      {"special_zeta", {1.5, 4}},
      {"pow", {0.3, 2}},
      {"xlogy", {0.3, 3}},
      {"special_xlog1py", {0.3, 3}},
      {"igamma", {0.5, 4}},
      {"igammac", {0.5, 4}},
      {"binary_cross_entropy", {0.1, 0.9}},
      {"native_batch_norm", {0.3, 2}},
      {"nll_loss_forward", {0.3, 2}},
      {"nll_loss2d_forward", {0.3, 2}},
      {"grid_sampler_2d", {-0.9, 0.9}},
      {"grid_sampler_3d", {-0.9, 0.9}},
      {"addcdiv", {0.5, 2}},
      {"div", {0.5, 2}},
      {"reciprocal", {0.5, 2}},
      {"remainder", {0.5, 2}},
      {"fmod", {0.5, 2}},
      {"prod", {-2, 2, 0.1}},
      {"cumprod", {-2, 2, 0.1}},
      {"fractional_max_pool2d", {0.01, 0.98}},  // random numbers of the call, too
      {"fractional_max_pool3d", {0.01, 0.98}},
      {"linalg_cholesky_ex", kKept},
      {"linalg_inv_ex", kKept},
      {"linalg_solve_triangular", kKept},
      {"linalg_lu_factor_ex", kKept},
      {"linalg_lu_solve", kKept},
      {"_linalg_solve_ex", kKept},
      {"linalg_householder_product", kKept},
      {"linalg_qr", kKept},
      {"torchvision::roi_align", kKept},  // regions' numbers of images
      {"torchvision::roi_pool", kKept},
      {"torchvision::ps_roi_align", kKept},
      {"torchvision::ps_roi_pool", kKept},
  };
  return table;
}

Range range_of(const Case& c) {
  const auto named = ranges().find(c.op->schema.name);
  Range range = named == ranges().end() ? Range() : named->second;
  if (c.op->schema.name == "scatter_reduce" && std::get<std::string>(c.get("reduce")) == "prod")
    range.zeros = 0.1;
  return range;
}

// Where gradients do not exist: modes that have none, and running statistics, which would change
// from call to call.
bool settle(Case& c) {
  const std::string& name = c.op->schema.name;
  if (name == "native_batch_norm" && std::get<Scalar>(c.get("training")).as_bool())
    for (const char* running : {"running_mean", "running_var"}) c.set(running, std::monostate());
  if (name == "linalg_qr") c.set("mode", std::string("reduced"));
  if (name == "_linalg_svd") c.set("full_matrices", Scalar(false));
  if (name.starts_with("_scaled_dot") && std::get<Scalar>(c.get("dropout_p")).as_double() > 0)
    return false;
  return true;
}

bool has_gradient(DType type) { return is_floating(type) || is_complex(type); }

// All numbers are numbers of float32: devices without float64 get the same ones.
TensorPtr redrawn(const TensorPtr& t, Rng& rng, const Range& range) {
  if (t == nullptr || !has_gradient(t->value.dtype)) return t;
  auto made = std::make_shared<TensorData>(*t);
  HostTensor& v = made->value;
  const auto number = [&] {
    return range.zeros > 0 && rng.chance(range.zeros) ? 0 : rng.uniform(range.low, range.high);
  };
  for (int64_t i = 0; i < v.numel(); ++i) {
    if (is_complex(v.dtype)) {
      const auto real = static_cast<float>(number());
      v.set_complex(i, {real, static_cast<float>(number())});
    } else {
      v.set(i, static_cast<float>(range.keep ? v.real(i) : number()));
    }
  }
  return made;
}

struct Form {
  const char *op, *argument, *name;
};
// A Cholesky factor depends on one triangle, its derivative is that of symmetric matrices.
// PyTorch's derivative of ctc_loss is that of logarithms of probabilities.
constexpr Form kPreparations[] = {{"linalg_cholesky_ex", "self", "symmetric"},
                                  {"_ctc_loss", "log_probs", "log_softmax"}};

Tensor prepared(const std::string& how, const Tensor& t) {
  if (how == "symmetric") return (t + t.transpose(-2, -1)) * 0.5;
  if (how == "log_softmax") return log_softmax(t, -1);
  return t;
}

}  // namespace

std::string preparation_of(const Operator& op, size_t argument) {
  for (const Form& form : kPreparations)
    if (op.schema.name == form.op && op.schema.inputs[argument].name == form.argument)
      return form.name;
  return "";
}

std::string result_form(const Operator& op) {
  return op.schema.name == "_linalg_svd" ? "products" : "";
}

HostTensor to_host(const Tensor& t) {
  const Tensor dense = t.cpu().contiguous();
  HostTensor host(t.dtype(), t.sizes());
  if (!host.bytes.empty()) std::memcpy(host.bytes.data(), dense.data(), host.bytes.size());
  return host;
}

std::vector<DifferentiableOperator> checked_operators() {
  std::vector<DifferentiableOperator> found = differentiable_operators();
  std::erase_if(found, [](const auto& d) { return find_operator(d.name)->is(kRandom); });
  return found;
}

std::vector<DType> checked_types(const DifferentiableOperator& row) {
  const Operator& op = *find_operator(row.name);
  const FamilyCases* cases = find_cases(op.family);
  if (cases == nullptr) return {};
  std::vector<DType> types;
  if (cases->accepts(op, DType::Float64)) types.push_back(DType::Float64);
  if (row.complex && cases->accepts(op, DType::Complex64)) types.push_back(DType::Complex64);
  if (types.empty() && cases->accepts(op, DType::Float32)) types.push_back(DType::Float32);
  return types;
}

std::optional<Case> gradient_case(const Operator& op, DType type, uint64_t seed) {
  Draw draw(seed + 1, LayoutMode::Contiguous, SizeMode::Small, false);
  Case c;
  try {
    c = find_cases(op.family)->make(op, type, draw);
  } catch (const Error&) {
    return {};
  }
  if (c.out_dtype || c.alias >= 0 || !settle(c)) return {};
  c.seed = seed;
  Rng rng(seed + 7);
  const Range range = range_of(c);
  for (CaseValue& v : c.args) {
    // The boxed call takes real numbers.
    if (auto* s = std::get_if<Scalar>(&v); s != nullptr && s->is_complex())
      v = Scalar(s->as_double());
    if (auto* t = std::get_if<TensorPtr>(&v)) *t = redrawn(*t, rng, range);
    if (auto* list = std::get_if<std::vector<TensorPtr>>(&v))
      for (TensorPtr& t : *list) t = redrawn(t, rng, range);
  }
  return c;
}

Call::Call(const Case& c, const std::vector<std::string>& arguments, Device device,
           std::optional<DType> type)
    : case_(c), device_(device), type_(type) {
  for (const CaseValue& v : c.args) values_.push_back(value(v));
  for (const std::string& name : arguments) {
    const auto i = static_cast<size_t>(c.op->schema.input(name));
    const DType wanted = type_.value_or(c.dtype);
    const auto add = [&](int position, const Tensor& t) {
      // Operands of less precise types have no differences that are worth a comparison.
      if (t.defined() &&
          (t.dtype() == wanted || (is_complex(wanted) && t.dtype() == DType::Float32)))
        leaves_.push_back({name, i, position, t.requires_grad_()});
    };
    if (const auto* t = std::get_if<Tensor>(&values_[i])) add(-1, *t);
    if (const auto* list = std::get_if<std::vector<Tensor>>(&values_[i]))
      for (size_t k = 0; k < list->size(); ++k) add(static_cast<int>(k), (*list)[k]);
  }
}

Tensor Call::tensor_of(const TensorPtr& t) const {
  if (t == nullptr) return {};
  const Tensor made = from_host(t->value.bytes.data(), t->value.sizes, t->value.dtype);
  return (type_ && is_floating(made.dtype()) ? made.to(*type_) : made).to(device_);
}

Value Call::value(const CaseValue& v) const {
  if (const auto* t = std::get_if<TensorPtr>(&v)) return tensor_of(*t);
  if (const auto* list = std::get_if<std::vector<TensorPtr>>(&v)) {
    std::vector<Tensor> tensors;
    for (const TensorPtr& t : *list) tensors.push_back(tensor_of(t));
    return tensors;
  }
  if (const auto* s = std::get_if<Scalar>(&v)) {
    if (s->kind() == Scalar::Kind::Bool) return s->as_bool();
    return s->is_float() ? Value(s->as_double()) : Value(s->as_int());
  }
  if (const auto* text = std::get_if<std::string>(&v)) return *text;
  if (const auto* dtype = std::get_if<DType>(&v)) return *dtype;
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&v)) return *ints;
  if (const auto* reals = std::get_if<std::vector<double>>(&v)) return *reals;
  if (const auto* flags = std::get_if<std::vector<bool>>(&v))
    return std::vector<int64_t>(flags->begin(), flags->end());
  return {};
}

std::vector<Tensor> Call::results() const {
  const Operator& op = *case_.op;
  std::vector<Value> values = values_;
  for (size_t i = 0; i < values.size(); ++i)
    if (const std::string how = preparation_of(op, i); !how.empty())
      values[i] = prepared(how, std::get<Tensor>(values[i]));
  std::vector<Tensor> results = call(op.name, values);
  // Signs of singular vectors are not unique; U S^2 V^H is, and depends on all three.
  if (result_form(op) == "products" && results[0].dim() >= 2)
    return {matmul(results[0] * (results[1] * results[1]).unsqueeze(-2), results[2]), results[1]};
  return results;
}

std::vector<Tensor> Call::gradients() const {
  std::vector<Tensor> passing, factors, inputs;
  Rng rng(11);
  weights_.clear();
  for (const Tensor& r : results()) {
    weights_.emplace_back();
    if (!r.defined() || !r.requires_grad()) continue;
    HostTensor w(is_complex(r.dtype()) ? DType::Complex128 : DType::Float64, r.sizes());
    for (int64_t i = 0; i < w.numel(); ++i) {  // numbers of float32, too
      const auto real = static_cast<float>(rng.uniform(-1, 1));
      const auto imaginary = static_cast<float>(rng.uniform(-1, 1));
      is_complex(w.dtype) ? w.set_complex(i, {real, imaginary}) : w.set(i, real);
    }
    weights_.back() = from_host(w.bytes.data(), w.sizes, w.dtype);
    passing.push_back(r);
    factors.push_back(weights_.back().to(r.dtype()).to(device_));
  }
  for (const Leaf& leaf : leaves_) inputs.push_back(leaf.tensor);
  if (passing.empty()) return {};
  std::vector<Tensor> found = grad(passing, inputs, factors);
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i].defined()) found[i] = zeros_like(inputs[i]);
  return found;
}

double Call::sum() const {
  const NoGrad off;
  const std::vector<Tensor> made = results();
  double sum = 0;
  for (size_t k = 0; k < weights_.size(); ++k) {
    if (!weights_[k].defined()) continue;
    const HostTensor r = to_host(made[k]), w = to_host(weights_[k]);
    for (int64_t i = 0; i < r.numel(); ++i)
      sum += is_complex(r.dtype) ? (std::conj(w.complex(i)) * r.complex(i)).real()
                                 : r.real(i) * w.real(i);
  }
  return sum;
}

}  // namespace ocltensor::testing
