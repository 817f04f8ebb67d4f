// Makes tensors, and computes with symbols, methods and brackets.
#include <ocltensor/ocltensor.h>

#include <iostream>

namespace ot = ocltensor;

int main() {
  const ot::DefaultDevice device(ot::is_available() ? "ocl" : "cpu");
  const ot::Tensor a = ot::tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  const ot::Tensor b = a * 2 + ot::arange(3);  // int64, broadcast and promoted
  std::cout << b.matmul(a.t()).to(ot::DType::BFloat16) << "\n";

  const ot::Tensor row = a[1];         // a view
  row *= 10;                           // changes a
  a[a < 2] = -1;                       // brackets with a mask write
  a[{"...", ot::slice(1, 3)}] += 0.5;  // a[..., 1:3] += 0.5
  std::cout << a << "\n";

  const std::vector<float> host = a.flatten().to_vector<float>();
  std::cout << host.size() << " numbers on the host, the largest " << a.max().item<float>() << "\n";
  try {
    a.view({4, 2});
  } catch (const ot::Error& e) {
    std::cout << (e.status() == TB_E_INVALID ? "invalid: " : "") << e.what() << "\n";
  }
}
