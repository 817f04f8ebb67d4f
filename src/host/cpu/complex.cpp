// Complex numbers on the CPU backend: std::complex<double>, one element after the other.
#include "complex.h"

#include <algorithm>
#include <memory>
#include <numbers>
#include <string>
#include <unordered_map>

#include "base/infer/common.h"
#include "base/pointwise.h"

namespace ocltensor::cpu {
namespace {

constexpr double kPi = std::numbers::pi;

Number power(Number a, Number b) {
  if (b == 0.0) return 1;
  return a == 0.0 && b.real() > 0 ? Number(0) : std::pow(a, b);
}
Number lerp(Number a, Number b, Number w) {
  return std::norm(w) < 0.25 ? a + w * (b - a) : b - (b - a) * (1.0 - w);
}

// As in ATen, the imaginary part may lie beyond pi.
Number log_add_exp(Number a, Number b) {
  const Number& large = a.real() < b.real() ? b : a;
  const Number& small = a.real() < b.real() ? a : b;
  return large + std::log(1.0 + std::exp(small - large));
}

// The real or imaginary parts of a complex view.
View part(View view, int which) {
  view.type = real_type(view.type);
  view.data += which * size_of(view.type);
  for (int64_t& s : view.strides) s *= 2;
  return view;
}

// ---- pointwise

using Formula = Number (*)(Number a, Number b, Number c, Number s0);

const std::unordered_map<std::string_view, Formula>& formulas() {
  static const auto& map = *new std::unordered_map<std::string_view, Formula>{
#define OCLTENSOR_COMPLEX(name, ...)                             \
  {name, [](Number a, Number b, Number c, Number s0) -> Number { \
     (void)a, (void)b, (void)c, (void)s0;                        \
     return __VA_ARGS__;                                         \
   }},
#include "complex.def"
#undef OCLTENSOR_COMPLEX
  };
  return map;
}

void pointwise(const CpuCall& call, CpuFunction plain) {
  const PointwiseCall resolved = resolve_pointwise(call.args);
  const View out = call.out(0);
  if (!is_complex(resolved.compute)) {
    if (is_complex(out.type))
      unsupported(TB_REASON_DTYPE, "{}: the CPU backend writes no real result to a complex output",
                  resolved.row->name);
    return plain(call);
  }
  const auto it = formulas().find(resolved.row->name);
  if (it == formulas().end())
    unsupported(TB_REASON_DTYPE, "{}: the CPU backend has no formula for complex numbers",
                resolved.row->name);
  const auto count = static_cast<size_t>(out.numel());
  std::vector<Number> in[kMaxOperands];
  for (int k = 0; k < kMaxOperands; ++k) {
    const auto& operand = resolved.operands[k];
    if (k < resolved.operand_count && !operand.is_number)
      in[k] = read_numbers(View(call.args.tensor(operand.argument)).broadcast_to(out.sizes));
    else
      in[k].assign(count, k < resolved.operand_count ? operand.value.as_complex() : Number(0));
  }
  std::vector<Number> results(count);
  for (size_t i = 0; i < count; ++i)
    results[i] = it->second(in[0][i], in[1][i], in[2][i], resolved.parameters[0].as_complex());
  write_numbers(out, results);
}

// ---- copies and moves

void copy(const CpuCall& call, CpuFunction) {
  const View out = call.out(0);
  write_numbers(out, read_numbers(View(call.args.tensor(Arg::src)).broadcast_to(out.sizes)));
}
void fill(const CpuCall& call, CpuFunction) {
  const View out = call.out(0);
  write_numbers(out, std::vector<Number>(static_cast<size_t>(out.numel()),
                                         call.args.number(Arg::value).as_complex()));
}

// The real or imaginary parts of a tensor.
struct Part {
  Part(const tb_tensor& t, int which) : strides(TensorView(t).strides()), raw(t) {
    const DType type = real_type(from_abi(t.dtype));
    raw.dtype = to_abi(type);
    raw.address += static_cast<uint64_t>(which * size_of(type));
    for (int64_t& s : strides) s *= 2;
    raw.strides = strides.data();
  }
  Dims strides;
  tb_tensor raw;
};

// Runs an operator that only moves elements on their real parts, then on their imaginary ones.
void move(const CpuCall& call, CpuFunction plain) {
  for (const int which : {0, 1}) {
    std::vector<std::unique_ptr<Part>> parts;
    std::vector<std::vector<const tb_tensor*>> lists;
    const auto disguised = [&](const tb_tensor* t) -> const tb_tensor* {
      if (t == nullptr || !is_complex(from_abi(t->dtype))) return t;
      return &parts.emplace_back(std::make_unique<Part>(*t, which))->raw;
    };
    const auto disguise_list = [&](const tb_tensor* const* list, size_t count) {
      std::vector<const tb_tensor*> all;
      for (size_t i = 0; i < count; ++i) all.push_back(disguised(list[i]));
      return lists.emplace_back(std::move(all)).data();
    };
    std::vector<tb_value> values(call.raw.args, call.raw.args + call.raw.arg_count);
    for (tb_value& v : values) {
      if (v.tag == TB_TENSOR) v.as.p = disguised(static_cast<const tb_tensor*>(v.as.p));
      if (v.tag == TB_TENSOR_LIST)
        v.as.p = disguise_list(static_cast<const tb_tensor* const*>(v.as.p), v.count);
    }
    tb_call raw = call.raw;
    raw.outs = disguise_list(raw.outs, raw.out_count);
    const Args args(call.args.schema(), values);
    plain({args, raw, call.specs});
  }
}

void cat(const CpuCall& call, CpuFunction plain) {
  for (const auto& t : call.args.tensors(Arg::tensors))
    if (t->dtype() != from_abi(call.raw.outs[0]->dtype))
      unsupported(TB_REASON_DTYPE, "cat: the CPU backend joins complex numbers of one type alone");
  move(call, plain);
}

// ---- reductions

template <typename F>
void reduce(const CpuCall& call, bool all, F&& combine) {
  const View self = call.args.tensor(Arg::self);
  const DimMask mask = all ? infer::dim_mask({}, self.ndim())
                           : infer::dim_mask(call.args.ints(Arg::dim), self.ndim());
  const auto numbers = read_numbers(self.with_last(mask));
  size_t length = 1;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (mask[d]) length *= static_cast<size_t>(self.sizes[d]);
  std::vector<Number> results;
  for (int64_t r = 0; r < call.out(0).numel(); ++r)
    results.push_back(combine(std::span(numbers).subspan(static_cast<size_t>(r) * length, length)));
  write_numbers(call.out(0), results);
}

Number sum_of(std::span<const Number> row) {
  Number sum = 0;
  for (const Number& n : row) sum += n;
  return sum;
}
Number product_of(std::span<const Number> row) {
  Number product = 1;
  for (const Number& n : row) product *= n;
  return product;
}
void sum(const CpuCall& call, CpuFunction) { reduce(call, false, sum_of); }
void mean(const CpuCall& call, CpuFunction) {
  reduce(call, false,
         [](std::span<const Number> row) { return sum_of(row) / static_cast<double>(row.size()); });
}
void prod(const CpuCall& call, CpuFunction) { reduce(call, false, product_of); }
void prod_all(const CpuCall& call, CpuFunction) { reduce(call, true, product_of); }

// ---- products of matrices

std::vector<Number> product(const CpuCall& call) {
  const infer::Factors factors = infer::factors_of(call.args);
  const View a = call.args.tensor(factors.a);
  const View b = call.args.tensor(factors.b);
  const auto left = read_numbers(a);
  const auto right = read_numbers(b);
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  const size_t k = size(a.sizes.back());
  const size_t n = b.ndim() == 1 ? 1 : size(b.sizes.back());
  const size_t batch = a.ndim() == 3 ? size(a.sizes[0]) : 1;
  const size_t m = a.ndim() == 1 ? 1 : size(a.sizes[a.sizes.size() - 2]);
  std::vector<Number> result(batch * m * n);
  for (size_t r = 0; r < batch * m; ++r)
    for (size_t j = 0; j < n; ++j)
      for (size_t i = 0; i < k; ++i)
        result[r * n + j] += left[r * k + i] * right[(r / m * k + i) * n + j];
  return result;
}

void multiply(const CpuCall& call, CpuFunction) { write_numbers(call.out(0), product(call)); }
void multiply_add(const CpuCall& call, CpuFunction) {
  const View out = call.out(0);
  const Number beta = call.args.number(Arg::beta).as_complex();
  const Number alpha = call.args.number(Arg::alpha).as_complex();
  auto result = product(call);
  for (Number& v : result) v *= alpha;
  if (beta != 0.0) {
    const auto self = read_numbers(View(call.args.tensor(Arg::self)).broadcast_to(out.sizes));
    for (size_t i = 0; i < result.size(); ++i) result[i] += beta * self[i];
  }
  write_numbers(out, result);
}

}  // namespace

std::vector<Number> read_numbers(const View& view) {
  const bool complex = is_complex(view.type);
  const auto real = read<double>(complex ? part(view, 0) : view);
  const auto imaginary = complex ? read<double>(part(view, 1)) : std::vector<double>(real.size());
  std::vector<Number> numbers;
  numbers.reserve(real.size());
  for (size_t i = 0; i < real.size(); ++i) numbers.emplace_back(real[i], imaginary[i]);
  return numbers;
}

void write_numbers(const View& view, const std::vector<Number>& numbers) {
  std::vector<double> real, imaginary;
  for (const Number& n : numbers) {
    real.push_back(view.type == DType::Bool ? (n != 0.0 ? 1 : 0) : n.real());
    imaginary.push_back(n.imag());
  }
  if (!is_complex(view.type)) return write(view, real);
  write(part(view, 0), real);
  write(part(view, 1), imaginary);
}

bool has_complex(const Args& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg a = args.nth(i);
    const tb_value& v = args.value(a);
    if (v.tag == TB_COMPLEX) return true;
    if (v.tag == TB_TENSOR && is_complex(args.tensor(a).dtype())) return true;
    if (v.tag == TB_TENSOR_LIST)
      for (const auto& t : args.tensors(a))
        if (t && is_complex(t->dtype())) return true;
  }
  return false;
}
bool has_complex(std::span<const tb_tensor* const> outs) {
  return std::ranges::any_of(
      outs, [](const tb_tensor* t) { return t != nullptr && is_complex(from_abi(t->dtype)); });
}

ComplexFunction find_complex(const Operator& op) {
  static const auto& map = *new std::unordered_map<std::string_view, ComplexFunction>{
      {"copy.out", copy},         {"fill.Scalar_out", fill},   {"cat.out", cat},
      {"flip.out", move},         {"roll.out", move},          {"tril.out", move},
      {"triu.out", move},         {"gather.out", move},        {"index_select.out", move},
      {"index.Tensor_out", move}, {"scatter.src_out", move},   {"sum.IntList_out", sum},
      {"mean.out", mean},         {"prod.int_out", prod},      {"prod.out", prod_all},
      {"mm.out", multiply},       {"bmm.out", multiply},       {"mv.out", multiply},
      {"dot.out", multiply},      {"addmm.out", multiply_add}, {"baddbmm.out", multiply_add},
      {"addmv.out", multiply_add}};
  if (op.is(kPointwise)) return formulas().contains(op.name) ? pointwise : nullptr;
  const auto it = map.find(op.name);
  return it == map.end() ? nullptr : it->second;
}

}  // namespace ocltensor::cpu
