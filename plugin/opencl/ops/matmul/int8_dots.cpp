// Products of int8 on GPUs with an instruction that multiplies four pairs of bytes and adds them.
#include <algorithm>
#include <limits>

#include "kernels/matmul.h"
#include "matmul.h"
#include "operand.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kItems = 256, kTile = 64;  // int8_dots.cl

bool has_instruction(const OpCall& call) { return call.caps().integer_dot != IntegerDot::None; }

const char* plan(const OpCall& call, const Problem& q) {
  if (!q.is_of_bytes()) return "not int8";
  if (q.types.result != DType::Int32) return "the sums are not kept";
  if (q.batch != 1) return "a batch";
  if (call.caps().max_work_group_size < kItems) return "work-groups are too small";
  if (q.k == 0) return "nothing to sum";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - kTile;
  const bool fits = std::max({q.m, q.n, q.k}) <= kMost &&
                    divide_up(q.m, kTile) * divide_up(q.n, kTile) <= kMost / kItems;
  return fits ? nullptr : "the sizes need 64 bits";
}

const char* pass_over(const OpCall& call, const Problem&) {
  return has_instruction(call) ? nullptr : "the device has no instruction for four bytes";
}

void run(const OpCall& call, const Problem& q) {
  const VectorOperand a(call, q, operand_a(q), q.m, true), b(call, q, operand_b(q), q.n, true);
  Problem lined = q;
  lined.a = {a.operand().address, 0, a.operand().line, 1};
  lined.b = {b.operand().address, 0, 1, b.operand().line};
  call.launch(kernels::matmul::int8_dots::matmul_int8_dots,
              Defines().set(define::INT8_DOTS, static_cast<int64_t>(call.caps().integer_dot)),
              {.c = memory_of_c(lined),
               .a = memory_of_a(lined),
               .b = memory_of_b(lined),
               .p = matmul_params(lined)})
      .run({divide_up(q.n, kTile) * divide_up(q.m, kTile) * kItems, 1, 1}, {kItems, 1, 1});
}

}  // namespace

constinit const AlgorithmFor<Problem> kInt8Dots({.id = "matmul.int8_dots",
                                                 .description = "four bytes at once",
                                                 .style = DeviceStyle::Gpu},
                                                Steps<plan, run>(), pass_over);

}  // namespace ocltensor::opencl::matmul
