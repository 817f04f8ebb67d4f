// Products of many rows: panels of rows of the weight become floats of x's type in scratch memory
// of a bounded size, one after another, and factors of the products that there are.
#include <algorithm>

#include "call/divide_up.h"
#include "call/division.h"
#include "ops/matmul/matmul.h"
#include "quantised.h"

namespace ocltensor::opencl::quantised {
namespace {

constexpr int64_t kStep = 128;  // rows of a panel: columns of the products' tiles

// Bytes of a panel: what stays in a CPU's caches; of GPUs a thousandth of their memory, so that the
// product of a panel has tiles for all compute units.
int64_t panel_bytes(const OpCall& call) {
  constexpr int64_t kCpu = 8 << 20, kLeast = 32 << 20;
  return by_style(call, kCpu,
                  std::max(kLeast, static_cast<int64_t>(call.caps().global_memory >> 10)));
}

// Columns [first, first + count) of the product, of which `factor` is the right matrix.
matmul::Problem problem(const Product& p, int64_t first, int64_t count,
                        const matmul::Matrix& factor) {
  const int64_t item = p.x.itemsize();
  const auto at = [&](TensorView t, int64_t elements) {
    return t.address() + static_cast<uint64_t>(elements * item);
  };
  matmul::Problem q{.types = p.x.dtype(), .batch = 1, .m = p.m(), .n = count, .k = p.weight.k};
  q.a = {p.x.address(), 0, p.x_row(), 1};
  q.b = factor;
  q.c = {at(p.out, first), 0, p.weight.n, 1};
  if (p.bias) q.end.add({at(*p.bias, first * p.bias->stride(0)), 0, 0, p.bias->stride(0)});
  return q;
}

// Bytes with a scale a row are factors themselves, where no matrix units multiply floats faster.
bool is_factor(const OpCall& call, const Product& p) {
  if (std::string_view(p.weight.format->name) != "int8" || p.weight.group != p.weight.k ||
      p.weight.bytes.dtype() != DType::Int8)
    return false;
  if (call.caps().style == KernelStyle::Cpu) return true;
  constexpr tb_address kAligned = 1 << 12;  // as scratch memory is; nothing reads it
  return !matmul::has_units_for(call, problem(p, 0, p.weight.n, {kAligned, 0, 1, p.weight.k}));
}

void run(const OpCall& call, const Product& p) {
  const QuantisedWeight& w = p.weight;
  if (is_factor(call, p)) {
    matmul::Problem q = problem(p, 0, w.n, {w.bytes.address(), 0, 1, w.k});
    q.types.b = DType::Int8;
    const int64_t row = w.scale->size(0) == 1 ? 0 : w.scale->stride(0);
    q.end.scales = {w.scale->dtype(), {w.scale->address(), 0, 0, row}};
    return matmul::run_matmul(call, q);
  }
  const int64_t line = std::max<int64_t>(w.k * p.x.itemsize(), 1);
  const int64_t fitting = panel_bytes(call) / line / kStep * kStep;
  const int64_t rows = std::min(w.n, std::max(fitting, kStep));
  const Scratch panel = call.scratch(static_cast<uint64_t>(rows * line));
  for (int64_t first = 0; first < w.n; first += rows) {
    const int64_t count = std::min(rows, w.n - first);
    unpack_rows(call, w, first, count, panel.address(), p.x.dtype());
    matmul::run_matmul(call, problem(p, first, count, {panel.address(), 0, 1, w.k}));
  }
}

}  // namespace

constinit const AlgorithmFor<Product> kPanels({.id = "quantised.panels",
                                               .description = "panels of the weight become floats",
                                               .last_resort = true},
                                              Steps<takes_all<Product>, run>());

}  // namespace ocltensor::opencl::quantised
