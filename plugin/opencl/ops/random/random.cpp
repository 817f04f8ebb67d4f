// uniform, normal, exponential, bernoulli, random: independent random numbers.
#include "random.h"

#include <cmath>

#include "base/whole_numbers.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/random.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/elementwise.h"
#include "runtime/device/generator.h"
#include "runtime/program/dry_run.h"

namespace ocltensor::opencl::random {
namespace {

double rounded(double value, DType type) {
  switch (type) {
    case DType::Float16: return half_to_float(float_to_half(static_cast<float>(value)));
    case DType::BFloat16: return bfloat16_to_float(float_to_bfloat16(static_cast<float>(value)));
    default: return static_cast<float>(value);
  }
}

Defines draw_defines(DType out, bool wide) {
  Defines d;
  d.type(define::OUT, out).set(define::WIDE, wide);
  return d;
}

void draw(const OpCall& call, TensorView out, const RandomParams& p, bool wide, const char* value,
          const TensorView* probabilities = nullptr) {
  Defines d = draw_defines(out.dtype(), wide);
  d.set(define::VALUE, value)
      .set(define::OUT_FLOATING, is_floating(out.dtype()))
      .type(define::IN, probabilities == nullptr ? DType::UInt8 : probabilities->dtype());
  run_draws(call, p, wide, [&](const RandomParams& cut) {
    return call.launch(
        kernels::random::random_draw::draw, d,
        {.out = out, .in = probabilities, .faults = call.fault(FaultKind::Probability), .p = cut});
  });
}

bool is_wide(TensorView out) { return out.dtype() == DType::Float64; }

void check_floating_output(const OpCall& call) {
  check_outputs(call, OutputTypes::Any);
  check(is_floating(call.out(0).dtype()), "{} needs a floating-point tensor, got {}", call.name(),
        name(call.out(0).dtype()));
}

void uniform_op(OpCall& call) {
  check_floating_output(call);
  const double from = call.args().real(Arg::from);
  const double to = call.args().real(Arg::to);
  check(from <= to, "uniform: from must not be above to, got {} and {}", from, to);
  call.accept();
  if (!call.wants(0)) return;
  const DType type = call.out(0).dtype();
  ContiguousOutput out(call, call.out(0));
  const bool wide = is_wide(out.view());
  RandomParams p = take_numbers(call, out.view().numel(), wide);
  if (wide) {
    p.p[0] = slot_bits(from);
    p.p[1] = slot_bits(to - from);
    p.p[2] = slot_bits(to > from ? to : NAN);
    p.p[3] = p.p[0];
  } else {
    const auto low = static_cast<float>(from);
    p.p[0] = slot_bits(low);
    p.p[1] = slot_bits(static_cast<float>(to) - low);
    p.p[2] = slot_bits(to > from ? static_cast<float>(rounded(to, type)) : NAN);
    p.p[3] = slot_bits(static_cast<float>(rounded(low, type)));
  }
  draw(call, out.view(), p, wide, "uniform");
  out.finish();
}

void normal_op(OpCall& call) {
  check_floating_output(call);
  const double mean = call.args().real(Arg::mean);
  const double deviation = call.args().real(Arg::std);
  check(deviation >= 0, "normal: std must not be negative, got {}", deviation);
  call.accept();
  if (!call.wants(0)) return;
  ContiguousOutput out(call, call.out(0));
  const bool wide = is_wide(out.view());
  const int64_t count = out.view().numel();
  RandomParams p = take_numbers(call, count + count % 2, wide);
  p.count = count;
  p.p[0] = real_bits(call, mean);
  p.p[1] = real_bits(call, deviation);
  run_draws(call, p, wide, [&](const RandomParams& cut) {
    return call.launch(kernels::random::random_normal::normal,
                       draw_defines(out.view().dtype(), wide), {.out = out.view(), .p = cut});
  });
  out.finish();
}

void exponential_op(OpCall& call) {
  check_floating_output(call);
  const double lambda = call.args().real(Arg::lambd);
  check(lambda > 0, "exponential: lambda must be positive, got {}", lambda);
  call.accept();
  if (!call.wants(0)) return;
  ContiguousOutput out(call, call.out(0));
  const bool wide = is_wide(out.view());
  RandomParams p = take_numbers(call, out.view().numel(), wide);
  p.p[0] = real_bits(call, lambda);
  draw(call, out.view(), p, wide, "exponential");
  out.finish();
}

void bernoulli_number(OpCall& call) {
  check_outputs(call, OutputTypes::Any);
  const double probability = call.args().real(Arg::p);
  check(probability >= 0 && probability <= 1,
        "bernoulli: probabilities must be between 0 and 1, got {}", probability);
  call.accept();
  if (!call.wants(0)) return;
  ContiguousOutput out(call, call.out(0));
  const bool wide = is_wide(out.view());
  RandomParams p = take_numbers(call, out.view().numel(), wide);
  p.p[0] = units_below(probability, wide);
  draw(call, out.view(), p, wide, "bernoulli");
  out.finish();
}

void bernoulli_from(OpCall& call, TensorView probabilities) {
  const Dims sizes(call.out(0).sizes());
  const Dims strides = broadcast_strides(probabilities.sizes(), probabilities.strides(), sizes);
  call.accept();
  if (!call.wants(0)) return;
  const LocalTensor spread(probabilities.address(), probabilities.dtype(), sizes, strides);
  const Contiguous in(call, spread);
  ContiguousOutput out(call, call.out(0));
  const bool wide = is_wide(out.view());
  const TensorView view = in.view();
  draw(call, out.view(), take_numbers(call, out.view().numel(), wide), wide, "bernoulli_tensor",
       &view);
  out.finish();
}
void bernoulli_self(OpCall& call) {
  check_outputs(call, OutputTypes::Any);
  bernoulli_from(call, call.args().tensor(Arg::self));
}
void bernoulli_tensor(OpCall& call) {
  check_outputs(call, OutputTypes::Any);
  bernoulli_from(call, call.args().tensor(Arg::p));
}

void integers(OpCall& call, int64_t from, uint64_t range) {
  call.accept();
  if (!call.wants(0)) return;
  ContiguousOutput out(call, call.out(0));
  draw_integers(call, out.view(), from, range);
  out.finish();
}

void random_op(OpCall& call) {
  check_outputs(call, OutputTypes::Any);
  integers(call, 0, whole_numbers(call.out(0).dtype()));
}
void random_to(OpCall& call) {
  check_outputs(call, OutputTypes::Any);
  const int64_t to = call.args().integer(Arg::to);
  check(to > 0, "random: to must be positive, got {}", to);
  integers(call, 0, static_cast<uint64_t>(to));
}
void random_from(OpCall& call) {
  check_outputs(call, OutputTypes::Any);
  const int64_t from = call.args().integer(Arg::from);
  const auto to = call.args().optional_integer(Arg::to);
  if (to) {
    check(from < *to, "random: from must be below to, got {} and {}", from, *to);
    return integers(call, from, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from));
  }
  const DType type = call.out(0).dtype();
  const bool everything = type == DType::Int64 && from == INT64_MIN;
  check(everything || from < 0 || static_cast<uint64_t>(from) < whole_numbers(type),
        "random: from {} is outside of the range of {}", from, name(type));
  integers(call, from, everything ? 0 : whole_numbers(type) - static_cast<uint64_t>(from));
}

constexpr int64_t kRun = 4;  // 32-bit numbers of a block: draw.h, RUN

bool moves_as_vectors(TensorView in, TensorView out, TensorView mask) {
  const auto aligned = [](TensorView t) {
    return t.address() % static_cast<uint64_t>(kRun * t.itemsize()) == 0;
  };
  return aligned(in) && aligned(out) && aligned(mask);
}

void dropout_op(OpCall& call) {
  check_outputs(call);
  const TensorView input = call.args().tensor(Arg::input);
  const double p = call.args().real(Arg::p);
  const bool train = call.args().optional_boolean(Arg::train).value_or(true);
  call.accept();
  if (input.numel() == 0) return;
  if (!train) {
    copy_tensor(call, call.out(0), input);
    return copy::fill_tensor(call, call.out(1), true);
  }
  const Contiguous in(call, input);
  ContiguousOutput out(call, call.out(0));
  ContiguousOutput mask(call, call.out(1));
  const bool wide = is_wide(input);
  RandomParams params = take_numbers(call, input.numel(), wide);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  params.p[0] = units_below(p, wide);
  params.p[1] = wide ? slot_bits(scale) : slot_bits(static_cast<float>(scale));
  Defines d;
  d.type(define::A, input.dtype()).set(define::WIDE, wide);
  if (call.caps().style == KernelStyle::Gpu && !wide &&
      moves_as_vectors(in.view(), out.view(), mask.view()))
    d.set(define::VEC, kRun);
  run_draws(call, params, wide, [&](const RandomParams& cut) {
    return call.launch(kernels::random::random_dropout::dropout, d,
                       {.out = out.view(), .mask = mask.view(), .in = in.view(), .p = cut});
  });
  out.finish();
  mask.finish();
}

constexpr elementwise::Formula kMasked{"native_dropout_backward", elementwise::FormulaForm::Vector,
                                       "a * (b * s0)"};

void dropout_backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(Arg::grad_output);
  const TensorView mask = call.args().tensor(Arg::mask);
  const Scalar scale = call.args().real(Arg::scale);
  call.accept();
  const elementwise::ElementwiseInput inputs[] = {{&gradient, 0, false}, {&mask, 0, true}};
  const DType type = gradient.dtype();
  elementwise::launch_elementwise(call, call.out(0),
                                  {&kMasked, compute_type(type), type, false, inputs, {&scale, 1}});
}

