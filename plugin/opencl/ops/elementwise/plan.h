// A pointwise launch as far as types and layout decide it: formula, kinds of operands, loop nest,
// numbers, kernel. It is made once, and runs for other addresses as long as types and layout stay.
#pragma once

#include <memory>

#include "base/iteration.h"
#include "elementwise.h"
#include "pointwise_params.h"

namespace ocltensor::opencl::elementwise {

// How a kernel reads an operand along the inner dimension (kernels/include/pointwise_formula.h).
enum class OperandKind : uint8_t { Repeated = 0, Contiguous = 1, Strided = 2, Number = 3 };

// Addresses of out, a, b, c, d; 0: a number, or absent.
using Addresses = std::array<tb_address, 5>;

struct PlannedOperand {
  DType type;  // as the kernel sees it
  OperandKind kind = OperandKind::Number;
  int32_t itemsize = 0;
  int64_t low = 0, high = 0;  // the bytes around its address that a launch reaches
};

struct PointwisePlan {
  const Formula* formula;
  DType compute;
  DType limits;
  bool test;
  // Of contiguous tensors of one shape: any number of elements is run, as one line.
  bool is_flat;
  std::array<PlannedOperand, 5> operands;  // out, a, b, c, d
  PointwiseParams params{};                // of the inner POINTWISE_RANK dimensions of the nest
  ImaginaryParams imaginary{};
  std::unique_ptr<const IterationSpace> nest;  // where it has more than those

  // What the algorithm that runs the plan first adds: itself, its kernel, the division of the work,
  // and how the kernel is enqueued.
  const Algorithm* algorithm = nullptr;
  Kernel* kernel = nullptr;
  Grid global{1, 1, 1}, local{1, 1, 1};
  int64_t per_group = 0;  // GPUs: elements of a work-group
  void (*enqueue)(const OpCall&, PointwisePlan&, const Addresses&) = nullptr;

  bool is_tensor(size_t operand) const { return operands[operand].kind != OperandKind::Number; }
};

// The output has elements.
PointwisePlan make_plan(TensorView out, const ElementwiseLaunch& what);
// Gives a flat plan another number of elements, but does not divide them.
void set_count(PointwisePlan& plan, int64_t count);
Addresses addresses_of(TensorView out, std::span<const ElementwiseInput> inputs);

// Runs a plan by the family's list of algorithms. The addresses are those of the tensors that it
// was made for, as is `out`.
void run_plan(const OpCall& call, PointwisePlan& plan, const Addresses& addresses, TensorView out);
// Runs a plan that has run, and whose kernel is ready, at other addresses: for a device of GPU
// style they are as well aligned, to 16 bytes. `count`: elements, of a flat plan.
void repeat_plan(const OpCall& call, PointwisePlan& plan, const Addresses& addresses,
                 int64_t count);

}  // namespace ocltensor::opencl::elementwise
