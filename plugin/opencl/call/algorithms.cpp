// Chooses an algorithm, by rule or by measuring, without disabled ones, and prints the reasons.
#include "algorithms.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "runtime/observe/verbose.h"
#include "tuning.h"

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
  Configuration configuration{};
  std::string how;
  std::vector<const char*> reasons;  // why not; nullptr: it could have run
};

// The first algorithm that the rule takes, else the first that can run.
Decision decide_by_rule(const Question& q) {
  Decision decision{q.candidates.size(), {}, "by rule", {}};
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
  const auto attempt = [&] { (void)q.attempt(candidate, {}, false); };
  attempt();  // compiles, and warms caches
  stream.synchronize();
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 5 && (i < 2 || Clock::now() - begin < std::chrono::milliseconds(20)); ++i) {
    const Clock::time_point start = Clock::now();
    attempt();
    stream.synchronize();
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    if (i == 0 || time.count() < best) best = time.count();
  }
  return best;
}

// Those that may be tuned. The rule's refusals do not count: with a configuration they may fit.
std::vector<size_t> tunable(const Question& q, size_t by_rule) {
  std::vector<size_t> list{by_rule};
  for (size_t i = 0; i < q.candidates.size(); ++i) {
    const Algorithm& a = *q.candidates[i].algorithm;
    if (i != by_rule && !a.last_resort && refusal_of_user(q.call.policy(), a) == nullptr)
      list.push_back(i);
  }
  return list;
}

// The fastest as measured by `benchmark`; measured now if it is not known. Without an algorithm if
// there is nothing to choose.
Choice benchmarked(const Question& q, const Decision& decision) {
  const Policy& policy = q.call.policy();
  Device& device = q.call.device();
  const Choice known = find_measured(device, q.family, q.shape, policy.keep, false);
  if (known.algorithm != nullptr) return known;
  const std::vector<size_t> list = contenders(q, decision);
  if (list.size() < 2) return {};
  q.call.stream().synchronize();  // raises a failure of earlier work before measuring
  if (Rehearsal& rehearsal = q.call.stream().rehearsal(); rehearsal.is_on()) {
    // In a rehearsal: all of their programs are needed.
    for (const size_t i : list) (void)q.attempt(i, {}, false);
    if (rehearsal.has_stopped()) return {};
  }
  Measurement result{q.shape_text, {}, {}};
  double fastest = 0;
  for (const size_t i : list) {
    const double time = microseconds(q, i);
    const Choice choice{q.candidates[i].algorithm, {}};
    if (result.best.algorithm == nullptr || time < fastest) {
      fastest = time;
      result.best = choice;
    }
    result.times.push_back({choice, time});
  }
  return add_measured(device, q.family, q.shape, std::move(result), policy.keep, Existing::Stays);
}

// The fastest that is known, after measuring what the policy asks for.
Choice measured_best(const Question& q, const Decision& decision) {
  const Policy& policy = q.call.policy();
  const bool can_measure = !q.call.stream().is_recording();  // else nothing runs now
  Choice best;
  if (policy.tuning == Tuning::Record)
    note_untuned(q, decision.index, tunable(q, decision.index));
  else if (policy.tuning != Tuning::Off && can_measure)
    best = tune(q, decision.index, tunable(q, decision.index));
  else if (policy.benchmark && can_measure)
    best = benchmarked(q, decision);
  if (best.algorithm != nullptr) return best;
  return find_measured(q.call.device(), q.family, q.shape, policy.keep, true);
}

// Why a choice cannot be run now, or nullptr.
const char* refusal_of(const Question& q, const Decision& decision, size_t candidate,
                       const Configuration& configuration) {
  if (configuration.empty()) return decision.reasons[candidate];
  if (const char* reason = refusal_of_user(q.call.policy(), *q.candidates[candidate].algorithm))
    return reason;
  return q.refuse(candidate, configuration);
}

void decide_by_measuring(const Question& q, Decision& decision) {
  const Policy& policy = q.call.policy();
  const bool measures = policy.benchmark || policy.tuning != Tuning::Off;
  if (policy.immediate || q.call.deterministic()) {
    if (measures) decision.how = policy.immediate ? "by rule: immediate" : "by rule: deterministic";
    return;
  }
  if (q.shape.empty()) return;
  try {
    const Choice best = measured_best(q, decision);
    for (size_t i = 0; i < q.candidates.size(); ++i)
      if (q.candidates[i].algorithm == best.algorithm &&
          refusal_of(q, decision, i, best.configuration) == nullptr) {
        decision.index = i;
        decision.configuration = best.configuration;
        decision.how = measures ? "measured" : "measured before";
      }
  } catch (const Error& error) {
    if (error.status() != TB_E_OUT_OF_MEMORY && error.status() != TB_E_COMPILE) throw;
    decision.how = error.status() == TB_E_COMPILE ? "by rule: a program did not compile"
                                                  : "by rule: no memory to measure in";
  }
}

std::string sentence(const Question& q, const Decision& decision) {
  const Algorithm& chosen = *q.candidates[decision.index].algorithm;
  std::string text = fmt::format("{} on ocl:{}: {} ({})", q.problem, q.call.device().index(),
                                 text_of(Choice{&chosen, decision.configuration}), decision.how);
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

Decided choose_algorithm(const Question& q) {
  const Policy& policy = q.call.policy();
  Decision decision = decide_by_rule(q);
  if (policy.benchmark || policy.keep || policy.tuning != Tuning::Off)
    decide_by_measuring(q, decision);
  if (policy.verbose > 0)
    print_verbose("choice", sentence(q, decision));
  else if (logging::enabled(logging::Level::Debug))
    logging::write(logging::Level::Debug, "choice", sentence(q, decision).c_str());
  return {decision.index, decision.configuration};
}

}  // namespace ocltensor::opencl
