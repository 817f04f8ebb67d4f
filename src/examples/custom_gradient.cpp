// Gives a function of one's own a derivative, and compares it with a finite difference.
#include <ocltensor/ocltensor.h>

#include <iostream>

namespace ot = ocltensor;

// x * x * x as one step of the tape, which saves x alone.
ot::Tensor cube(const ot::Tensor& x) {
  const ot::Tensor y = [&] {
    const ot::NoGrad off;
    return x * x * x;
  }();
  return ot::record("cube", {x}, {y}, [x](const std::vector<ot::Tensor>& gradients) {
    return std::vector<ot::Tensor>{gradients[0] * 3 * x * x};
  })[0];
}

int main() {
  const ot::DefaultDevice device(ot::is_available() ? "ocl" : "cpu");
  const ot::Tensor x = ot::tensor({1.f, 2.f, -3.f}).requires_grad_();
  cube(x).sum().backward();
  std::cout << "gradient " << x.grad() << "\n";

  const ot::NoGrad off;
  const float h = 1e-2f;
  const ot::Tensor slope = (cube(x + h) - cube(x - h)) / (2 * h);
  const float error = (slope - x.grad()).abs().max().item<float>();
  std::cout << std::boolalpha << "near the finite difference: " << (error < 1e-2f) << "\n";
}
