// Cases of the rnn family: cells of recurrent layers.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

constexpr const char* kWhy =
    "functions of a few ulp, products of up to five of their results, sums of three terms";
constexpr const char* kWhySums =
    "a bias's gradient adds up such products, which were rounded to the type: one may be rounded "
    "the other way";

// An eps of the type, in those of the type it computes with.
double eps_of(DType dtype) {
  return dtype == DType::Float16 ? 0x1p13 : dtype == DType::BFloat16 ? 0x1p16 : 1;
}

bool accepts(const Operator&, DType dtype) { return is_floating(dtype); }

struct Maker {
  Case c;
  Draw& draw;
  DType dtype;
  int64_t rows, hidden;

  void state(const char* name, int64_t gates = 1) {
    c.set(name, draw.tensor(dtype, {rows, gates * hidden}, {-3, 3, 0, false, false}));
  }
  void cell(const char* old, int64_t gates) {
    state("input_gates", gates);
    state("hidden_gates", gates);
    state(old);
    if (!draw.rng.chance(0.5)) return;
    for (const char* name : {"input_bias", "hidden_bias"})
      c.set(name, draw.tensor(dtype, {gates * hidden}, {-1, 1, 0, false, false}));
  }
  // The results of gates: between 0 and 1, which those of tanh are taken from, too.
  void backward(int64_t parts) {
    c.set("workspace", draw.tensor(dtype, {rows, parts * hidden}, {0.05, 0.95, 0, false, false}));
    c.set("has_bias", Scalar(draw.rng.chance(0.5)));
  }
};

Case make(const Operator& op, DType dtype, Draw& draw) {
  const bool large = draw.size_mode() == SizeMode::Large;
  const int64_t rows = draw.extent(large ? 60 : 9, true);
  const int64_t hidden = draw.extent(large ? 300 : 40, true);
  Maker m{make_case(op, dtype), draw, dtype, rows, hidden};
  const bool lstm = op.schema.name.find("lstm") != std::string_view::npos;
  const bool backward = op.schema.name.find("backward") != std::string_view::npos;
  if (!backward) {
    m.cell(lstm ? "cx" : "hx", lstm ? 4 : 3);
  } else if (lstm) {
    const int64_t which = draw.rng.range(0, 3);
    if (which != 1) m.state("grad_hy");
    if (which != 2) m.state("grad_cy");
    m.state("cx");
    m.state("cy");
    m.backward(4);
  } else {
    m.state("grad_hy");
    m.backward(5);
  }
  // Numbers below 3, with products of three of them.
  const Tolerance t{Scale::Inputs, 8, 1, backward ? 2 : 1, nullptr, kWhy};
  const Tolerance sums{Scale::Inputs,
                       std::max(8.0, eps_of(dtype) / 4),
                       static_cast<double>(std::max<int64_t>(1, rows)),
                       2,
                       nullptr,
                       kWhySums};
  const size_t outs = op.schema.outputs.size();
  m.c.tolerance.assign(outs, t);
  if (backward)
    for (size_t i = lstm ? 2 : 3; i < outs; ++i) m.c.tolerance[i] = sums;
  return std::move(m.c);
}

}  // namespace

const FamilyCases& rnn_cases() {
  static constexpr FamilyCases kCases = {"rnn", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
