// OCLTENSOR_CAPS and OCLTENSOR_FLOAT64 applied to a device: what it has is lowered, never raised.
// Extensions that are taken away are hidden from programs, and launches are held to the limits,
// since the driver would take more.
#pragma once

#include <array>

#include "base/caps.h"
#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl {

// Throws Error(TB_E_INVALID) for a limit above what the device has.
void apply_caps(Capabilities& caps);
// The same for a fact that a provider keeps for itself, which it has asked just now.
void apply_cap(Capabilities& caps, Cap cap, uint32_t& own);

// The name by which #line directives call a text that a user or a generator wrote.
constexpr const char* kGivenText = "the kernel source";

// A program that does not see the extensions that were taken away: the same text, if it names none.
std::string without_hidden(const Capabilities& caps, const std::string& source);

// Why a launch is beyond the limits; empty: it is not. `local` begins with 0 if the driver chooses.
std::string beyond_caps(const Capabilities& caps, cl_device_id device, cl_kernel kernel,
                        const std::array<size_t, 3>& local);

// The most work-items of a work-group that the driver gives this kernel: fewer than the device's
// limit where the kernel's registers are many. No limit for kernels that declare a size, which the
// driver has promised. Asked once for each kernel: drivers may take long to answer.
uint32_t group_limit(const Capabilities& caps, cl_device_id device, cl_kernel kernel);

// ": 256 work-items in a work-group, the kernel's limit is 64", for a driver's refusal; empty if
// that is not why.
std::string describe_group(cl_device_id device, cl_kernel kernel,
                           const std::array<size_t, 3>& local);

}  // namespace ocltensor::opencl
