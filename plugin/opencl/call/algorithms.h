// An operator family's ordered list of algorithms, and the choice among those that are not
// disabled: by rule the first that has a plan, or, if the settings ask for it, by measuring. The
// reasons can be printed.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "call/algorithm.h"
#include "call/careful.h"
#include "measurements.h"
#include "shape_class.h"

namespace ocltensor::opencl {

// A family without its problem's type: what reports and settings need.
class AlgorithmFamily {
 public:
  // Enters the family in the report; it lives as long as the process. `own` are the portable
  // algorithms; those of other providers come before them. `operators`: those that the family's
  // algorithms serve.
  AlgorithmFamily(const char* name, std::span<const OpEntry> operators,
                  std::vector<const Algorithm*> own);
  const char* name() const { return name_; }
  std::span<const Algorithm* const> algorithms() const { return algorithms_; }
  std::span<const OpEntry> operators() const { return operators_; }
  const Algorithm* last() const { return last_.load(std::memory_order_relaxed); }
  void count(const Algorithm& algorithm) {
    algorithm.count();
    last_.store(&algorithm, std::memory_order_relaxed);
  }

  // Whether anything has been measured on the device, in this process or according to its file.
  bool is_measured(Device& device) const {
    const auto index = static_cast<size_t>(device.index());
    if (index >= kMostDevices) return false;
    const Known known = known_[index].load(std::memory_order_relaxed);
    return known == Known::Something || (known == Known::Unasked && ask(device));
  }
  void set_measured(int device) const { set_known(device, Known::Something); }
  void ask_again() const {
    for (int i = 0; i < kMostDevices; ++i) set_known(i, Known::Unasked);
  }

 private:
  enum class Known : uint8_t { Unasked, Nothing, Something };
  static constexpr int kMostDevices = 16;
  void set_known(int device, Known known) const {
    if (device < kMostDevices) known_[static_cast<size_t>(device)] = known;
  }
  bool ask(Device& device) const;

  const char* name_;
  std::span<const OpEntry> operators_;
  std::vector<const Algorithm*> algorithms_;
  std::atomic<const Algorithm*> last_{nullptr};
  mutable std::array<std::atomic<Known>, kMostDevices> known_{};
};

// Every family that has been used, or whose list was requested.
std::vector<const AlgorithmFamily*> algorithm_families();

// An algorithm with its reasons for one call.
struct Candidate {
  const Algorithm* algorithm;
  const char* refusal;  // nullptr: it can run
  const char* passed;   // nullptr: the rule would take it
};
// Some of a problem's results in the memory that Traits::redirect() gave them.
struct ResultPart {
  uint64_t offset;  // bytes
  int64_t count;    // elements, gaps of strides included
  DType type;
  int64_t terms;  // of the longest sum behind a result
};

// A problem's choice: the candidates, and the texts and functions that the choice may need.
struct Question {
  const OpCall& call;
  const AlgorithmFamily& family;
  std::span<const Candidate> candidates;
  std::string problem;     // for the printed line
  std::string notes;       // appended to the printed line
  ShapeClass shape;        // the key of measurements, besides the device; empty: not measured
  std::string shape_text;  // the same for people
  // Runs a candidate on a copy of the problem with another output, which it returns; empty: not to
  // be measured. With `poison` all bytes of the output are 0xff before.
  std::function<Scratch(size_t candidate, const Configuration&, bool poison)> attempt;
  // Why a candidate cannot be run so; nullptr: it can.
  std::function<const char*(size_t candidate, const Configuration&)> refuse;
  std::function<Configurations(size_t candidate)> configurations;
  std::function<std::vector<ResultPart>()> results;
};
// The candidate to run, as the policy asks, and with which configuration; prints the reasons if the
// policy is verbose.
struct Decided {
  size_t candidate;
  Configuration configuration{};
};
Decided choose_algorithm(const Question& question);

// `Traits` say how a family's problems are described and measured:
//   static std::string describe(const OpCall&, const Problem&);
// and, where algorithms are worth measuring:
//   static std::string notes(const OpCall&, const Problem&);
//   static ShapeClass shape_class(const OpCall&, const Problem&);
//   static std::string shape_text(const ShapeClass&);
//   static Scratch redirect(const OpCall&, Problem&);  the output becomes scratch memory
//   static std::vector<ResultPart> results(const OpCall&, const Problem&);  what is then in it
template <typename Traits, typename Problem>
concept Measurable = requires(const OpCall& call, Problem& problem) {
  Traits::shape_class(call, problem);
};

template <typename Problem, typename Traits>
class AlgorithmList {
 public:
  using Entry = AlgorithmFor<Problem>;
  AlgorithmList(const char* family, std::span<const OpEntry> operators,
                std::initializer_list<const Entry*> own)
      : family_(family, operators, {own.begin(), own.end()}) {
    for (const Algorithm* a : family_.algorithms()) {
      check(a->problem_type() == &kProblemType<Problem>, "{} is not for problems of {}", a->id,
            family);
      entries_.push_back(static_cast<const Entry*>(a));
    }
  }

