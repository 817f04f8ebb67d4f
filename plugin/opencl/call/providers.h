// Where kernels come from: the portable ones, and for each of a vendor's architectures a provider
// with algorithms of its own, which the families' lists ask first.
#pragma once

#include <span>
#include <string_view>

#include "runtime/driver/capabilities.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {

class Algorithm;
struct Policy;

struct Provider {
  const char* name;     // "portable"; its folder's name for others
  const char* library;  // its name in preferred_blas_library(), or nullptr
  const char* what;
  // Has the device what its kernels need? nullptr: every device.
  bool (*suits)(const Capabilities& caps) = nullptr;
  // Why not, on a device that it does not suit.
  const char* lacking = nullptr;
  // In the order in which families shall ask them, before the portable ones. Portable algorithms
  // are in their families' own lists.
  std::span<const Algorithm* const> algorithms{};
  // What its programs go through after the compiler, or nullptr.
  const ProgramFinisher* finisher = nullptr;
};

extern const Provider kPortable;

// All of them, in the order in which they are asked; the portable one is the last. The table is
// plugin/opencl/providers.cpp.
std::span<const Provider* const> providers();

// Why none of a provider's algorithms runs on a device under these settings; or nullptr.
const char* refuse_provider(const Capabilities& caps, const Policy& policy,
                            const Provider& provider);
// Why a provider is missing on every device, or nullptr.
const char* missing_provider(const Provider& provider);
// Throws Error(TB_E_INVALID) for a list of OCLTENSOR_DISABLED_PROVIDERS with a name that is none.
void check_providers(std::string_view list);

}  // namespace ocltensor::opencl
