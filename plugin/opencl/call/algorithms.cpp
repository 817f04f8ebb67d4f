// Chooses an algorithm, by rule or by measuring, without disabled ones, and prints the reasons.
#include "algorithms.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "runtime/observe/verbose.h"

namespace ocltensor::opencl {
namespace {

using Clock = std::chrono::steady_clock;

struct Known {
  std::mutex mutex;
  std::vector<const AlgorithmFamily*> families;
};
Known& known() {
  static Known& k = *new Known;  // leaked: threads may run while the process ends
  return k;
}

bool is_disabled(const Policy& policy, const Algorithm& algorithm) {
  return policy.algorithms.find(algorithm.id) != nullptr;
}

// Why the user's settings leave an algorithm out, or nullptr.
const char* refusal_of_user(const Policy& policy, const Algorithm& algorithm) {
  if (algorithm.last_resort) return nullptr;
  if (!policy.tuned) return "tuned kernels are off (enabled = False)";
  if (is_disabled(policy, algorithm)) return "it is disabled";
  return nullptr;
}

struct Decision {
  size_t index = 0;
  std::string how;
  std::vector<const char*> reasons;  // why not; nullptr: it could have run
};

// The first algorithm that the rule takes, else the first that can run.
Decision decide_by_rule(const Question& q) {
  Decision decision{q.candidates.size(), "by rule", {}};
  size_t fitting = q.candidates.size();
  for (size_t i = 0; i < q.candidates.size(); ++i) {
    const Candidate& c = q.candidates[i];
    const char* reason = c.refusal;
    if (reason == nullptr) reason = refusal_of_user(q.call.policy(), *c.algorithm);
    decision.reasons.push_back(reason);
    if (reason != nullptr) continue;
    if (fitting == q.candidates.size()) fitting = i;
    // If the last resort is disabled, an algorithm that the rule passes over takes its place.
    const bool passed = c.passed != nullptr || is_disabled(q.call.policy(), *c.algorithm);
    if (!passed && decision.index == q.candidates.size()) decision.index = i;
  }
  if (decision.index == q.candidates.size()) decision.index = fitting;
  check(fitting < q.candidates.size(), "{}: no algorithm takes {}", q.family.name(), q.problem);
  return decision;
}

// Algorithms worth measuring: the rule's choice first, at most as many as the policy allows.
std::vector<size_t> contenders(const Question& q, const Decision& decision) {
  std::vector<size_t> list{decision.index};
  for (size_t i = 0; i < q.candidates.size(); ++i)
    if (i != decision.index && decision.reasons[i] == nullptr &&
        !q.candidates[i].algorithm->last_resort)
      list.push_back(i);
  if (const auto limit = static_cast<size_t>(q.call.policy().benchmark_limit);
      limit > 0 && list.size() > limit)
    list.resize(limit);
  return list;
}

double microseconds(const Question& q, size_t candidate) {
  Stream& stream = q.call.stream();
  q.attempt(candidate);  // compiles, and warms caches
  stream.synchronize();
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 5 && (i < 2 || Clock::now() - begin < std::chrono::milliseconds(20)); ++i) {
    const Clock::time_point start = Clock::now();
    q.attempt(candidate);
    stream.synchronize();
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    if (i == 0 || time.count() < best) best = time.count();
  }
  return best;
}

// The fastest as measured; measured now if it is not known and `benchmark` asks for it. nullptr if
// there is nothing to choose.
const Algorithm* measured_best(const Question& q, const Decision& decision) {
  const Policy& policy = q.call.policy();
  Device& device = q.call.device();
  if (const Algorithm* best = find_measured(device, q.family, q.shape, policy.keep)) return best;
  if (!policy.benchmark || q.call.stream().is_recording()) return nullptr;  // nothing runs now
  const std::vector<size_t> list = contenders(q, decision);
  if (list.size() < 2) return nullptr;
  q.call.stream().synchronize();  // raises a failure of earlier work before measuring
  if (Rehearsal& rehearsal = q.call.stream().rehearsal(); rehearsal.is_on()) {
    for (const size_t i : list) q.attempt(i);  // in a rehearsal: all of their programs are needed
    if (rehearsal.has_stopped()) return nullptr;
  }
  Measurement result{q.shape_text, {}, nullptr};
  double fastest = 0;
  for (const size_t i : list) {
    const double time = microseconds(q, i);
    if (result.best == nullptr || time < fastest) {
      fastest = time;
      result.best = q.candidates[i].algorithm;
    }
    result.microseconds.emplace_back(q.candidates[i].algorithm, time);
  }
  return add_measured(device, q.family, q.shape, std::move(result), policy.keep);
}

void decide_by_measuring(const Question& q, Decision& decision) {
  const Policy& policy = q.call.policy();
  if (policy.immediate || q.call.deterministic()) {
    if (policy.benchmark)
      decision.how = policy.immediate ? "by rule: immediate" : "by rule: deterministic";
    return;
  }
  if (q.shape.empty()) return;
  try {
    const Algorithm* best = measured_best(q, decision);
    for (size_t i = 0; i < q.candidates.size(); ++i)
      if (q.candidates[i].algorithm == best && decision.reasons[i] == nullptr) {
        decision.index = i;
        decision.how = policy.benchmark ? "measured" : "measured before";
      }
  } catch (const Error& error) {
    if (error.status() != TB_E_OUT_OF_MEMORY) throw;
    decision.how = "by rule: no memory to measure in";
  }
}

std::string sentence(const Question& q, const Decision& decision) {
  const Algorithm& chosen = *q.candidates[decision.index].algorithm;
  std::string text = fmt::format("{} on ocl:{}: {} ({})", q.problem, q.call.device().index(),
                                 chosen.id, decision.how);
  if (chosen.provider != &kPortable) text += fmt::format("; provider {}", chosen.provider->name);
  for (size_t i = 0; i < q.candidates.size(); ++i) {
    if (i == decision.index) continue;
    const char* reason = decision.reasons[i];
    if (reason == nullptr) reason = q.candidates[i].passed;
    if (reason == nullptr) reason = "another was preferred";
    text += fmt::format("; not {}: {}", q.candidates[i].algorithm->id, reason);
  }
  return text + q.notes;
}

}  // namespace

AlgorithmFamily::AlgorithmFamily(const char* name, std::span<const OpEntry> operators,
                                 std::vector<const Algorithm*> own)
    : name_(name), operators_(operators) {
  const std::string prefix = std::string(name) + ".";
  for (const Provider* provider : providers())
    for (const Algorithm* a : provider->algorithms)
      if (std::string_view(a->id).starts_with(prefix)) algorithms_.push_back(a);
  algorithms_.insert(algorithms_.end(), own.begin(), own.end());
  const std::lock_guard lock(known().mutex);
  known().families.push_back(this);
}

bool AlgorithmFamily::ask(Device& device) const {
  const bool any = is_any_measured(device, *this);
  set_known(device.index(), any ? Known::Something : Known::Nothing);
  return any;
}

std::vector<const AlgorithmFamily*> algorithm_families() {
  const std::lock_guard lock(known().mutex);
  return known().families;
}

size_t choose_algorithm(const Question& q) {
  const Policy& policy = q.call.policy();
  Decision decision = decide_by_rule(q);
  if (policy.benchmark || policy.keep) decide_by_measuring(q, decision);
  if (policy.verbose > 0)
    print_verbose("choice", sentence(q, decision));
  else if (logging::enabled(logging::Level::Debug))
    logging::write(logging::Level::Debug, "choice", sentence(q, decision).c_str());
  return decision.index;
}

}  // namespace ocltensor::opencl