  void run(const OpCall& call, const Problem& problem) {
    const uint64_t key =
        CarefulChoices::key_of(call, [&] { return Traits::describe(call, problem); });
    while (!choose_and_run(call, problem, key)) continue;  // its programs do not compile: another
  }
  // The first that can run and that the rule does not pass over.
  const Entry* by_rule(const OpCall& call, const Problem& problem) const {
    for (const Entry* entry : entries_) {
      Plan plan;
      if (excluded(call, *entry) == nullptr && entry->passed_over(call, problem) == nullptr &&
          entry->plan(call, problem, plan) == nullptr)
        return entry;
    }
    return nullptr;
  }
  // Runs this algorithm, whatever the rule says. It must take the problem.
  void run_one(const OpCall& call, const Problem& problem, const Entry& entry) {
    Plan plan;
    const char* reason = entry.plan(call, problem, plan);
    check(reason == nullptr, "{} does not take this problem: {}", entry.id, reason);
    run_plan(call, problem, entry, plan, 0);
  }
  // For a run that the list was not asked for, of one of its algorithms.
  void count(const Algorithm& algorithm) { family_.count(algorithm); }
  const AlgorithmFamily& family() const { return family_; }

 private:
  // `key`: of CarefulChoices, here and below.
  const char* left_out(const OpCall& call, const Entry& entry, uint64_t key) {
    const char* reason = excluded(call, entry);
    return reason == nullptr && key != 0 ? careful_.refusal(key, entry) : reason;
  }
  // False, with nothing enqueued, if a program does not compile: left_out() knows it then.
  bool run_plan(const OpCall& call, const Problem& problem, const Entry& entry, const Plan& plan,
                uint64_t key) {
    if (key != 0) [[unlikely]]
      if (!careful_.prepare(key, call, entry, [&] { entry.run(call, problem, plan); }))
        return false;
    entry.run(call, problem, plan);
    family_.count(entry);  // counted after the algorithms that it calls itself
    return true;
  }
  // The next three return whether they ran an algorithm.
  bool choose_and_run(const OpCall& call, const Problem& problem, uint64_t key) {
    if (call.policy().default_choice && !logging::enabled(logging::Level::Debug)) [[likely]] {
      if constexpr (Measurable<Traits, Problem>)
        if (call.policy().use_measured && family_.is_measured(call.device())) [[unlikely]]
          if (run_measured(call, problem, key)) return true;
      for (const Entry* entry : entries_) {
        if (left_out(call, *entry, key) != nullptr || entry->passed_over(call, problem) != nullptr)
          continue;
        Plan plan;
        if (entry->plan(call, problem, plan) == nullptr)
          return run_plan(call, problem, *entry, plan, key);
      }
    }
    return weigh_and_run(call, problem, key);
  }
  // The algorithm that was measured as the fastest, if it can run.
  bool run_measured(const OpCall& call, const Problem& problem, uint64_t key) {
    if (call.deterministic()) return false;
    const ShapeClass shape = Traits::shape_class(call, problem);
    if (shape.empty()) return false;
    const Choice best = find_measured(call.device(), family_, shape, true, true);
    for (const Entry* entry : entries_) {
      if (entry != best.algorithm || left_out(call, *entry, key) != nullptr) continue;
      Plan plan;
      if (entry->plan(call, problem, plan, best.configuration) != nullptr) return false;
      return run_plan(call, problem, *entry, plan, key);
    }
    return false;
  }
  // With the reasons of all candidates.
  bool weigh_and_run(const OpCall& call, const Problem& problem, uint64_t key) {
    std::vector<Candidate> candidates;
    const auto plans = std::make_unique<Plan[]>(entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i) {
      const char* refusal = left_out(call, *entries_[i], key);
      if (refusal == nullptr) refusal = entries_[i]->plan(call, problem, plans[i]);
      candidates.push_back(
          {entries_[i], refusal,
           refusal == nullptr ? entries_[i]->passed_over(call, problem) : nullptr});
    }
    Question question{.call = call,
                      .family = family_,
                      .candidates = candidates,
                      .problem = Traits::describe(call, problem)};
    if constexpr (Measurable<Traits, Problem>) describe_measuring(question, call, problem, key);
    const auto [chosen, configuration] = choose_algorithm(question);
    const Entry& entry = *entries_[chosen];
    if (configuration.empty()) return run_plan(call, problem, entry, plans[chosen], key);
    Plan plan;
    const char* reason = entry.plan(call, problem, plan, configuration);
    check(reason == nullptr, "{} does not take this problem: {}", entry.id, reason);
    return run_plan(call, problem, entry, plan, key);
  }
  // What of a question is needed to measure.
  void describe_measuring(Question& question, const OpCall& call, const Problem& problem,
                          uint64_t key) {
    question.notes = Traits::notes(call, problem);
    question.shape = Traits::shape_class(call, problem);
    if (!question.shape.empty()) question.shape_text = Traits::shape_text(question.shape);
    question.attempt = [&](size_t i, const Configuration& configuration, bool poison) {
      Problem copy = problem;
      Scratch memory = Traits::redirect(call, copy);
      if (poison) memory.poison();
      Plan plan;  // a plan for the other output
      if (entries_[i]->plan(call, copy, plan, configuration) == nullptr)
        entries_[i]->run(call, copy, plan);
      return memory;
    };
    question.refuse = [&, key](size_t i, const Configuration& configuration) {
      if (const char* reason = left_out(call, *entries_[i], key)) return reason;
      Plan plan;
      return entries_[i]->plan(call, problem, plan, configuration);
    };
    question.configurations = [&](size_t i) {
      return excluded(call, *entries_[i]) != nullptr ? Configurations()
                                                     : entries_[i]->configurations(call, problem);
    };
    question.results = [&] { return Traits::results(call, problem); };
  }

  std::vector<const Entry*> entries_;
  AlgorithmFamily family_;
  CarefulChoices careful_;
};

}  // namespace ocltensor::opencl
