// Takes a trace with a named range, and sums up what ran. Needs a device.
#include <ocltensor/ocltensor.h>

#include <filesystem>
#include <iostream>

namespace ot = ocltensor;
using ot::profiler::StatisticKind;

int main() {
  if (!ot::is_available()) {
    std::cout << "needs a device: " << ot::unavailable_reason() << "\n";
    return 0;
  }
  const std::string file = "profiler.json";
  const ot::Tensor x = ot::rand({64, 64}, "ocl");
  ot::profiler::reset_statistics();
  ot::profiler::start("interval", false, file);
  {
    const ot::profiler::Range range("three products");
    for (int i = 0; i < 3; ++i) x.matmul(x).relu();
  }
  ot::profiler::stop();  // waits, and writes the file

  uint64_t kernels = 0;
  double milliseconds = 0;
  for (const ot::profiler::Statistic& s : ot::profiler::statistics()) {
    if (s.kind == StatisticKind::Operator && s.name == "mm.out")
      std::cout << s.name << " ran " << s.count << " times\n";
    if (s.kind == StatisticKind::Kernel) kernels += s.count, milliseconds += s.total_ms;
  }
  std::cout << std::boolalpha << "six kernels or more: " << (kernels >= 6)
            << ", their time: " << (milliseconds > 0)
            << ", a file: " << std::filesystem::exists(file) << "\n";
  std::filesystem::remove(file);
}
