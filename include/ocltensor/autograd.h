// Gradients: a tape of the operators that run, and the way back through it.
//
//   Tensor w = randn({3, 2}, "ocl").requires_grad_();
//   Tensor loss = cross_entropy(x.matmul(w), labels);
//   loss.backward();   // w.grad() is the gradient of the loss
//
// Operators on tensors that need a gradient are recorded, with what their derivatives need
// (differentiable_operators() lists them). Derivatives are not recorded themselves: there are
// no second derivatives.
//
// The gradient of a complex tensor z = x + iy is dL/dx + i dL/dy for a real loss L, as in PyTorch:
// a step against it makes L smaller. Formulas that do not hold for complex numbers raise
// TB_UNSUPPORTED on the way back. backward() begins with a real
// number, or with a gradient that it is given.
//
// In place: a recorded change of a tensor that needs a gradient, or that is given one, must have
// the memory to itself; TB_E_INVALID for leaves, for views, and for tensors with views. A saved
// tensor that was changed before backward() is TB_E_INVALID, too. Out arguments record nothing:
// TB_E_INVALID where a gradient would be lost.
//
// Threads: each has a switch of its own (NoGrad). A tape is used by one thread at a time.
// backward() enqueues its work on the current streams of the thread that calls it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ocltensor/tensor.h"

namespace ocltensor {

// Whether this thread records; true at first.
OCLTENSOR_API bool grad_enabled() noexcept;

// Records nothing in this thread until the end of the scope.
class OCLTENSOR_API NoGrad {
 public:
  NoGrad() noexcept;
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// The gradients of `outputs`, times `gradients` (none: ones, for outputs with one element each),
// with respect to `inputs`. Nothing is added to any grad(). An input that the outputs do not depend
// on gets an undefined tensor.
OCLTENSOR_API std::vector<Tensor> grad(const TensorList& outputs, const TensorList& inputs,
                                       const TensorList& gradients = {}, bool retain = false);

// The gradients with respect to the inputs, from those with respect to the outputs; undefined ones
// are zero.
using BackwardFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// A function of one's own: says that `outputs`, computed from `inputs` under NoGrad, have this
// derivative. Returns the outputs, recorded if one of the inputs needs a gradient:
//
//   Tensor cube(const Tensor& x) {
//     const Tensor y = [&] { const NoGrad off; return x * x * x; }();
//     return record("cube", {x}, {y}, [x](const auto& g) {
//       return std::vector<Tensor>{g[0] * 3 * x * x};
//     })[0];
//   }
OCLTENSOR_API std::vector<Tensor> record(std::string name, const TensorList& inputs,
                                         const TensorList& outputs, BackwardFunction backward);

// The operators whose derivative is known, and with respect to which arguments.
struct DifferentiableOperator {
  std::string name;  // "mul.out"
  std::vector<std::string> arguments;
  bool complex = false;  // of complex numbers, too
};
OCLTENSOR_API std::vector<DifferentiableOperator> differentiable_operators();

}  // namespace ocltensor