constexpr OpEntry kOperators[] = {
    {"uniform.out", uniform_op},
    {"normal.out", normal_op},
    {"exponential.out", exponential_op},
    {"bernoulli.out", bernoulli_self},
    {"bernoulli.float_out", bernoulli_number},
    {"bernoulli.Tensor_out", bernoulli_tensor},
    {"random.out", random_op, false, false, true},
    {"random.to_out", random_to, false, false, true},
    {"random.from_out", random_from, false, false, true},
    {"native_dropout.out", dropout_op},
    {"native_dropout_backward.out", dropout_backward},
};

}  // namespace

RandomParams take_numbers(const OpCall& call, int64_t count, bool wide) {
  const Args& args = call.args();
  const tb_generator handle = args.has(Arg::generator) ? args.generator(Arg::generator) : nullptr;
  Generator& generator =
      handle == nullptr ? call.device().default_generator() : *reinterpret_cast<Generator*>(handle);
  const bool is_recording = call.stream().is_recording();
  if (is_recording && !generator.is_marked())
    fail(TB_E_STATE,
         "a graph is being recorded without this generator: register it with the graph before the "
         "recording begins");
  if (!is_recording && generator.is_marked())
    fail(TB_E_STATE, "a graph that is being recorded on another stream uses this generator");
  const auto words = static_cast<uint64_t>(count) * (wide ? 2 : 1);
  const Generator::State state =  // a dry run takes none
      generator.advance(DryRun::is_on() ? 0 : (words + 3) / 4);
  RandomParams p{};
  p.seed = state.seed;
  p.offset = state.offset;
  p.count = count;
  return p;
}

