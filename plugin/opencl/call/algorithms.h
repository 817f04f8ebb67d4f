// An operator family's ordered list of algorithms, and the choice among them: by rule the first
// that has a plan, or, as the settings ask, by measuring, with the reasons printed, without those
// that were disabled.
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
#include "measurements.h"
#include "shape_class.h"

namespace ocltensor::opencl {

// What is known of a family at run time.
class AlgorithmFamily {
 public:
  // Announced to the report; lives as long as the process. `own` are the portable algorithms; those
  // of the other providers come before them. `operators`: what the family's algorithms serve.
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

  // Has anything been measured on the device, in this process or as far as its file says?
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

// Every family that has been used or asked for.
std::vector<const AlgorithmFamily*> algorithm_families();

// An algorithm as a call sees it.
struct Candidate {
  const Algorithm* algorithm;
  const char* refusal;  // nullptr: it can
  const char* passed;   // nullptr: the rule would take it
};
// A problem's choice, and what the choice may need.
struct Question {
  const OpCall& call;
  const AlgorithmFamily& family;
  std::span<const Candidate> candidates;
  std::string problem;     // for the printed line
  std::string notes;       // put behind it
  ShapeClass shape;        // what measurements are kept by, but for the device; empty: not measured
  std::string shape_text;  // the same for people
  // Runs a candidate on a copy of the problem with another output; empty: not measured.
  std::function<void(size_t candidate)> attempt;
};
// The candidate to run, as the policy asks; prints why if it is verbose.
size_t choose_algorithm(const Question& question);

// `Traits` say how a family's problems are described and measured:
//   static std::string describe(const OpCall&, const Problem&);
// and, where algorithms are worth measuring:
//   static std::string notes(const OpCall&, const Problem&);
//   static ShapeClass shape_class(const OpCall&, const Problem&);
//   static std::string shape_text(const ShapeClass&);
//   static Scratch redirect(const OpCall&, Problem&);  the output becomes scratch memory
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
    if (call.policy().default_choice && !logging::enabled(logging::Level::Debug)) [[likely]] {
      if constexpr (Measurable<Traits, Problem>)
        if (call.policy().use_measured && family_.is_measured(call.device())) [[unlikely]]
          if (run_measured(call, problem)) return;
      for (const Entry* entry : entries_) {
        if (excluded(call, *entry) != nullptr || entry->passed_over(call, problem) != nullptr)
          continue;
        Plan plan;
        if (entry->plan(call, problem, plan) == nullptr)
          return run_plan(call, problem, *entry, plan);
      }
    }
    choose_and_run(call, problem);
  }
  // One algorithm, whatever the rule says. To be called with one that takes the problem.
  void run_one(const OpCall& call, const Problem& problem, const Entry& entry) {
    Plan plan;
    const char* reason = entry.plan(call, problem, plan);
    check(reason == nullptr, "{} does not take this problem: {}", entry.id, reason);
    run_plan(call, problem, entry, plan);
  }
  const AlgorithmFamily& family() const { return family_; }

 private:
  void run_plan(const OpCall& call, const Problem& problem, const Entry& entry, const Plan& plan) {
    entry.run(call, problem, plan);
    family_.count(entry);  // after what it called itself
  }
  // What an earlier measurement found best, if it can.
  bool run_measured(const OpCall& call, const Problem& problem) {
    if (call.deterministic()) return false;
    const ShapeClass shape = Traits::shape_class(call, problem);
    if (shape.empty()) return false;
    const Algorithm* best = find_measured(call.device(), family_, shape, true);
    for (const Entry* entry : entries_) {
      if (entry != best || excluded(call, *entry) != nullptr) continue;
      Plan plan;
      if (entry->plan(call, problem, plan) != nullptr) return false;
      run_plan(call, problem, *entry, plan);
      return true;
    }
    return false;
  }
  void choose_and_run(const OpCall& call, const Problem& problem) {
    std::vector<Candidate> candidates;
    const auto plans = std::make_unique<Plan[]>(entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i) {
      const char* refusal = excluded(call, *entries_[i]);
      if (refusal == nullptr) refusal = entries_[i]->plan(call, problem, plans[i]);
      candidates.push_back(
          {entries_[i], refusal,
           refusal == nullptr ? entries_[i]->passed_over(call, problem) : nullptr});
    }
    Question question{call, family_, candidates, Traits::describe(call, problem), {}, {}, {}, {}};
    if constexpr (Measurable<Traits, Problem>) {
      question.notes = Traits::notes(call, problem);
      question.shape = Traits::shape_class(call, problem);
      if (!question.shape.empty()) question.shape_text = Traits::shape_text(question.shape);
      question.attempt = [&](size_t i) {
        Problem copy = problem;
        const Scratch memory = Traits::redirect(call, copy);
        Plan plan;  // the other output's
        if (entries_[i]->plan(call, copy, plan) == nullptr) entries_[i]->run(call, copy, plan);
      };
    }
    const size_t chosen = choose_algorithm(question);
    run_plan(call, problem, *entries_[chosen], plans[chosen]);
  }

  std::vector<const Entry*> entries_;
  AlgorithmFamily family_;
};

}  // namespace ocltensor::opencl
