// Products of a few rows, whose time is that of reading the weight: kernels that unpack it in
// registers.
#include "call/divide_up.h"
#include "call/division.h"
#include "kernels/quantised.h"
#include "quantised.h"

namespace ocltensor::opencl::quantised {
namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kItems = 256;  // ITEMS of decode_gpu.cl

const char* refuse(const OpCall&, const Product& p) { return refuse_decode(p); }
const char* refuse_gpu(const OpCall& call, const Product& p) {
  if (call.caps().max_work_group_size < static_cast<size_t>(kItems))
    return "work-groups are too small";
  return refuse_decode(p);
}

int64_t rows_of(const Product& p) {
  int64_t rows = 1;
  while (rows < p.m()) rows *= 2;
  return rows;
}

void run_cpu(const OpCall& call, const Product& p) {
  QuantisedParams params = decode_params(p);
  const Division division = divide_rows(p, params);
  launch_decode(call, p, kernels::quantised::decode_cpu::decode, decode_defines(call, p), params,
                division);
}

// How many work-items share rows of the weight: as many as these have units for, until the device
// is full.
int64_t lanes_of(const OpCall& call, const Product& p, int64_t columns) {
  const int64_t full = 1024 * static_cast<int64_t>(call.caps().compute_units);
  const int64_t teams = divide_up(p.weight.n, columns);
  int64_t lanes = 8;
  while (lanes < kItems && 2 * lanes * p.weight.format->unit <= p.weight.k &&
         (lanes < 32 || teams * lanes < full))
    lanes *= 2;
  return lanes;
}
void run_gpu(const OpCall& call, const Product& p) {
  const int64_t columns = rows_of(p) <= 2 && p.weight.format->unit == 32 ? 2 : 1;
  const int64_t lanes = lanes_of(call, p, columns);
  const int64_t groups = divide_up(p.weight.n, kItems / lanes * columns);
  Defines d = decode_defines(call, p);
  d.set(define::COLS, columns).set(define::LANES, lanes);
  launch_decode(call, p, kernels::quantised::decode_gpu::decode, d, decode_params(p),
                {.global = {groups * kItems, 1, 1}, .local = {kItems, 1, 1}});
}

}  // namespace

const char* refuse_decode(const Product& p) {
  if (p.m() > kMostRows) return "more than 8 rows";
  if (p.weight.format->layout == WeightLayout::Flat && !has_whole_rows(p.weight))
    return "rows do not begin with units";
  return nullptr;
}

QuantisedParams decode_params(const Product& p) {
  QuantisedParams params = weight_params(p.weight);
  params.m = p.m();
  params.x_row = p.x_row();
  params.bias_step = p.bias ? p.bias->stride(0) : 0;
  return params;
}

Defines decode_defines(const OpCall& call, const Product& p) {
  Defines d = weight_defines(call, p.weight, has_whole_rows(p.weight));
  const bool aligned = p.x.address() % 16 == 0 && p.x_row() * p.x.itemsize() % 16 == 0;
  d.type(define::TYPE, p.x.dtype())
      .set(define::ROWS, rows_of(p))
      .set(define::HAS_BIAS, p.bias.has_value());
  return d.set(define::X_ALIGNED, by_style(call, false, aligned));
}

Division divide_rows(const Product& p, QuantisedParams& params) {
  constexpr int64_t kWidth = 8, kWorkItems = 64;  // rows at a time, at most
  params.per_item = divide_up(divide_up(p.weight.n, kWorkItems), kWidth) * kWidth;
  return {.global = {divide_up(p.weight.n, params.per_item), 1, 1}};
}

constinit const AlgorithmFor<Product> kDecodeCpu(
    {.id = "quantised.decode_rows",
     .description = "few rows of x: a work-item takes rows of the weight",
     .style = DeviceStyle::Cpu},
    Steps<refuse, run_cpu>());
constinit const AlgorithmFor<Product> kDecodeGpu(
    {.id = "quantised.decode_teams",
     .description = "few rows of x: work-items share rows of the weight",
     .style = DeviceStyle::Gpu},
    Steps<refuse_gpu, run_gpu>());

}  // namespace ocltensor::opencl::quantised
