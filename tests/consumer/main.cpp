// Uses the installed headers and library: views, an operator, an error, a device that is missing.
#include <ocltensor/ocltensor.h>

#include <iostream>

int main() {
  using namespace ocltensor;
  const Tensor a = tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const std::vector<float> sum = add(a.t(), 0.5).to_vector<float>();
  if (sum != std::vector<float>{1.5f, 4.5f, 2.5f, 5.5f, 3.5f, 6.5f}) return 1;
  try {
    a.view({4});
    return 2;
  } catch (const Error& e) {
    if (e.status() != TB_E_INVALID) return 3;
  }
  if (!is_available("ocl") && unavailable_reason("ocl").empty()) return 4;
  std::cout << a << "\n";
  return 0;
}
