// Products of float32 as three products of TF32 numbers: each float is, within its last bit, the
// sum of two, which work-items make of it in registers.
#include "kernels/nvidia_mma/matmul.h"
#include "nvidia_mma/provider.h"
#include "product.h"
#include "tf32_parts_params.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using matmul::Operand;
using matmul::Problem;

constexpr int64_t kNumbersOfItem = 8;  // tf32_parts.cl

Tf32PartsOperand described(const Problem& p, const Operand& o, int64_t lines) {
  const int64_t length = o.along_k() ? p.k : lines;
  const int64_t count = o.along_k() ? lines : p.k;
  const int64_t batch = o.batch == 0 ? 1 : p.batch;
  return {o.batch, o.along_k() ? o.line : o.step,
          static_cast<uint64_t>(batch * count * divide_up(length, kNumbersOfItem)),
          static_cast<uint64_t>(count), static_cast<uint64_t>(length)};
}

Planned<MmaProduct> plan_tf32x3(const OpCall& call, const Problem& p) {
  if (const char* reason = matmul::refuse_other_types(p)) return reason;
  if (const char* reason = refuse_tf32_parts(call, p.type())) return reason;
  if (const char* reason = refuse_product(call, p)) return reason;
  if (p.m <= 4) return "a few rows";
  for (const Operand& o : {operand_a(p), operand_b(p)})  // required by the plain kernel
    if (!o.along_k() && !o.along_lines()) return "an operand has no neighbouring elements";
  return proven_product(call, p, MmaKind::Tf32x3);
}

const char* pass_over_tf32x3(const OpCall& call, const Problem& p) {
  if (const char* reason = pass_over_provider(call)) return reason;
  return pass_over_tf32_parts(call, p);
}

}  // namespace

const char* refuse_tf32_parts(const OpCall& call, DType type) {
  if (type != DType::Float32) return "not float32";
  return generation(call.caps()) < 80 ? "TF32 needs compute capability 8.0" : nullptr;
}
const char* pass_over_tf32_parts(const OpCall& call, const Problem& p) {
  if (!gains_by_tf32_parts(call.caps())) return "plain float32 is as fast on this generation";
  return matmul::refuse_float_parts(p);
}

void find_numbers_beyond(const OpCall& call, const Problem& p, const Operand& a, const Operand& b,
                         const matmul::Guard& guard) {
  constexpr int64_t kItems = 256;
  Problem q = p;
  q.a = {a.address, a.batch, a.line, a.step};
  q.b = {b.address, b.batch, b.step, b.line};
  const Tf32PartsParams params{described(p, a, p.m), described(p, b, p.n)};
  const auto items = static_cast<int64_t>(params.a.items + params.b.items);
  call.launch(kernels::nvidia_mma::matmul::tf32_parts::find_beyond, Defines(),
              {.a = matmul::memory_of_a(q),
               .b = matmul::memory_of_b(q),
               .word = guard.memory(),
               .stop = guard.value,
               .p = params})
      .run({divide_up(items, kItems) * kItems, 1, 1}, {kItems, 1, 1});
}

// A plain float32 product is enqueued as well, for numbers that cannot be split: a word in device
// memory decides which of them does the work, so that the host does not wait for the device.
void run_tf32x3_product(const OpCall& call, const Problem& p, const MmaProduct& v) {
  const matmul::VectorOperand a(call, p, operand_a(p), p.m, false);
  const matmul::VectorOperand b(call, p, operand_b(p), p.n, false);
  const Scratch word = call.scratch(sizeof(uint32_t));
  const matmul::Guard guard{word.address(), matmul::next_guard_value()};
  find_numbers_beyond(call, p, a.operand(), b.operand(), guard);
  enqueue_product(call, p, v, a.operand(), b.operand(), guard);
  matmul::run_portable_tiles(call, p, guard);
}

constinit const AlgorithmFor<Problem> kTf32x3Product(
    {.id = "matmul.mma_tf32x3",
     .description = "float32 as two TF32 numbers, by mma.sync",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaMma},
    Steps<plan_tf32x3, run_tf32x3_product>(), pass_over_tf32x3);

}  // namespace ocltensor::opencl::nvidia_mma
