// What a device declines is an error, or runs on the CPU if that is allowed, and is counted.
#include <ocltensor/ocltensor.h>

#include <iostream>

namespace ot = ocltensor;

int main() {
  if (!ot::is_available()) {
    std::cout << "needs a device: " << ot::unavailable_reason() << "\n";
    return 0;
  }
  const ot::Tensor x = ot::tensor({1.f, 4.f, 9.f}, "ocl");
  const auto disabled = ot::backends::operations_disabled({"sqrt"});  // as if the device had none
  try {
    x.sqrt();
  } catch (const ot::Error& e) {
    std::cout << (e.status() == TB_UNSUPPORTED ? "declined: " : "") << e.what() << "\n";
  }
  const ot::backends::SettingScope allowed{{"OCLTENSOR_ENABLE_FALLBACK", "1"}};
  std::cout << x.sqrt() << "\n";  // computed on the CPU, the result is on the device
  for (const ot::FallbackCount& f : ot::fallback_counts())
    std::cout << f.name << " fell back " << f.count << " time(s)\n";
}
