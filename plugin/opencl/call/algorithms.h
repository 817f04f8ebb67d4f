// An operator family's ordered list of algorithms, and the choice among them: by rule the first
// that accepts, or, as the settings ask, by measuring, with the reasons printed, without those that
// were disabled.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "call/op_call.h"
#include "measurements.h"
#include "shape_class.h"

namespace ocltensor::opencl {

struct Algorithm {
  const char* id;            // "matmul.packed"
  const char* name;          // for people
  bool last_resort = false;  // takes whatever comes: never measured; disabled only if others can
  mutable std::atomic<uint64_t> runs{0};
};

// One way to solve a problem.
template <typename Problem>
struct AlgorithmFor : Algorithm {
  const char* (*refuse)(const OpCall& call, const Problem& problem);  // why it cannot, or nullptr
  void (*run)(const OpCall& call, const Problem& problem);
  // Why the rule takes a later one although this one could; nullptr: it does not.
  const char* (*pass_over)(const OpCall& call, const Problem& problem) = nullptr;
};

// What is known of a family at run time.
class AlgorithmFamily {
 public:
  // Announced to the report; lives as long as the process.
  AlgorithmFamily(const char* name, std::vector<const Algorithm*> algorithms);
  const char* name() const { return name_; }
  std::span<const Algorithm* const> algorithms() const { return algorithms_; }
  const Algorithm* last() const { return last_.load(std::memory_order_relaxed); }
  void count(const Algorithm& algorithm) {
    algorithm.runs.fetch_add(1, std::memory_order_relaxed);
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
struct Question {
  const OpCall& call;
  const AlgorithmFamily& family;
  std::span<const Candidate> candidates;
  std::string problem;     // for the printed line
  std::string notes;       // put behind it
  ShapeClass shape;        // what measurements are kept by, but for the device; empty: not measured
  std::string shape_text;  // the same for people
  std::function<void(size_t candidate)> attempt;  // runs it on a copy of the problem's output
};
// The candidate to run, as the policy asks; prints why if it is verbose.
size_t choose_algorithm(const Question& question);

// `Traits` say how a family's problems are described and measured:
//   static std::string describe(const OpCall&, const Problem&);
//   static std::string notes(const OpCall&, const Problem&);
//   static ShapeClass shape_class(const OpCall&, const Problem&);
//   static std::string shape_text(const ShapeClass&);
//   static Scratch redirect(const OpCall&, Problem&);  the output becomes scratch memory
template <typename Problem, typename Traits>
class AlgorithmList {
 public:
  using Entry = AlgorithmFor<Problem>;
  AlgorithmList(const char* family, std::initializer_list<const Entry*> entries)
      : entries_(entries), family_(family, {entries.begin(), entries.end()}) {}

  void run(const OpCall& call, const Problem& problem) {
    if (call.policy().default_choice && !logging::enabled(logging::Level::Debug)) [[likely]] {
      if (call.policy().use_measured && family_.is_measured(call.device())) [[unlikely]]
        if (const Entry* entry = measured(call, problem)) return run_one(call, problem, *entry);
      for (const Entry* entry : entries_)
        // What is passed over is not asked whether it can, which may take a kernel's first test.
        if ((entry->pass_over == nullptr || entry->pass_over(call, problem) == nullptr) &&
            entry->refuse(call, problem) == nullptr)
          return run_one(call, problem, *entry);
    }
    run_one(call, problem, *entries_[choose(call, problem)]);
  }
  void run_one(const OpCall& call, const Problem& problem, const Entry& entry) {
    entry.run(call, problem);
    family_.count(entry);  // after what it called itself
  }
  const AlgorithmFamily& family() const { return family_; }

 private:
  // What an earlier measurement found best, if it can.
  const Entry* measured(const OpCall& call, const Problem& problem) const {
    if (call.deterministic()) return nullptr;
    const ShapeClass shape = Traits::shape_class(call, problem);
    if (shape.empty()) return nullptr;
    const Algorithm* best = find_measured(call.device(), family_, shape, true);
    for (const Entry* entry : entries_)
      if (entry == best && entry->refuse(call, problem) == nullptr) return entry;
    return nullptr;
  }
  size_t choose(const OpCall& call, const Problem& problem) const {
    std::vector<Candidate> candidates;
    for (const Entry* entry : entries_) {
      const char* refusal = entry->refuse(call, problem);
      const bool asks = refusal == nullptr && entry->pass_over != nullptr;
      candidates.push_back({entry, refusal, asks ? entry->pass_over(call, problem) : nullptr});
    }
    const ShapeClass shape = Traits::shape_class(call, problem);
    return choose_algorithm({call, family_, candidates, Traits::describe(call, problem),
                             Traits::notes(call, problem), shape,
                             shape.empty() ? "" : Traits::shape_text(shape), [&](size_t i) {
                               Problem copy = problem;
                               const Scratch memory = Traits::redirect(call, copy);
                               entries_[i]->run(call, copy);
                             }});
  }

  std::vector<const Entry*> entries_;
  AlgorithmFamily family_;
};

}  // namespace ocltensor::opencl
