// arange, linspace, eye, tril, triu.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "copy.h"
#include "kernels/copy.h"

namespace ocltensor::opencl::copy {
namespace {

uint64_t wide_bits(const OpCall& call, double value) {
  uint64_t bits = 0;
  if (call.caps().fp64) {
    std::memcpy(&bits, &value, sizeof value);
  } else {
    const auto f = static_cast<float>(value);
    std::memcpy(&bits, &f, sizeof f);
  }
  return bits;
}

constexpr int64_t kGroup = 64;
Grid cover(int64_t n) { return {(n + kGroup - 1) / kGroup * kGroup, 1, 1}; }

Defines defines_for(TensorView out) {
  Defines d;
  d.type(define::OUT, out.dtype()).set(define::FLOATING, is_floating(out.dtype()));
  return d;
}

// Writes numbers that the host computed, for devices without float64.
void write_numbers(const OpCall& call, TensorView out, const std::vector<double>& numbers) {
  const auto bytes = static_cast<int64_t>(numbers.size() * sizeof(double));
  const Scratch memory = call.scratch(bytes);
  const Place place = resolve(memory.address(), 0, bytes);
  call.stream().write(place.buffer, place.offset, numbers.data(), numbers.size() * sizeof(double),
                      false);
  const LocalTensor source(memory.address(), DType::Float64, out.sizes());
  copy_tensor(call, out, source.view());
}

void arange_op(OpCall& call) {
  const TensorView out = call.out(0);
  const Scalar start = call.args().scalar(Arg::start);
  const Scalar step = call.args().scalar(Arg::step);
  check(out.ndim() == 1, "arange: the output must have one dimension");
  call.accept();
  if (out.numel() == 0) return;
  if (call.lacks(out.dtype())) {
    std::vector<double> numbers(static_cast<size_t>(out.numel()));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = start.as_double() + static_cast<double>(i) * step.as_double();
    return write_numbers(call, out, numbers);
  }
  call.launch(kernels::copy::create::arange, defines_for(out),
              {.out = out,
               .stride = out.strides()[0],
               .n = out.numel(),
               .start = start.as_int(),
               .step = step.as_int(),
               .start_bits = wide_bits(call, start.as_double()),
               .step_bits = wide_bits(call, step.as_double())})
      .run(cover(out.numel()), {kGroup, 1, 1});
}

// The same numbers as copy/create.cl makes.
std::vector<double> linspace(int64_t count, double start, double end) {
  if (count == 1) return {start};
  std::vector<double> numbers(static_cast<size_t>(count));
  const double step = (end - start) / static_cast<double>(count - 1);
  for (int64_t i = 0; i < count; ++i)
    numbers[static_cast<size_t>(i)] = i < count / 2
                                          ? start + static_cast<double>(i) * step
                                          : end - static_cast<double>(count - 1 - i) * step;
  return numbers;
}

// Integers are made from the truncated ends; complex numbers part by part.
void fill_linspace(const OpCall& call, TensorView out, std::complex<double> start,
                   std::complex<double> end) {
  if (is_complex(out.dtype())) {
    fill_linspace(call, part_of(out, 0), start.real(), end.real());
    return fill_linspace(call, part_of(out, 1), start.imag(), end.imag());
  }
  const bool whole = !is_floating(out.dtype());
  const double first = whole ? std::trunc(start.real()) : start.real();
  const double last = whole ? std::trunc(end.real()) : end.real();
  // A step in float would put integers beside the right ones.
  if (call.lacks(out.dtype()) || (whole && !call.caps().fp64))
    return write_numbers(call, out, linspace(out.numel(), first, last));
  call.launch(kernels::copy::create::linspace, defines_for(out),
              {.out = out,
               .stride = out.strides()[0],
               .n = out.numel(),
               .start_bits = wide_bits(call, first),
               .end_bits = wide_bits(call, last)})
      .run(cover(out.numel()), {kGroup, 1, 1});
}

void linspace_op(OpCall& call) {
  const TensorView out = call.out(0);
  const Scalar start = call.args().number(Arg::start);
  const Scalar end = call.args().number(Arg::end);
  check(out.ndim() == 1, "linspace: the output must have one dimension");
  check(is_complex(out.dtype()) || (!start.is_complex() && !end.is_complex()),
        "linspace: complex ends need a complex output, got {}", name(out.dtype()));
  call.accept();
  if (out.numel() > 0) fill_linspace(call, out, start.as_complex(), end.as_complex());
}

void eye_op(OpCall& call) {
  const TensorView out = call.out(0);
  check(out.ndim() == 2, "eye: the output must be a matrix");
  call.accept();
  if (out.numel() == 0) return;
  if (is_complex(out.dtype()) || call.lacks(out.dtype())) {
    fill_tensor(call, out, 0);
    const int64_t step = out.strides()[0] + out.strides()[1];
    return fill_tensor(call, view_of(out, {std::min(out.size(0), out.size(1))}, {step}, 0), 1);
  }
  call.launch(kernels::copy::create::eye, defines_for(out),
              {.out = out,
               .rows = out.size(0),
               .columns = out.size(1),
               .row_stride = out.strides()[0],
               .column_stride = out.strides()[1]})
      .run(cover(out.sizes()[0]), {kGroup, 1, 1});
}

template <bool upper>
void triangle_op(OpCall& call) {
  const TensorView self = call.args().tensor(Arg::self);
  const int64_t diagonal = call.args().integer(Arg::diagonal);
  check(self.ndim() >= 2, "{} needs a matrix, got {} dimension(s)", call.name(), self.ndim());
  check(self.dtype() == call.out(0).dtype(), "{}: the output must have the input's type",
        call.name());
  call.accept();
  if (self.numel() == 0) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const int64_t rows = self.size(-2);
  const int64_t columns = self.size(-1);
  const int64_t total = self.numel() / columns;
  Defines d;
  d.type(define::OUT, carrier_type(self.dtype())).set(define::UPPER, upper);
  call.launch(kernels::copy::create_triangle::triangle, d,
              {.out = out.view(),
               .in = in.view(),
               .total_rows = total,
               .rows = rows,
               .columns = columns,
               .diagonal = std::clamp(diagonal, -rows - columns, rows + columns)})
      .run(cover(total), {kGroup, 1, 1});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"arange.start_out", arange_op, false, true},
                                  {"linspace.out", linspace_op, true, true},
                                  {"eye.m_out", eye_op, true, true},
                                  {"tril.out", triangle_op<false>, true, true, true},
                                  {"triu.out", triangle_op<true>, true, true, true}};

}  // namespace

const std::span<const OpEntry> kCreateOperators = kOperators;

}  // namespace ocltensor::opencl::copy
