// Uses memory of the host without a copy, and asks for, limits and frees the memory of a device.
#include <ocltensor/ocltensor.h>

#include <iostream>
#include <vector>

namespace ot = ocltensor;

int main() {
  std::vector<float> numbers{1, 2, 3, 4};
  const ot::Tensor blob = ot::from_blob(numbers.data(), {2, 2});  // no copy: a CPU tensor
  blob *= 10;
  std::cout << "the vector has " << numbers[3] << "\n";

  if (!ot::is_available()) {
    std::cout << "the rest needs a device: " << ot::unavailable_reason() << "\n";
    return 0;
  }
  const auto live = [] { return ot::memory_stats().requested_bytes.current; };
  ot::Tensor x = ot::zeros({256, 1024}, "ocl");
  std::cout << "live: " << live() << " bytes, ";
  x = ot::Tensor();  // the pool keeps the memory for the next tensor
  std::cout << "then " << live() << "\n";
  ot::synchronize("ocl");
  ot::empty_cache();  // all that no tensor has
  std::cout << "reserved: " << ot::reserved_memory() << "\n";
  ot::set_per_process_memory_fraction(1e-6);
  try {
    ot::empty({64, 1024, 1024}, "ocl");
  } catch (const ot::Error& e) {
    std::cout << (e.status() == TB_E_OUT_OF_MEMORY ? "out of memory\n" : e.what());
  }
  ot::set_per_process_memory_fraction(0);  // no limit
}
