// Records the OpenCL calls of some work into a file that ocltensor-replay runs. Needs a device.
#include <ocltensor/ocltensor.h>

#include <filesystem>
#include <iostream>

namespace ot = ocltensor;

int main() {
  ot::set_setting("OCLTENSOR_CAPTURE_ENABLED", "1");  // before the first use of the device
  if (!ot::is_available()) {
    std::cout << "needs a device: " << ot::unavailable_reason() << "\n";
    return 0;
  }
  const std::string file = "sum.capture";
  const ot::Tensor x = ot::arange(6, {ot::DType::Float32, "ocl"});
  ot::profiler::Capture capture(file);
  const ot::Tensor y = (x * 2 + 1).sum();
  capture.stop();
  std::cout << std::boolalpha << "result " << y.item<float>()
            << ", a file: " << std::filesystem::exists(file) << "\n"
            << "replay it: ocltensor-replay " << file << "\n";
}
