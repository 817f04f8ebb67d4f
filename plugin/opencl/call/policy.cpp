// Reads the settings that steer operators, once after each change.
#include "policy.h"

#include <map>
#include <mutex>
#include <string>

#include "base/config.h"
#include "providers.h"

namespace ocltensor::opencl {

std::atomic<const Policy*> detail::current_policy{nullptr};
std::atomic<uint64_t> detail::policy_generation{0};

namespace {

using config::Knob;

constexpr Knob kKnobs[] = {Knob::TunedKernels,        Knob::Deterministic,
                           Knob::Benchmark,           Knob::BenchmarkLimit,
                           Knob::Immediate,           Knob::Verbose,
                           Knob::AllowTf32,           Knob::PreferOpenCL,
                           Knob::Fp16Reduction,       Knob::Bf16Reduction,
                           Knob::DisabledOperations,  Knob::DisabledAlgorithms,
                           Knob::DisabledProviders,   Knob::KeepMeasurements,
                           Knob::CheckValues,         Knob::Tune,
                           Knob::AllowInt8Activations};

ReducedSums reduction(Knob knob) {
  const int64_t mask = config::get_int(knob);
  return {(mask & 1) != 0, (mask & 2) != 0};
}

Tuning tuning() {
  const std::string text = config::get_string(Knob::Tune);
  if (text.empty()) return Tuning::Off;
  return text == "record" ? Tuning::Record : text == "quick" ? Tuning::Quick : Tuning::Full;
}

std::vector<const Provider*> disabled_providers() {
  const std::string list = config::get_string(Knob::DisabledProviders);
  check_providers(list);
  const std::vector<std::string> names = split_names(list);
  std::vector<const Provider*> disabled;
  for (const Provider* p : providers())
    if (std::ranges::find(names, p->name) != names.end()) disabled.push_back(p);
  return disabled;
}

Policy make_policy() {
  Policy p{.tuned = config::get_bool(Knob::TunedKernels),
           .deterministic = config::get_bool(Knob::Deterministic),
           .benchmark = config::get_bool(Knob::Benchmark),
           .immediate = config::get_bool(Knob::Immediate),
           .allow_tf32 = config::get_bool(Knob::AllowTf32),
           .allow_int8_activations = config::get_bool(Knob::AllowInt8Activations),
           .prefer_portable = config::get_bool(Knob::PreferOpenCL),
           .check_values = config::get_bool(Knob::CheckValues),
           .verbose = config::get_int(Knob::Verbose),
           .benchmark_limit = config::get_int(Knob::BenchmarkLimit),
           .fp16 = reduction(Knob::Fp16Reduction),
           .bf16 = reduction(Knob::Bf16Reduction),
           .disabled_providers = disabled_providers(),
           .keep = config::get_bool(Knob::KeepMeasurements),
           .tuning = tuning(),
           .operations = NamePatterns(config::get_string(Knob::DisabledOperations)),
           .algorithms = NamePatterns(config::get_string(Knob::DisabledAlgorithms)),
           .default_choice = false,
           .use_measured = false,
           .plain = false};
  p.default_choice =
      p.tuned && !p.benchmark && p.tuning == Tuning::Off && p.verbose == 0 && p.algorithms.empty();
  p.use_measured = p.keep && !p.immediate && !p.deterministic;
  p.plain =
      p.is_enabled(kPortable) && p.verbose < 2 && p.operations.empty() && p.algorithms.empty();
  return p;
}

struct Kept {
  std::mutex mutex;
  std::map<std::string, const Policy*> by_values;
};

}  // namespace

const Policy& detail::read_policy() {
  static Kept& kept = *new Kept;  // leaked: threads may run while the process ends
  const std::lock_guard lock(kept.mutex);
  // Read before the values, so that a change in between is seen by the next call.
  const uint64_t generation = config::generation();
  std::string values;
  for (const Knob knob : kKnobs) values += config::get_string(knob) + '\n';
  const Policy*& found = kept.by_values[values];
  if (found == nullptr) found = new Policy(make_policy());
  current_policy.store(found, std::memory_order_release);
  policy_generation.store(generation, std::memory_order_release);
  return *found;
}

}  // namespace ocltensor::opencl
