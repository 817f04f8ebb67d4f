// Products of int8 with sums of int32 on matrix units by mma.sync: exact.
#include "nvidia_mma/provider.h"
#include "product.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using matmul::Int8Problem;

Planned<MmaProduct> plan_int8(const OpCall& call, const Int8Problem& p) {
  if (const char* reason = refuse_product(call, p.product)) return reason;
  return proven_product(call, p.product, MmaKind::Int8);
}

void run_int8(const OpCall& call, const Int8Problem& p, const MmaProduct& v) {
  run_product(call, p.product, v);
}

}  // namespace

constinit const AlgorithmFor<Int8Problem> kInt8Product({.id = "matmul_int8.mma",
                                                        .description = "matrix units by mma.sync",
                                                        .style = DeviceStyle::Gpu,
                                                        .provider = &kNvidiaMma},
                                                       Steps<plan_int8, run_int8>());

}  // namespace ocltensor::opencl::nvidia_mma
