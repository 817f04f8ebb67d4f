// Moves tensors between the CPU and a device, and makes a device the default for a scope.
#include <ocltensor/ocltensor.h>

#include <iostream>

namespace ot = ocltensor;

int main() {
  const ot::Device device = ot::is_available() ? "ocl" : "cpu";
  const ot::Tensor here = ot::ones({2, 2});  // the thread's default device is the CPU at first
  const ot::Tensor there = here.to(device);  // a copy; the tensor itself if nothing changes
  std::cout << here.device().text() << ", " << there.device().text();
  {
    const ot::DefaultDevice scope(device);  // for this thread, until the end of the block
    std::cout << "; in a scope " << ot::zeros({1}).device().text();
  }
  std::cout << "; after it " << ot::zeros({1}).device().text() << "\n";

  there += 1;
  here.copy_(there);  // any devices, types and strides
  std::cout << "sum on the CPU: " << here.sum().item<int>() << "\n";
  try {
    (void)(here + there);  // operators do not move tensors
  } catch (const ot::Error& e) {
    std::cout << e.what() << "\n";
  }
}
