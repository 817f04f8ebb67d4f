// Compiles OpenCL C and launches it on tensors. Needs a device.
#include <ocltensor/ocltensor.h>

#include <iostream>

namespace ot = ocltensor;

int main() {
  if (!ot::is_available()) {
    std::cout << "needs a device: " << ot::unavailable_reason() << "\n";
    return 0;
  }
  const ot::KernelLibrary library = ot::KernelLibrary::compile(R"(
    __kernel void scale_rows(__global float *x, __global const float *factors, int columns) {
      const size_t column = get_global_id(0), row = get_global_id(1);
      x[row * columns + column] *= factors[row];
    })");
  const ot::Kernel kernel = library.kernel("scale_rows");
  const ot::Tensor x = ot::ones({2, 3}, "ocl");
  // A kernel sees memory without shapes: sizes are arguments. A list becomes a buffer.
  kernel.launch({x, std::vector<double>{0.5, 4}, x.size(1)}, {3, 2});
  std::cout << x << "\n";

  try {
    kernel.launch({x, 1.5, x.size(1)}, {3, 2});
  } catch (const ot::Error& e) {
    std::cout << e.what() << "\n";
  }
}
