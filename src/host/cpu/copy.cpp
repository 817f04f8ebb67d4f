// Copies, fills and constructors.
#include <cmath>

#include "call.h"
#include "complex.h"

namespace ocltensor::cpu {
namespace {

// Element by element, in any pair of types: integers by way of int64_t, so that none is rounded
// twice.
void copy_view(const View& to, const View& from) {
  const Dims strides[] = {to.strides, from.strides};
  const IterationSpace space = make_iteration(to.sizes, strides);
  constexpr int64_t kChunk = 1024;
  for_each_run(space, [&](const int64_t* at, int64_t length) {
    with_compute(from.type, [&]<typename T>(T) {
      T buffer[kChunk];
      for (int64_t start = 0; start < length; start += kChunk) {
        const int64_t count = std::min(kChunk, length - start);
        const int64_t in = space.strides[1][0];
        const int64_t out = space.strides[0][0];
        load(buffer, from.at(at[1] + start * in), from.type, in, count);
        store(to.at(at[0] + start * out), to.type, out, buffer, count);
      }
    });
  });
}

// A dense copy of an operand: an output may have the same memory.
struct Detached {
  std::vector<std::byte> memory;
  View view;
  explicit Detached(const View& from) : view(from) {
    memory.resize(static_cast<size_t>(from.numel() * size_of(from.type)) + 1);
    view.data = memory.data();
    view.strides = contiguous_strides(from.sizes);
    copy_view(view, from);
  }
};

void copy(const CpuCall& call) {
  const View out = call.out(0);
  const Detached src(call.args.tensor(Arg::src));
  copy_view(out, src.view.broadcast_to(out.sizes));
}

void fill_view(const View& out, Scalar value) {
  const Dims strides[] = {out.strides};
  const IterationSpace space = make_iteration(out.sizes, strides);
  const bool real = value.is_float();
  for_each_run(space, [&](const int64_t* at, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
      const double d = value.as_double();
      const int64_t n = real ? 0 : value.as_int();
      std::byte* to = out.at(at[0] + i * space.strides[0][0]);
      if (real)
        store(to, out.type, 1, &d, 1);
      else
        store(to, out.type, 1, &n, 1);
    }
  });
}

void fill(const CpuCall& call) {
  check_fits(call.args.scalar(Arg::value), call.out(0).type);
  fill_view(call.out(0), call.args.scalar(Arg::value));
}

void cat(const CpuCall& call) {
  const View out = call.out(0);
  const int64_t dim = wrap_dim(call.args.integer(Arg::dim), out.ndim());
  std::vector<Detached> inputs;
  for (const auto& t : call.args.tensors(Arg::tensors))
    if (t->ndim() > 1 || t->numel() > 0) inputs.emplace_back(View(*t));
  int64_t start = 0;
  for (const Detached& input : inputs) {
    const int64_t length = input.view.sizes[static_cast<size_t>(dim)];
    copy_view(out.narrow(dim, start, length), input.view);
    start += length;
  }
}

void arange(const CpuCall& call) {
  const View out = call.out(0);
  const auto count = static_cast<size_t>(out.numel());
  const Scalar start = call.args.scalar(Arg::start);
  const Scalar step = call.args.scalar(Arg::step);
  with_compute(out.type, [&]<typename T>(T) {
    std::vector<T> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = number<T>(start) + number<T>(step) * static_cast<T>(i);
    write(out, values);
  });
}

// Counts from the nearer end, so that both ends are exact.
void linspace(const CpuCall& call) {
  const View out = call.out(0);
  const int64_t count = out.numel();
  const bool whole = !is_floating(out.type);
  const double start = whole ? std::trunc(call.args.real(Arg::start)) : call.args.real(Arg::start);
  const double end = whole ? std::trunc(call.args.real(Arg::end)) : call.args.real(Arg::end);
  const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = i < count / 2 || count == 1
                                         ? start + step * static_cast<double>(i)
                                         : end - step * static_cast<double>(count - 1 - i);
  write(out, values);
}

void eye(const CpuCall& call) {
  const View out = call.out(0);
  std::vector<int64_t> values(static_cast<size_t>(out.numel()));
  for (int64_t i = 0; i < std::min(out.sizes[0], out.sizes[1]); ++i)
    values[static_cast<size_t>(i * out.sizes[1] + i)] = 1;
  write(out, values);
}

void triangle(const CpuCall& call, bool lower) {
  const View self = call.args.tensor(Arg::self);
  const int64_t diagonal = call.args.integer(Arg::diagonal);
  const int64_t columns = self.sizes.back();
  const int64_t rows = self.sizes[self.sizes.size() - 2];
  with_compute(self.type, [&]<typename T>(T) {
    auto values = read<T>(self);
    for (int64_t i = 0; i < self.numel(); ++i) {
      const int64_t column = i % columns;
      const int64_t row = i / columns % rows;
      if (lower ? column > row + diagonal : column < row + diagonal)
        values[static_cast<size_t>(i)] = 0;
    }
    write(call.out(0), values);
  });
}
void tril(const CpuCall& call) { triangle(call, true); }
void triu(const CpuCall& call) { triangle(call, false); }

void flip(const CpuCall& call) {
  const Detached self(call.args.tensor(Arg::self));
  View reversed = self.view;
  for (int64_t dim : call.args.ints(Arg::dims)) {
    const auto d = static_cast<size_t>(wrap_dim(dim, reversed.ndim()));
    if (reversed.sizes.empty() || reversed.sizes[d] == 0) continue;
    reversed.data = reversed.at((reversed.sizes[d] - 1) * reversed.strides[d]);
    reversed.strides[d] = -reversed.strides[d];
  }
  copy_view(call.out(0), reversed);
}

// Rolls one dimension after the other; without dimensions, the flattened tensor.
void roll(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const auto shifts = call.args.ints(Arg::shifts);
  const auto dims = call.args.ints(Arg::dims);
  with_compute(self.type, [&]<typename T>(T) {
    auto values = read<T>(self);
    const auto roll_one = [&](int64_t shift, int64_t length, int64_t inner) {
      if (values.empty()) return;
      const int64_t by = ((shift % length) + length) % length * inner;
      for (auto row = values.begin(); row != values.end(); row += length * inner)
        std::rotate(row, row + length * inner - by, row + length * inner);
    };
    if (dims.empty()) roll_one(shifts[0], self.numel(), 1);
    const Dims strides = contiguous_strides(self.sizes);
    for (size_t k = 0; k < dims.size() && self.ndim() > 0; ++k) {
      const auto d = static_cast<size_t>(wrap_dim(dims[k], self.ndim()));
      roll_one(shifts[k], self.sizes[d], strides[d]);
    }
    write(call.out(0), values);
  });
}

// For each element of a padded tensor, in row-major order, which element of the one before it was.
std::vector<size_t> pad_sources(const Args& args, const Dims& sizes, const Dims& padded) {
  const auto padding = args.ints(Arg::padding);
  const bool reflects = args.string(Arg::mode) == "reflect";
  std::vector<size_t> sources{0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    const size_t k = 2 * (sizes.size() - 1 - d);
    const int64_t before = k < padding.size() ? padding[k] : 0, last = sizes[d] - 1;
    std::vector<size_t> next;
    for (const size_t source : sources)
      for (int64_t i = -before; i < padded[d] - before; ++i) {
        const int64_t mirrored = i < 0 ? -i : i > last ? 2 * last - i : i;
        const int64_t at = reflects ? mirrored : std::clamp<int64_t>(i, 0, last);
        next.push_back(source * static_cast<size_t>(sizes[d]) + static_cast<size_t>(at));
      }
    sources = std::move(next);
  }
  return sources;
}

// Calls f with functions that read a view, and that write one, in the type to compute in.
template <typename F>
void with_numbers(DType type, F&& f) {
  if (is_complex(type)) return f(read_numbers, write_numbers);
  with_compute(type, [&]<typename T>(T) {
    f([](const View& from) { return read<T>(from); },
      [](const View& to, const std::vector<T>& values) { write(to, values); });
  });
}

void pad(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const auto sources = pad_sources(call.args, self.sizes, call.specs[0].sizes);
  with_numbers(self.type, [&](auto read_all, auto write_all) {
    const auto values = read_all(self);
    auto result = values;
    result.resize(sources.size());
    for (size_t i = 0; i < sources.size(); ++i) result[i] = values[sources[i]];
    write_all(call.out(0), result);
  });
}

// The gradient of an element is the sum over the places that it was copied to.
void pad_backward(const CpuCall& call) {
  const View grad = call.args.tensor(Arg::grad_output);
  const auto sources = pad_sources(call.args, call.specs[0].sizes, grad.sizes);
  with_numbers(grad.type, [&](auto read_all, auto write_all) {
    const auto values = read_all(grad);
    auto result = values;
    result.assign(static_cast<size_t>(numel(call.specs[0].sizes)), {});
    for (size_t i = 0; i < sources.size(); ++i) result[sources[i]] += values[i];
    write_all(call.out(0), result);
  });
}

constexpr CpuOperator kOperators[] = {
    {"copy.out", copy},         {"fill.Scalar_out", fill},
    {"cat.out", cat},           {"arange.start_out", arange},
    {"linspace.out", linspace}, {"eye.m_out", eye},
    {"tril.out", tril},         {"triu.out", triu},
    {"flip.out", flip},         {"roll.out", roll},
    {"_ocl_pad.out", pad, pad}, {"_ocl_pad_backward.out", pad_backward, pad_backward},
};

}  // namespace

std::span<const CpuOperator> copy_operators() { return kOperators; }

}  // namespace ocltensor::cpu
