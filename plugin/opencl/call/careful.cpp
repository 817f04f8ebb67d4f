// Rehearses algorithms, and has builders compile what they need.
#include "careful.h"

#include <set>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/program/dry_run.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

// What stopped the compiler: one warning for each algorithm, of which a model may need programs by
// the dozen.
void tell(const Algorithm& algorithm, const char* why) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<const Algorithm*>& told = *new std::set<const Algorithm*>;
  const std::lock_guard lock(mutex);
  const auto level =
      told.insert(&algorithm).second ? logging::Level::Warning : logging::Level::Debug;
  logging::write(
      level, "choice",
      fmt::format("{} is left out, another algorithm runs: {}", algorithm.id, why).c_str());
}

std::vector<std::shared_ptr<Program>> missing_of(const std::function<void()>& run) {
  const DryRun dry;
  try {
    run();
  } catch (const Error& error) {  // it came to a result: the rest is not known beforehand
    if (error.status() != TB_E_STATE) throw;
  }
  return dry.missing();
}

}  // namespace

uint64_t CarefulChoices::hash(const OpCall& call, const std::string& problem) {
  const std::string text =
      fmt::format("{} {} {}", call.device().index(), call.deterministic(), problem);
  return XXH3_64bits(text.data(), text.size()) | 1;
}

const char* CarefulChoices::refusal(uint64_t key, const Algorithm& algorithm) {
  if (key == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto known = is_refused_.find(key_of(key, algorithm));
  return known != is_refused_.end() && known->second ? "the driver's compiler fails on its program"
                                                     : nullptr;
}

bool CarefulChoices::prepare(uint64_t key, const OpCall& call, const Algorithm& algorithm,
                             const std::function<void()>& run) {
  const uint64_t mine = key_of(key, algorithm);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = is_refused_.find(mine); known != is_refused_.end())
      return !known->second;
  }
  const std::vector<std::shared_ptr<Program>> missing = missing_of(run);
  ProgramCache& programs = call.device().programs();
  for (const auto& program : missing) programs.request(*program);  // side by side
  bool is_refused = false;
  try {
    for (const auto& program : missing) (void)programs.get(*program);
  } catch (const Error& error) {
    if (error.status() != TB_E_COMPILE || algorithm.last_resort) throw;
    tell(algorithm, error.what());
    is_refused = true;
  }
  const std::lock_guard lock(mutex_);
  is_refused_[mine] = is_refused;
  return !is_refused;
}

}  // namespace ocltensor::opencl
