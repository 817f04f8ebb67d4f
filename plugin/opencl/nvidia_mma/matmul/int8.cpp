// Products of int8 with sums of int32 on matrix units by mma.sync: exact.
#include "nvidia_mma/provider.h"
#include "product.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using matmul::Problem;

Planned<MmaProduct> plan_int8(const OpCall& call, const Problem& p) {
  if (!p.is_of_bytes() || p.types.result != DType::Int32) return "no sums of int8";
  if (p.batch != 1) return "a batch";
  if (const char* reason = refuse_product(call, p)) return reason;
  return proven_product(call, p, MmaKind::Int8);
}

}  // namespace

constinit const AlgorithmFor<Problem> kInt8Product({.id = "matmul.mma_int8",
                                                    .description = "matrix units by mma.sync",
                                                    .style = DeviceStyle::Gpu,
                                                    .provider = &kNvidiaMma},
                                                   Steps<plan_int8, run_product>());

}  // namespace ocltensor::opencl::nvidia_mma
