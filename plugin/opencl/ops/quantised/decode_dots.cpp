// Products of a few rows of x as bytes, on GPUs: four pairs of bytes by one instruction.
#include <algorithm>
#include <string_view>

#include "call/divide_up.h"
#include "kernels/quantised.h"
#include "quantised.h"

namespace ocltensor::opencl::quantised {
namespace {

// Those whose elements are whole numbers.
constexpr std::string_view kFormats[] = {"int8", "int8_zeros", "int4", "int4_signed", "int4_tiles",
                                         "q8_0", "q4_0",       "q4_1", "q5_0",        "q5_1",
                                         "q2_k", "q3_k",       "q4_k", "q5_k",        "q6_k"};
constexpr int64_t kItems = 128, kLeastShare = 32, kBlock = 32;
constexpr int64_t kBytesOfBlock = kBlock + 16;  // with an XBlock

const char* refuse(const OpCall& call, const Product& p) {
  if (!call.policy().allow_int8_activations) return "activations of 8 bits are not allowed";
  if (std::ranges::find(kFormats, p.weight.format->name) == std::end(kFormats))
    return "its elements are not whole numbers";
  if (call.caps().max_work_group_size < static_cast<size_t>(kItems))
    return "work-groups are too small";
  return refuse_decode(p);
}

const char* pass_over(const OpCall& call, const Product&) {
  return call.caps().integer_dot != IntegerDot::None
             ? nullptr
             : "the device has no instruction for four bytes";
}

void run(const OpCall& call, const Product& p) {
  const WeightFormat& f = *p.weight.format;
  const int64_t units = divide_up(p.weight.k, f.unit), blocks = units * f.unit / kBlock;
  const int64_t rows = decode_rows(p), columns = rows * f.unit <= 64 ? 2 : 1;
  int64_t share = kLeastShare;
  const auto groups = [&] { return divide_up(p.weight.n, kItems / share * columns); };
  while (share < kItems && 2 * share <= units && groups() < call.caps().compute_units) share *= 2;
  QuantisedParams params = decode_params(p);
  params.pieces = blocks;
  Defines d = decode_defines(call, p).set(define::ROWS, rows);
  d.set(define::ITEMS, kItems).set(define::SHARE, share).set(define::COLS, columns);
  d.set(define::ZEROS, f.zero == WeightZero::Subtracted);
  d.set(define::INT8_DOTS, static_cast<int64_t>(call.caps().integer_dot));
  const Scratch of_x =
      call.scratch(static_cast<uint64_t>(std::max<int64_t>(p.m() * blocks, 1) * kBytesOfBlock));
  if (blocks > 0)
    call.launch(kernels::quantised::decode_dots::prepare, d, {.of_x = of_x, .x = p.x, .p = params})
        .run({divide_up(blocks, kItems) * kItems, p.m(), 1}, {kItems, 1, 1});
  launch_decode(call, p, kernels::quantised::decode_dots::decode, d, params,
                {.global = {groups() * kItems, 1, 1}, .local = {kItems, 1, 1}}, of_x);
}

}  // namespace

constinit const AlgorithmFor<Product> kDecodeDots(
    {.id = "quantised.decode_dots",
     .description = "few rows of x as bytes: four pairs by one instruction",
     .style = DeviceStyle::Gpu},
    Steps<refuse, run>(), pass_over);

}  // namespace ocltensor::opencl::quantised
