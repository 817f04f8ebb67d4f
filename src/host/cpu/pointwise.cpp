// Pointwise operators: the formulas of pointwise.def, compiled over chunks of double or int64_t.
#include "base/pointwise.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <string_view>

#include "call.h"
#include "special.h"

namespace ocltensor::cpu {
namespace {

constexpr int64_t kChunk = 1024;

template <typename T>
struct Chunk {
  alignas(64) T in[kMaxOperands][kChunk];
  alignas(64) T out[kChunk];
  T parameters[kMaxParameters];
  Limits limits;  // of the result type
  DType type;     // the result type
};

template <typename T>
using RowFunction = void (*)(Chunk<T>&, int64_t);

struct RowFunctions {
  RowFunction<double> on_double = nullptr;
  RowFunction<int64_t> on_int = nullptr;
};

constexpr bool takes_double(TypeRule rule) {
  return rule != TypeRule::Integral && rule != TypeRule::IntegerOnly;
}
constexpr bool takes_int(TypeRule rule) {
  return rule != TypeRule::Float && rule != TypeRule::FloatOnly;
}

// The row functions of the types that the rule admits: the formula need not compile for others.
template <TypeRule rule, typename F>
RowFunctions row_functions(F) {
  RowFunctions functions;
  if constexpr (takes_double(rule))
    functions.on_double = [](Chunk<double>& c, int64_t n) {
      F{}.template operator()<double>(c, n);
    };
  if constexpr (takes_int(rule))
    functions.on_int = [](Chunk<int64_t>& c, int64_t n) { F{}.template operator()<int64_t>(c, n); };
  return functions;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#define OCLTENSOR_LOOP(...)                                           \
  []<typename T>(Chunk<T>& chunk, int64_t count) {                    \
    const T s0 = chunk.parameters[0], s1 = chunk.parameters[1];       \
    const T s2 = chunk.parameters[2], s3 = chunk.parameters[3];       \
    const Limits limits = chunk.limits;                               \
    const DType type = chunk.type;                                    \
    for (int64_t i = 0; i < count; ++i) {                             \
      const T a = chunk.in[0][i], b = chunk.in[1][i];                 \
      const T c = chunk.in[2][i], d = chunk.in[3][i];                 \
      (void)a, (void)b, (void)c, (void)d;                             \
      chunk.out[i] = static_cast<T>(__VA_ARGS__);                     \
    }                                                                 \
    (void)s0, (void)s1, (void)s2, (void)s3, (void)limits, (void)type; \
  }

// A row of base/pointwise.def at compile time.
struct RowRule {
  std::string_view name;
  TypeRule rule;
};
constexpr std::string_view name_of(std::string_view schema) {
  return schema.substr(0, schema.find('('));
}
constexpr RowRule kRows[] = {
#define OCLTENSOR_POINTWISE(rule, schema, ...) {name_of(schema), TypeRule::rule},
#define OCLTENSOR_POINTWISE_VARIANT(rule, name) {name, TypeRule::rule},
#include "base/pointwise.def"
#undef OCLTENSOR_POINTWISE
#undef OCLTENSOR_POINTWISE_VARIANT
};

// The row's position, which is also that in pointwise_rows(). Without a row of that name the call
// does not compile.
consteval size_t row_named(std::string_view name) {
  size_t i = 0;
  while (kRows[i].name != name) ++i;
  return i;
}

constexpr std::array kFormulaRows = {
#define OCLTENSOR_CPU_FORMULA(name, ...) row_named(name),
#include "pointwise.def"
#undef OCLTENSOR_CPU_FORMULA
};
consteval bool has_formula(size_t row) { return std::ranges::count(kFormulaRows, row) == 1; }
consteval bool have_formulas() {
  for (size_t row = 0; row < std::size(kRows); ++row)
    if (!has_formula(row)) return false;
  return true;
}
static_assert(have_formulas(), "each row of base/pointwise.def has one formula in pointwise.def");

const RowFunctions& functions_of(const PointwiseRow& row) {
  static const auto functions = [] {
    std::array<RowFunctions, std::size(kRows)> table;
#define OCLTENSOR_CPU_FORMULA(name, ...) \
  table[row_named(name)] = row_functions<kRows[row_named(name)].rule>(OCLTENSOR_LOOP(__VA_ARGS__));
#include "pointwise.def"
#undef OCLTENSOR_CPU_FORMULA
    return table;
  }();
  return functions[row.index];
}
#pragma GCC diagnostic pop

Limits limits_of(DType type) {
  switch (type) {
    case DType::Float16: return {-65504.0, 65504.0};
    case DType::BFloat16: return {-0x1.fep127, 0x1.fep127};
    case DType::Float32: return {-FLT_MAX, FLT_MAX};
    default: return {-DBL_MAX, DBL_MAX};
  }
}

// The type that an operand, stored as `stored`, is rounded to before the formula.
DType rounding(const PointwiseCall& call, bool is_condition, DType stored) {
  if (is_condition) return DType::Int64;
  if (call.rule == TypeRule::MaskedFill) return call.result;
  if (stored == call.compute || compute_type(stored) == call.compute) return DType::Float64;
  return call.compute;
}

template <typename T>
void convert(T* values, int64_t count, DType type) {
  if (type == DType::Float64 || type == DType::Int64) return;
  for (int64_t i = 0; i < count; ++i) values[i] = rounded(values[i], type);
}

template <typename T>
void fill_constants(const PointwiseCall& call, const Args& args, Chunk<T>& chunk) {
  for (auto& values : chunk.in) std::fill_n(values, kChunk, T(0));
  for (int k = 0; k < call.operand_count; ++k) {
    const auto& operand = call.operands[k];
    if (!operand.is_number) continue;
    T value = number<T>(operand.value);
    if (!args.is_none(operand.argument))
      convert(&value, 1, rounding(call, operand.is_condition, DType::Float64));
    std::fill_n(chunk.in[k], kChunk, value);
  }
  for (int k = 0; k < call.parameter_count; ++k) {
    chunk.parameters[k] = number<T>(call.parameters[k]);
    if (call.rule == TypeRule::MaskedFill || call.compute == DType::Float32)
      convert(&chunk.parameters[k], 1,
              call.rule == TypeRule::MaskedFill ? call.result : call.compute);
  }
  chunk.limits = limits_of(call.result);
  chunk.type = call.result;
}

template <typename T>
void run(const PointwiseCall& call, const Args& args, const View& out, RowFunction<T> function) {
  std::vector<View> views{out};
  std::vector<Dims> strides{out.strides};
  std::vector<int> slots;
  std::vector<DType> conversions;
  for (int k = 0; k < call.operand_count; ++k) {
    if (call.operands[k].is_number) continue;
    const View view = View(args.tensor(call.operands[k].argument)).broadcast_to(out.sizes);
    views.push_back(view);
    strides.push_back(view.strides);
    slots.push_back(k);
    conversions.push_back(rounding(call, call.operands[k].is_condition, view.type));
  }
  const IterationSpace space = make_iteration(out.sizes, strides);
  static thread_local Chunk<T> chunk;
  fill_constants(call, args, chunk);

  struct Segment {
    int64_t offset;
    int64_t count;
  };
  std::vector<Segment> segments;  // of the output, not yet stored
  int64_t filled = 0;
  const auto flush = [&] {
    for (size_t k = 0; k < slots.size(); ++k) convert(chunk.in[slots[k]], filled, conversions[k]);
    function(chunk, filled);
    // A result is rounded (an integer wraps) in the result type before it is converted to another
    // output type.
    if (out.type != call.result) convert(chunk.out, filled, call.result);
    int64_t done = 0;
    for (const Segment& s : segments) {
      store(out.at(s.offset), out.type, space.strides[0][0], chunk.out + done, s.count);
      done += s.count;
    }
    segments.clear();
    filled = 0;
  };
  for_each_run(space, [&](const int64_t* at, int64_t length) {
    for (int64_t start = 0; start < length;) {
      const int64_t count = std::min(length - start, kChunk - filled);
      for (size_t k = 1; k < views.size(); ++k) {
        const int64_t step = space.strides[k][0];
        load(chunk.in[slots[k - 1]] + filled, views[k].at(at[k] + start * step), views[k].type,
             step, count);
      }
      segments.push_back({at[0] + start * space.strides[0][0], count});
      filled += count;
      start += count;
      if (filled == kChunk) flush();
    }
  });
  if (filled > 0) flush();
}

}  // namespace

void run_pointwise(const CpuCall& call) {
  const PointwiseCall resolved = resolve_pointwise(call.args);
  const RowFunctions& functions = functions_of(*resolved.row);
  if (computes_in_double(resolved.compute))
    run<double>(resolved, call.args, call.out(0), functions.on_double);
  else
    run<int64_t>(resolved, call.args, call.out(0), functions.on_int);
}

// Each is run by run_pointwise(), by its formula.
std::span<const CpuOperator> pointwise_operators() { return {}; }

}  // namespace ocltensor::cpu
