// Products of a few rows, whose time is that of reading the weight: kernels that unpack it in
// registers.
#include <algorithm>
#include <bit>
#include <string_view>

#include "call/divide_up.h"
#include "call/division.h"
#include "kernels/quantised.h"
#include "quantised.h"

namespace ocltensor::opencl::quantised {
namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kItems = 128;  // of a work-group of decode_gpu.cl, at most

const char* refuse(const OpCall&, const Product& p) { return refuse_decode(p); }
const char* refuse_gpu(const OpCall& call, const Product& p) {
  if (call.caps().max_work_group_size < static_cast<size_t>(kItems))
    return "work-groups are too small";
  return refuse_decode(p);
}

// By kernels whose work-items take rows of the weight.
template <typename Arguments>
void run_by_rows(const OpCall& call, const Product& p, const KernelOf<Arguments>& kernel) {
  QuantisedParams params = decode_params(p);
  const Division division = divide_rows(p, params);
  launch_decode(call, p, kernel, decode_defines(call, p).set(define::ROWS, decode_rows(p)), params,
                division);
}
void run_cpu(const OpCall& call, const Product& p) {
  run_by_rows(call, p, kernels::quantised::decode_cpu::decode);
}

// decode_blocks.cl: the formats whose blocks it knows, and the rows of x that it takes.
constexpr std::string_view kOfBlocks[] = {"q2_k", "q3_k", "q4_k", "q5_k", "q6_k"};
constexpr int64_t kMostRowsOfBlocks = 2;

const char* refuse_blocks(const OpCall&, const Product& p) {
  if (p.m() > kMostRowsOfBlocks) return "more than 2 rows";
  if (std::ranges::find(kOfBlocks, p.weight.format->name) == std::end(kOfBlocks))
    return "weights that are not in GGUF's blocks of 256 elements";
  return refuse_decode(p);
}

void run_blocks(const OpCall& call, const Product& p) {
  run_by_rows(call, p, kernels::quantised::decode_blocks::decode);
}

// How GPUs divide a product: defines of decode_gpu.cl.
struct Teams {
  int64_t x_rows, columns, depth;
  bool shared_x;
  int64_t items = 128, lanes = 4, pieces = 8, chunk = 0;

  int64_t share() const { return lanes * pieces; }
  int64_t step() const { return share() * depth; }
  int64_t rows() const { return items / share() * columns; }  // of the weight
};

// One row of x is read where it is: its conversion costs less than a copy to local memory for each
// work-group. More rows are shared, and each of their numbers by several rows of the weight. What a
// work-item takes at once is bound by its registers, which large units, and units that may be cut,
// need for themselves.
Teams form_of(const OpCall& call, const Product& p) {
  const bool large = call.caps().large_register_tiles();
  const int64_t rows = decode_rows(p), unit = p.weight.format->unit;
  if (unit > 64 || (unit > 32 && !large)) return {1, 1, 1, false};
  if (unit > 32 || !large || !has_whole_rows(p.weight)) return {rows, 1, 1, rows > 1};
  if (rows == 1) return {1, 2, 2, false};
  return {rows, 2, 1, true};
}

// Bytes of local memory: x, or the sums that are combined at once; sums of x; codes.
int64_t local_bytes(const Teams& t, const WeightFormat& f) {
  const int64_t x = t.shared_x ? t.x_rows * t.chunk * f.unit : 0;
  const int64_t sums = t.items * t.x_rows * (t.x_rows * t.columns > 8 ? 1 : t.columns);
  return 4 * (std::max(x, sums) + x / f.span + 16);
}

Teams teams_of(const OpCall& call, const Product& p) {
  constexpr int64_t kLocalBytes = 17 << 10, kFloats = 4096;  // 16 KiB of x and what belongs to it
  const WeightFormat& f = *p.weight.format;
  const int64_t units = std::max<int64_t>(divide_up(p.weight.k, f.unit), 1);
  Teams t = form_of(call, p);
  while (t.depth > 1 && t.step() > units) t.depth /= 2;
  // Few rows of the weight are divided further along k, as far as it goes.
  const auto groups = [&] { return divide_up(p.weight.n, t.rows()); };
  while (t.share() < t.items && 2 * t.step() <= units && groups() < call.caps().compute_units)
    t.pieces *= 2;
  const auto most = std::min<int64_t>(static_cast<int64_t>(call.caps().local_memory), kLocalBytes);
  const auto fits = [&] {
    const int64_t steps = std::max<int64_t>(kFloats / (t.x_rows * f.unit) / t.step(), 1);
    t.chunk = std::min(steps, divide_up(units, t.step())) * t.step();
    return local_bytes(t, f) <= most;
  };
  while (!fits() && t.pieces > 1) t.pieces /= 2;
  while (!fits() && t.items > t.share()) t.items /= 2;
  return t;
}

// Whether neighbouring units of a work-item have one scale and zero.
bool has_same_scales(const QuantisedWeight& w, int64_t depth) {
  const int64_t neighbours = depth * w.format->unit;
  if (depth == 1 || w.format->scales == WeightScales::Within) return false;
  return w.group % neighbours == 0 && (w.k % neighbours == 0 || w.group == w.k);
}

void run_gpu(const OpCall& call, const Product& p) {
  const Teams t = teams_of(call, p);
  const int64_t units = divide_up(p.weight.k, p.weight.format->unit);
  const int64_t groups = divide_up(p.weight.n, t.rows());
  Defines d = decode_defines(call, p).set(define::ROWS, t.x_rows);
  d.set(define::ITEMS, t.items).set(define::LANES, t.lanes).set(define::PIECES, t.pieces);
  d.set(define::COLS, t.columns).set(define::DEPTH, t.depth).set(define::CHUNK, t.chunk);
  d.set(define::SHARED_X, t.shared_x);
  d.set(define::SAME_SCALES, has_same_scales(p.weight, t.depth));
  d.set(define::ALL_UNITS, has_whole_rows(p.weight) && units % t.step() == 0);
  launch_decode(
      call, p, kernels::quantised::decode_gpu::decode, d, decode_params(p),
      {.global = {groups * t.items, divide_up(p.m(), t.x_rows), 1}, .local = {t.items, 1, 1}});
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

int64_t decode_rows(const Product& p) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(p.m())));
}

Defines decode_defines(const OpCall& call, const Product& p) {
  Defines d = weight_defines(call, p.weight, has_whole_rows(p.weight));
  const bool aligned = p.x.address() % 16 == 0 && p.x_row() * p.x.itemsize() % 16 == 0;
  d.type(define::TYPE, p.x.dtype()).set(define::HAS_BIAS, p.bias.has_value());
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
constinit const AlgorithmFor<Product> kDecodeBlocks(
    {.id = "quantised.decode_blocks",
     .description = "1 or 2 rows of x, blocks of 256 elements: a block's scales are made at once",
     .style = DeviceStyle::Cpu},
    Steps<refuse_blocks, run_blocks>());
constinit const AlgorithmFor<Product> kDecodeGpu(
    {.id = "quantised.decode_teams",
     .description = "few rows of x: work-items share rows of the weight",
     .style = DeviceStyle::Gpu},
    Steps<refuse_gpu, run_gpu>());

}  // namespace ocltensor::opencl::quantised
