// The ordered list of algorithms for products of int8 with sums of int32. All are exact.
#include "matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

struct Int8Traits {
  static std::string describe(const OpCall&, const Int8Problem& p) {
    return fmt::format("matmul_int8 {} x {} x {}", p.product.m, p.product.n, p.product.k);
  }
};
using Algorithms = AlgorithmList<Int8Problem, Int8Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "matmul_int8", matmul_int8_operators(), {&kInt8Dots, &kInt8Floats});
  return list;
}

}  // namespace

void run_int8_matmul(const OpCall& call, const Problem& p) {
  algorithms().run(call, {normalised(p)});
}

const AlgorithmFamily& matmul_int8_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::matmul
