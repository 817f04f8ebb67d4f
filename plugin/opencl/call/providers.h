// Where kernels come from: the portable ones, and for each vendor's architecture a provider with
// algorithms of its own, which come first in the families' lists.
#pragma once

#include <span>
#include <string_view>

#include "runtime/driver/capabilities.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {

class Algorithm;
struct Policy;

struct Provider {
  const char* name;     // "portable", or its folder's name
  const char* library;  // its name in preferred_blas_library(), or nullptr
  const char* what;
  // Whether the device has what its kernels need; nullptr: every device has.
  bool (*suits)(const Capabilities& caps) = nullptr;
  // The reason for devices that it does not suit.
  const char* lacking = nullptr;
  // What is wrong with a device of the right kind, or nullptr: a text that lives as long as the
  // process. Optional.
  const char* (*refusal)(const Capabilities& caps) = nullptr;
  // In the order in which families shall try them, before the portable ones. Portable algorithms
  // are in their families' own lists.
  std::span<const Algorithm* const> algorithms{};
  // What it asks every device, those included that it will not suit; or nullptr.
  ProviderQuestion ask = nullptr;
  // Whether all its kernels are known to be right with a device's driver, so that launches need
  // not wait for their proofs (proofs.h); nullptr: no driver is known.
  bool (*trusts_driver)(const Capabilities& caps) = nullptr;
  // The change that its programs need after compilation, or nullptr.
  const ProgramFinisher* finisher = nullptr;
};

extern const Provider kPortable;

// All providers, in the order in which they are tried; the portable one is the last. The table is
// plugin/opencl/providers.cpp.
std::span<const Provider* const> providers();

// Why none of a provider's algorithms runs on a device under these settings; or nullptr.
const char* refuse_provider(const Capabilities& caps, const Policy& policy,
                            const Provider& provider);
// Why a provider is missing on every device, or nullptr.
const char* missing_provider(const Provider& provider);
// Throws Error(TB_E_INVALID) if a name in `list` (OCLTENSOR_DISABLED_PROVIDERS) is not a
// provider's.
void check_providers(std::string_view list);

}  // namespace ocltensor::opencl
