// Rows of problems.def as calls of operators.
#include "problems.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "work.h"

namespace ocltensor::opencl::tuning {
namespace {

tb_value value(const TensorView& tensor) { return {TB_TENSOR, 0, {.p = &tensor.raw()}}; }
tb_value value(bool flag) { return {TB_BOOL, 0, {.i = flag}}; }
tb_value value(int64_t number) { return {TB_INT, 0, {.i = number}}; }
tb_value value(double number) { return {TB_FLOAT, 0, {.f = number}}; }
tb_value list_value(std::span<const int64_t> list) {
  return {TB_INT_LIST, static_cast<uint32_t>(list.size()), {.p = list.data()}};
}
constexpr tb_value kNone{TB_NONE, 0, {.p = nullptr}};

// ---- Products

enum Layout : int64_t { NN, NT, TN };
constexpr const char* kLayouts[] = {"", " NT", " TN"};

TensorView matrices(Work& work, DType type, int64_t batch, int64_t rows, int64_t columns,
                    bool by_columns) {
  const Dims sizes = batch == 1 ? Dims{rows, columns} : Dims{batch, rows, columns};
  Dims strides = contiguous_strides(sizes);
  if (by_columns) {
    strides[sizes.size() - 2] = 1;
    strides[sizes.size() - 1] = rows;
  }
  return work.random(type, sizes, strides);
}

void product(Work& work, const Problem& p, const Policy& policy) {
  const auto [batch, m, n, k, layout, a5, a6, a7] = p.sizes;
  const TensorView a = matrices(work, p.dtype, batch, m, k, layout == TN);
  const TensorView b = matrices(work, p.dtype, batch, k, n, layout == NT);
  const tb_value arguments[] = {value(a), value(b)};
  work.call(batch == 1 ? "mm.out" : "bmm.out", arguments, policy);
}

// ---- Convolutions

enum Direction : int64_t { Forward, Data, Weight };
constexpr const char* kDirections[] = {"forward", "data", "weight"};

void convolution(Work& work, const Problem& p, const Policy& policy) {
  const auto [batch, channels, results, size, window, stride, groups, direction] = p.sizes;
  const int64_t padding = window / 2, out = (size + 2 * padding - window) / stride + 1;
  const TensorView input = work.random(p.dtype, {batch, channels, size, size});
  const TensorView weight = work.random(p.dtype, {results, channels / groups, window, window});
  const int64_t strides[] = {stride, stride}, pads[] = {padding, padding}, ones[] = {1, 1},
                zeros[] = {0, 0};
  if (direction == Forward) {
    const tb_value arguments[] = {value(input),        value(weight),     kNone,
                                  list_value(strides), list_value(pads),  list_value(ones),
                                  value(false),        list_value(zeros), value(groups)};
    work.call("convolution.out", arguments, policy);
    return;
  }
  const TensorView grad = work.random(p.dtype, {batch, results, out, out});
  const uint8_t mask[] = {direction == Data, direction == Weight, 0};
  const tb_value arguments[] = {value(grad),
                                value(input),
                                value(weight),
                                kNone,
                                list_value(strides),
                                list_value(pads),
                                list_value(ones),
                                value(false),
                                list_value(zeros),
                                value(groups),
                                {TB_BOOL_LIST, 3, {.p = mask}}};
  work.call("convolution_backward.out", arguments, policy);
}

// ---- Attention

constexpr std::string_view kAttention = "_scaled_dot_product_fused_attention_overrideable.out";
constexpr std::string_view kGradients =
    "_scaled_dot_product_fused_attention_overrideable_backward.out";

void attention(Work& work, const Problem& p, const Policy& policy) {
  const auto [batch, heads, queries, keys, depth, causal, backward, a7] = p.sizes;
  const TensorView q = work.random(p.dtype, {batch, heads, queries, depth});
  const TensorView k = work.random(p.dtype, {batch, heads, keys, depth});
  const TensorView v = work.random(p.dtype, {batch, heads, keys, depth});
  const tb_value none = kNone, zero = value(int64_t{0}), no_dropout = value(0.0),
                 mask = value(causal != 0);
  const tb_value forward[] = {value(q), value(k), value(v), none, no_dropout,
                              mask,     none,     zero,     zero};
  const auto outs = work.call(kAttention, forward, backward != 0 ? opencl::policy() : policy);
  if (backward == 0) return;
  const TensorView grad = work.random(p.dtype, {batch, heads, queries, depth});
  const tb_value gradients[] = {value(grad), value(q),       value(k),       value(v),
                                none,        value(outs[0]), value(outs[1]), no_dropout,
                                mask,        none,           zero,           zero};
  work.call(kGradients, gradients, policy);
}

// ---- The table

struct Product {
  int64_t quick, batch, m, n, k, layout;
};
struct Convolution {
  int64_t quick, batch, channels, results, size, window, stride, groups;
};
struct Attention {
  int64_t quick, batch, heads, queries, keys, depth, causal;
};
constexpr DType kTypes[] = {DType::Float32, DType::Float16, DType::BFloat16};

class Table {
 public:
  void add(const Product& r) {
    for (const DType type : kTypes)
      rows.push_back(
          {"matmul",
           type,
           r.quick != 0,
           product_of({2, r.batch, r.m, r.n, r.k}),
           fmt::format("{}{} x {} x {}{}", r.batch == 1 ? "" : fmt::format("{} of ", r.batch), r.m,
                       r.n, r.k, kLayouts[r.layout]),
           product,
           {r.batch, r.m, r.n, r.k, r.layout}});
  }
  void add(const Convolution& r) {
    const int64_t out = (r.size - 1) / r.stride + 1;  // windows are odd
    for (const DType type : kTypes)
      for (const int64_t direction : {Forward, Data, Weight})
        rows.push_back(
            {"conv",
             type,
             r.quick != 0,
             product_of(
                 {2, r.batch, r.results, r.channels / r.groups, r.window, r.window, out, out}),
             fmt::format("{} of {} x {} x {} x {}, {} of {} x {}{}{}", kDirections[direction],
                         r.batch, r.channels, r.size, r.size, r.results, r.window, r.window,
                         r.stride == 1 ? "" : fmt::format(", stride {}", r.stride),
                         r.groups == 1 ? "" : fmt::format(", {} groups", r.groups)),
             convolution,
             {r.batch, r.channels, r.results, r.size, r.window, r.stride, r.groups, direction}});
  }
  void add(const Attention& r) {
    for (const DType type : kTypes)
      for (const int64_t backward : {0, 1})
        rows.push_back({backward != 0 ? "attention_backward" : "attention_forward",
                        type,
                        r.quick != 0,
                        product_of({4, r.batch, r.heads, r.queries, r.keys, r.depth}),
                        fmt::format("{} x {} heads, {} queries, {} keys of {}{}", r.batch, r.heads,
                                    r.queries, r.keys, r.depth, r.causal != 0 ? ", causal" : ""),
                        attention,
                        {r.batch, r.heads, r.queries, r.keys, r.depth, r.causal, backward}});
  }
  std::vector<Problem> rows;

