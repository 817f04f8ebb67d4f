// The provider object for LAPACK on the host: devices that are processors of the host, where their
// memory is its own, too.
#include "provider.h"

#include "library.h"

namespace ocltensor::opencl {
namespace {

bool suits(const Capabilities& caps) {
  return (caps.type & CL_DEVICE_TYPE_CPU) != 0 && lapack::library() != nullptr;
}

constexpr const Algorithm* kAlgorithms[] = {&lapack::kEig, &lapack::kEigh, &lapack::kLu,
                                            &lapack::kSvd};

}  // namespace

constinit const Provider kLapack{
    .name = "lapack",
    .library = nullptr,
    .what = "LAPACK on the host, for devices that are its processors",
    .suits = suits,
    .lacking = "the device is not a CPU, or no library of OCLTENSOR_LAPACK was found",
    .algorithms = kAlgorithms};

}  // namespace ocltensor::opencl
