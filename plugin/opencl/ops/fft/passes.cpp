// One transform as a sequence of launches: Stockham passes, or Bluestein's convolution around them.
#include <algorithm>
#include <bit>

#include "call/division.h"
#include "call/scalar_bits.h"
#include "fft.h"
#include "kernels/fft.h"
#include "ops/reduce/complex.h"

namespace ocltensor::opencl::fft {
namespace {

// The radices of the passes; empty if a factor without a butterfly is left.
std::vector<int64_t> radices_of(int64_t length) {
  if (length == 1) return {1};
  std::vector<int64_t> radices;
  for (const int64_t radix : {8, 4, 2, 3, 5, 7})
    for (; length % radix == 0; length /= radix) radices.push_back(radix);
  return length == 1 ? radices : std::vector<int64_t>{};
}

FftParams params_of(const Transform& t, const SignalPlace& in, const SignalPlace& out) {
  return {.count = 0,
          .per_item = 0,
          .length = t.length,
          .inner = t.inner,
          .in_length = in.length(t.length),
          .out_length = out.length(t.length),
          .done = 1,
          .low_bits = 0,
          .sign = t.forward ? 1.0f : -1.0f,
          .scale = scalar_bits(1, real_type(t.compute))};
}

// Divides `count` pieces of work among work-items, and sets the parameters that kernels need for
// it.
Division divide_pieces(const OpCall& call, int64_t count, FftParams& p) {
  const Division division = divide(call.caps(), count, 256);
  p.count = count;
  p.per_item = division.per_item;
  return division;
}

Defines defines_of(const SignalPlace& in, const SignalPlace& out, const Transform& t,
                   int64_t count) {
  Defines d;
  d.type(define::PART, real_type(t.compute))
      .type(define::IN, in.dtype)
      .type(define::OUT, out.dtype);
  d.set(define::HALF_IN, in.kind == Signal::Half);
  d.set(define::INDEX, count < (int64_t{1} << 31) ? "uint" : "ulong");
  return d;
}

MemoryRange range_of(const SignalPlace& place, const Transform& t) {
  return {place.address, 0, t.outer * place.length(t.length) * t.inner * place.item_size()};
}

// A table of roots: exp(-2 pi i m / length) = low[m mod 2^low_bits] high[m / 2^low_bits].
struct Roots {
  Scratch table;
  int low_bits;
};
Roots make_roots(const OpCall& call, const Transform& t) {
  const int64_t length = t.length;
  const int low_bits = (std::bit_width(static_cast<uint64_t>(length)) + 1) / 2;
  const int64_t entries = (int64_t{1} << low_bits) + (length >> low_bits) + 1;
  Roots roots{call.scratch(static_cast<uint64_t>(entries * size_of(t.compute))), low_bits};
  FftParams p{};
  p.length = length;
  p.low_bits = low_bits;
  const Division division = divide_pieces(call, entries, p);
  Defines d;
  d.type(define::PART, real_type(t.compute));
  call.launch(kernels::fft::passes_tables::fft_roots, d, {.table = roots.table, .p = p})
      .run(division.global, division.local);
  return roots;
}

uint64_t complex_bytes(const Transform& t) {
  return static_cast<uint64_t>(t.outer * t.length * t.inner * size_of(t.compute));
}

void run_passes(const OpCall& call, SignalPlace in, SignalPlace out, const Transform& t,
                const std::vector<int64_t>& radices) {
  const Roots roots = make_roots(call, t);
  // Results between passes alternate between scratch memory and the output, if that can hold them.
  std::vector<Scratch> memory;
  const bool out_holds = out.kind == Signal::Complex && out.dtype == t.compute;
  for (size_t need = std::min<size_t>(radices.size() - 1, out_holds ? 1 : 2); need > 0; --need)
    memory.push_back(call.scratch(complex_bytes(t)));
  int64_t done = 1;
  for (size_t i = 0; i < radices.size(); ++i) {
    const int64_t radix = radices[i];
    const size_t left = radices.size() - 1 - i;
    SignalPlace target = out;
    if (left % 2 == 1)
      target = {memory[0].address(), Signal::Complex, t.compute};
    else if (left > 0 && !out_holds)
      target = {memory[1].address(), Signal::Complex, t.compute};
    const int64_t count = t.outer * (t.length / radix) * t.inner;
    FftParams p = params_of(t, in, target);
    p.done = done;
    p.low_bits = roots.low_bits;
    if (left == 0) p.scale = scalar_bits(t.scale, real_type(t.compute));
    const Division division = divide_pieces(call, count, p);
    call.launch(kernels::fft::passes::fft_pass,
                defines_of(in, target, t, count * radix).set(define::RADIX, radix),
                {.in = range_of(in, t), .out = range_of(target, t), .table = roots.table, .p = p})
        .run(division.global, division.local);
    done *= radix;
    in = target;
  }
}

// L. Bluestein, A linear filtering approach to the computation of discrete Fourier transform
// (1970): with n k = (n^2 + k^2 - (k - n)^2) / 2 the transform is a convolution with a chirp, done
// here on a circle of a power of 2 points.
void run_bluestein(const OpCall& call, SignalPlace in, SignalPlace out, const Transform& t) {
  const auto circle_length =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * t.length - 1)));
  const Transform circle{1, circle_length, 1, true, 1, t.compute};
  const Transform forward{t.outer, circle_length, t.inner, true, 1, t.compute};
  const Transform inverse{
      t.outer, circle_length, t.inner, false, 1 / static_cast<double>(circle_length), t.compute};
  const Scratch chirp = call.scratch(static_cast<uint64_t>(t.length * size_of(t.compute)));
  const Scratch filter = call.scratch(complex_bytes(circle));
  const Scratch filter_spectrum = call.scratch(complex_bytes(circle));
  const Scratch padded = call.scratch(complex_bytes(forward));
  const Scratch spectrum = call.scratch(complex_bytes(forward));
  const SignalPlace padded_place{padded.address(), Signal::Complex, t.compute};
  const SignalPlace spectrum_place{spectrum.address(), Signal::Complex, t.compute};

  FftParams p = params_of(t, in, out);
  p.out_length = circle_length;
  Division division = divide_pieces(call, circle_length, p);
  Defines d;
  d.type(define::PART, real_type(t.compute));
  call.launch(kernels::fft::passes_tables::fft_chirp, d, {.chirp = chirp, .circle = filter, .p = p})
      .run(division.global, division.local);
  // The length is a power of 2, which always takes passes, even where settings disable them.
  const std::vector<int64_t> radices = radices_of(circle_length);
  run_passes(call, {filter.address(), Signal::Complex, t.compute},
             {filter_spectrum.address(), Signal::Complex, t.compute}, circle, radices);

  const int64_t padded_count = t.outer * circle_length * t.inner;
  division = divide_pieces(call, padded_count, p);
  call.launch(
          kernels::fft::passes_chirp::chirp_before, defines_of(in, padded_place, t, padded_count),
          {.in = range_of(in, t), .out = range_of(padded_place, forward), .chirp = chirp, .p = p})
      .run(division.global, division.local);
  run_passes(call, padded_place, spectrum_place, forward, radices);
  reduce::multiply_in_place(
      call, LocalTensor(spectrum.address(), t.compute, Dims{t.outer, circle_length, t.inner}),
      LocalTensor(filter_spectrum.address(), t.compute, Dims{t.outer, circle_length, t.inner},
                  Dims{0, 1, 0}));
  run_passes(call, spectrum_place, padded_place, inverse, radices);

  const int64_t count = t.outer * t.length * t.inner;
  p = params_of(t, in, out);
  p.in_length = circle_length;
  p.scale = scalar_bits(t.scale, real_type(t.compute));
  division = divide_pieces(call, count, p);
  call.launch(
          kernels::fft::passes_chirp::chirp_after, defines_of(padded_place, out, t, padded_count),
          {.in = range_of(padded_place, forward), .out = range_of(out, t), .chirp = chirp, .p = p})
      .run(division.global, division.local);
}