 private:
  static double product_of(std::initializer_list<int64_t> factors) {
    double product = 1;
    for (const int64_t f : factors) product *= static_cast<double>(f);
    return product;
  }
};

std::vector<Problem> read_table() {
  Table table;
#define OCLTENSOR_TUNING_PRODUCT(...) table.add(Product{__VA_ARGS__});
#define OCLTENSOR_TUNING_CONVOLUTION(...) table.add(Convolution{__VA_ARGS__});
#define OCLTENSOR_TUNING_ATTENTION(...) table.add(Attention{__VA_ARGS__});
#include "problems.def"
#undef OCLTENSOR_TUNING_PRODUCT
#undef OCLTENSOR_TUNING_CONVOLUTION
#undef OCLTENSOR_TUNING_ATTENTION
  return table.rows;
}

}  // namespace

std::span<const Problem> problems() {
  static const auto& table = *new std::vector<Problem>(read_table());  // leaked: see tuning.cpp
  return table;
}

const char* refusal(const Problem& problem, const Device& device) {
  constexpr double kMostOnProcessors = 2e10;  // seconds for each of dozens of choices
  if (device.caps().style == KernelStyle::Cpu && problem.operations > kMostOnProcessors)
    return "it takes a processor too long";
  return nullptr;
}

void tune_problem(Device& device, const Problem& problem, bool quick) {
  Policy tuning = policy();
  tuning.tuning = quick ? Tuning::Quick : Tuning::Full;
  tuning.deterministic = tuning.immediate = tuning.default_choice = false;
  tuning.keep = true;
  Work work(device);
  problem.run(work, problem, tuning);
}

}  // namespace ocltensor::opencl::tuning
