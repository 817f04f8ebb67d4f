// Products of some rows of x with a quantised weight, unpacked in registers into left matrices of
// mma.sync: kernels/nvidia_mma/quantised/rows.cl.
#include "rows.h"

#include <bit>

#include "call/divide_up.h"
#include "call/proofs.h"
#include "kernels/nvidia_mma/quantised.h"
#include "nvidia_mma/generation.h"
#include "nvidia_mma/provider.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using quantised::Product;

constexpr int64_t kMostRows = 32;  // of x
constexpr int64_t kMostItems = 512;

bool has_row_scales(const QuantisedWeight& w) {
  return w.format->scales == WeightScales::Apart && w.format->layout != WeightLayout::Flat &&
         w.group == w.k;
}

// Of four neighbouring units, how many scales they have.
int64_t spread_of(const QuantisedWeight& w) {
  if (w.format->scales == WeightScales::Within) return 4;
  if (has_row_scales(w)) return 1;
  for (const int64_t units : {4, 2}) {
    const int64_t elements = units * w.format->unit;
    if (w.group % elements == 0 && w.k % elements == 0) return 4 / units;
  }
  return 4;
}

// As measured on an H200 (bench/history.md). Many: so many tiles of 16 rows that compute units have
// some of them each.
size_t form_for(const OpCall& call, const Product& p, int64_t spread) {
  constexpr int64_t kLong = 8192;
  const int64_t units = call.caps().compute_units, tiles = divide_up(p.weight.n, int64_t{16});
  const bool many = tiles >= 5 * units;
  const bool large = p.weight.format->unit > 64;  // two of which take all registers
  if (p.m() > 8 && !large) return many ? 4 : 5;
  if (spread == 4) return 3;
  if (many && spread == 1) return 0;
  return !many && p.weight.k >= kLong ? 2 : 1;
}

QuantisedRows variant_for(const OpCall& call, const Product& p) {
  const int64_t tiles = divide_up(p.m(), int64_t{8}), spread = spread_of(p.weight);
  QuantisedRows v{.format = p.weight.format,
                  .type = p.x.dtype(),
                  .form = form_for(call, p, spread),
                  .x_tiles = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tiles))),
                  .spread = spread,
                  .x_columns = p.m() <= 2   ? 4
                               : p.m() <= 4 ? 2
                                            : 1,
                  .same_scales = has_row_scales(p.weight)};
  v.all_units = p.weight.k / p.weight.format->unit % v.units_of_step() == 0;
  return v;
}

Defines defines_of(const OpCall& call, const Product& p, const QuantisedRows& v) {
  const RowsForm& form = v.division();
  Defines d = quantised::decode_defines(call, p);
  d.set(define::ITEMS, form.items).set(define::PIECES, form.pieces);
  d.set(define::X_TILES, v.x_tiles).set(define::W_TILES, form.w_tiles);
  d.set(define::SPREAD, v.spread).set(define::COLS, v.columns());
  d.set(define::CONTIGUOUS, form.contiguous).set(define::WINDOW, v.window());
  d.set(define::SAME_SCALES, v.same_scales).set(define::ALL_UNITS, v.all_units);
  d.set(define::ZEROS, p.weight.format->zero == WeightZero::Subtracted);
  d.set(define::GENERATION, generation(call.caps()));
  return d.set(define::EMULATED, nvidia::facts(call.caps()).emulated_mma);
}

const char* refuse(const OpCall& call, const Product& p) {
  if (p.m() > kMostRows) return "more than 32 rows";
  if (p.x.dtype() == DType::Float32) return "float32 is not a type of the matrix units";
  if (p.x.dtype() == DType::BFloat16 && generation(call.caps()) < 80)
    return "bfloat16 needs compute capability 8.0";
  if (p.x.dtype() == DType::Float16 && p.weight.format->zero == WeightZero::Codes)
    return "codes may be beyond float16";
  if (!quantised::has_whole_rows(p.weight)) return "rows are not of whole units";
  if (p.x.address() % 16 != 0 || p.x_row() % 8 != 0) return "rows of x are not aligned";
  if (p.weight.k == 0) return "nothing to sum";
  return call.caps().max_work_group_size < kMostItems ? "work-groups are too small" : nullptr;
}

const char* pass_over(const OpCall&, const Product& p) {
  // Blocks of 18, 34 and 210 bytes are read 2 bytes at a time.
  return p.m() == 1 && p.weight.format->align < 16 ? "one row waits for loads of the weight"
                                                   : nullptr;
}

Planned<QuantisedRows> plan(const OpCall& call, const Product& p) {
  if (const char* reason = refuse(call, p)) return reason;
  const QuantisedRows v = variant_for(call, p);
  // leaked: streams may end after static objects
  static auto& proofs = *new Proofs<kQuantisedRows>;
  static constexpr ProofTest kTest{kernel_sources::nvidia_mma_quantised_rows, wrong_quantised_rows};
  if (!proofs.hold(
          call, v.index(), kTest, [&] { return defines_of(call, p, v); }, &v))
    return "the kernel failed its test on this driver";
  return v;
}

}  // namespace

size_t QuantisedRows::index() const {
  const auto log2 = [](int64_t power) {
    return static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(power)));
  };
  const size_t of_x = x_tiles > 1 ? 2 + log2(x_tiles) : log2(x_columns);
  const size_t scales = same_scales ? 3 : log2(spread);
  size_t i = static_cast<size_t>(format - weight_formats().data());
  i = i * 2 + (type == DType::BFloat16 ? 1 : 0);
  i = i * kRowsForms.size() + form;
  return ((i * 5 + of_x) * 4 + scales) * 2 + (all_units ? 1 : 0);
}

void run_quantised_rows(const OpCall& call, const Product& p, const QuantisedRows& v) {
  const RowsForm& form = v.division();
  quantised::launch_decode(call, p, kernels::nvidia_mma::quantised::rows::quantised_rows,
                           defines_of(call, p, v), quantised::decode_params(p),
                           {.global = {divide_up(p.weight.n, form.rows()) * form.items, 1, 1},
                            .local = {form.items, 1, 1}});
}

constinit const AlgorithmFor<Product> kQuantisedRowsProduct(
    {.id = "quantised.mma_rows",
     .description = "up to 32 rows of x: the weight is unpacked in registers for mma.sync",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaMma},
    Steps<plan, run_quantised_rows>(), pass_over);

}  // namespace ocltensor::opencl::nvidia_mma
