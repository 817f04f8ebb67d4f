// Which providers of kernels settings and devices permit.
#include "providers.h"

#include <algorithm>
#include <string>

#include "base/config.h"
#include "base/name_patterns.h"
#include "ocltensor/error.h"
#include "policy.h"
#include "runtime/device/device.h"

namespace ocltensor::opencl {

namespace {

// Why a provider does not suit a device.
const char* reason(const Provider& provider, const Capabilities& caps) {
  const char* refusal = provider.refusal == nullptr ? nullptr : provider.refusal(caps);
  return refusal == nullptr ? provider.lacking : refusal;
}

}  // namespace

constinit const Provider kPortable{
    .name = "portable", .library = "portable", .what = "the project's kernels in OpenCL C"};

const char* refuse_provider(const Capabilities& caps, const Policy& policy,
                            const Provider& provider) {
  if (policy.prefer_portable && &provider != &kPortable) return "portable kernels are preferred";
  if (provider.suits != nullptr && !provider.suits(caps)) return reason(provider, caps);
  return policy.is_enabled(provider) ? nullptr : "its provider is disabled";
}

const char* missing_provider(const Provider& provider) {
  if (provider.suits == nullptr) return nullptr;
  const char* missing = provider.lacking;
  for (const auto& device : device_list().devices) {
    if (provider.suits(device->caps())) return nullptr;
    if (missing == provider.lacking) missing = reason(provider, device->caps());
  }
  return missing;
}

void check_providers(std::string_view list) {
  for (const std::string& name : split_names(list)) {
    std::string known;
    bool found = false;
    for (const Provider* p : providers()) {
      found = found || p->name == name;
      known += std::string(known.empty() ? "" : ", ") + p->name;
    }
    check(found, "there is no kernel provider '{}': expected one of {}", name, known);
  }
}

}  // namespace ocltensor::opencl