namespace {

struct Draws {
  const RandomParams& params;
  bool wide;
  const DrawLaunch& launch;
};

// Runs over the counter's blocks, divided among work-items as kernels/include/draw.h expects.
void run_blocks(const OpCall& call, const Draws& draws) {
  RandomParams p = draws.params;
  const int64_t run = (draws.wide ? kRun / 2 : kRun) * by_style(call, 16, 1);
  p.chunks = (p.count + run - 1) / run;
  const Division division = divide(call.caps(), p.chunks, 64);
  p.per_item = division.per_item;
  draws.launch(p).run(division.global, division.local);
}

constinit const AlgorithmFor<Draws> kBlocks(
    {.id = "random.philox",
     .description = "Philox4x32-10, blocks of the counter side by side",
     .last_resort = true},
    Steps<takes_all<Draws>, run_blocks>());

struct Traits {
  static std::string describe(const OpCall& call, const Draws& draws) {
    return fmt::format("{} {} numbers", call.name(), draws.params.count);
  }
};
using Algorithms = AlgorithmList<Draws, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("random", random_operators(), {&kBlocks});  // leaked
  return list;
}

}  // namespace

void run_draws(const OpCall& call, const RandomParams& p, bool wide, const DrawLaunch& launch) {
  algorithms().run(call, {p, wide, launch});
}

const AlgorithmFamily& random_algorithms() { return algorithms().family(); }

uint64_t real_bits(const OpCall& call, double value) {
  return call.caps().fp64 ? slot_bits(value) : slot_bits(static_cast<float>(value));
}

uint64_t units_below(double probability, bool wide) {
  return static_cast<uint64_t>(std::ceil(std::ldexp(probability, wide ? 53 : 24)));
}

void draw_integers(const OpCall& call, TensorView out, int64_t from, uint64_t range) {
  const bool wide = range == 0 || range > uint64_t{1} << 32;
  RandomParams p = take_numbers(call, out.numel(), wide);
  p.p[0] = range;
  p.p[1] = static_cast<uint64_t>(from);
  draw(call, out, p, wide, "integers");
}

std::span<const OpEntry> random_operators() { return kOperators; }

}  // namespace ocltensor::opencl::random
