// The table of providers, which lower folders know by a declaration alone. A program that links the
// plugin's library and brings another such file has other providers.
#include "call/providers.h"

#include <vector>

namespace ocltensor::opencl {

#ifndef OCLTENSOR_PROVIDERS
#define OCLTENSOR_PROVIDERS "providers.def"
#endif

#define OCLTENSOR_PROVIDER(object) extern const Provider object;
#include OCLTENSOR_PROVIDERS
#undef OCLTENSOR_PROVIDER

namespace {

constexpr const Provider* kProviders[] = {
#define OCLTENSOR_PROVIDER(object) &object,
#include OCLTENSOR_PROVIDERS
#undef OCLTENSOR_PROVIDER
    &kPortable};

}  // namespace

std::span<const Provider* const> providers() { return kProviders; }

std::span<const ProgramFinisher* const> program_finishers() {
  static const auto& list = *new auto([] {  // leaked: threads may build while the process ends
    std::vector<const ProgramFinisher*> finishers;
    for (const Provider* p : kProviders)
      if (p->finisher != nullptr) finishers.push_back(p->finisher);
    return finishers;
  }());
  return list;
}

std::span<const ProviderQuestion> provider_questions() {
  static const auto& list = *new auto([] {  // leaked, as above
    std::vector<ProviderQuestion> questions;
    for (const Provider* p : kProviders)
      if (p->ask != nullptr) questions.push_back(p->ask);
    return questions;
  }());
  return list;
}

}  // namespace ocltensor::opencl