struct Problem {
  SignalPlace in, out;
  Transform transform;
};

// The plan: the radices of the passes.
using Radices = std::vector<int64_t>;

Planned<Radices> plan_passes(const OpCall&, const Problem& p) {
  Radices radices = radices_of(p.transform.length);
  if (radices.empty()) return "the length has a prime factor above 7";
  return radices;
}
void run_by_passes(const OpCall& call, const Problem& p, const Radices& radices) {
  run_passes(call, p.in, p.out, p.transform, radices);
}
void run_by_bluestein(const OpCall& call, const Problem& p) {
  run_bluestein(call, p.in, p.out, p.transform);
}

constinit const AlgorithmFor<Problem> kPasses({.id = "fft.passes",
                                               .description = "Stockham passes"},
                                              Steps<plan_passes, run_by_passes>());
constinit const AlgorithmFor<Problem> kBluestein({.id = "fft.bluestein",
                                                  .description = "Bluestein's convolution",
                                                  .last_resort = true},
                                                 Steps<takes_all<Problem>, run_by_bluestein>());

struct Traits {
  static std::string describe(const OpCall&, const Problem& p) {
    return fmt::format("fft {} x {} x {}", p.transform.outer, p.transform.length,
                       p.transform.inner);
  }
};
using Algorithms = AlgorithmList<Problem, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("fft", fft_operators(), {&kPasses, &kBluestein});  // leaked, as others
  return list;
}

}  // namespace

void run_transform(const OpCall& call, SignalPlace in, SignalPlace out, const Transform& t) {
  algorithms().run(call, {in, out, t});
}

const AlgorithmFamily& fft_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::fft
