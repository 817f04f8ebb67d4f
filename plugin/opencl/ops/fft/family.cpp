// What the family offers.
#include "ops/family.h"

#include "fft.h"

namespace ocltensor::opencl::fft {

Family family() { return {{fft_operators()}, {fft_algorithms}}; }

}  // namespace ocltensor::opencl::fft
