// One algorithm of an operator family: its description for lists and reports, how it plans a
// problem, and how it runs a plan.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "call/configuration.h"
#include "call/op_call.h"
#include "call/providers.h"

namespace ocltensor::opencl {

// Which devices an algorithm is written for (Capabilities::style).
enum class DeviceStyle : uint8_t { Any, Cpu, Gpu };

// What an algorithm worked out about one problem before it runs: a value of the algorithm's own
// type, stored in place, so that planning allocates nothing by itself. Neither copied nor moved.
class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (destroy_ != nullptr) destroy_(memory_);
  }
  // To be called once. The list makes a new Plan for every algorithm that it tries.
  template <typename T>
  void hold(T&& contents) {
    using Contents = std::remove_cvref_t<T>;
    static_assert(sizeof(Contents) <= kBytes, "keep large tables of a plan on the heap");
    static_assert(alignof(Contents) <= kAlignment);
    new (memory_) Contents(std::forward<T>(contents));
    if constexpr (!std::is_trivially_destructible_v<Contents>)
      destroy_ = [](void* at) { static_cast<Contents*>(at)->~Contents(); };
  }
  template <typename T>
  const T& as() const {
    return *std::launder(reinterpret_cast<const T*>(memory_));
  }

 private:
  static constexpr size_t kBytes = 1024, kAlignment = alignof(std::max_align_t);
  alignas(kAlignment) std::byte memory_[kBytes];  // uninitialised until hold()
  void (*destroy_)(void*) = nullptr;
};

// The result of a plan function: a plan, or the reason why the algorithm does not take the problem
// (a text that lives as long as the process).
template <typename T>
class Planned {
 public:
  Planned(const char* reason) : reason_(reason) {}               // NOLINT: implicit on purpose
  Planned(T plan) : reason_(nullptr), plan_(std::move(plan)) {}  // NOLINT
  const char* reason() const { return reason_; }
  T& plan() { return *plan_; }  // only if reason() is nullptr

 private:
  const char* reason_;
  std::optional<T> plan_;
};

// The members of an algorithm that do not depend on its problem's type.
struct AlgorithmInfo {
  const char* id;           // "matmul.packed": the family's name, a dot, its own
  const char* description;  // for people
  DeviceStyle style = DeviceStyle::Any;
  const Provider* provider = &kPortable;
  // Takes every problem on devices of its style: never measured, disabled only where another can
  // run.
  bool last_resort = false;
  // The names of its configurations' numbers; none: it has no configurations.
  ParameterNames parameters{};
};

class Algorithm : public AlgorithmInfo {
 public:
  constexpr Algorithm(const AlgorithmInfo& info, const void* problem_type)
      : AlgorithmInfo(info), problem_type_(problem_type) {}
  uint64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  void count() const { runs_.fetch_add(1, std::memory_order_relaxed); }
  const void* problem_type() const { return problem_type_; }

 private:
  const void* problem_type_;  // an address that identifies the type
  mutable std::atomic<uint64_t> runs_{0};
};

// Its address identifies the type of a problem.
template <typename Problem>
inline constexpr char kProblemType = 0;

// The two functions of an algorithm, which agree on the type of its plan:
//   Planned<T> plan(const OpCall&, const Problem&);  void run(const OpCall&, const Problem&, const
//   T&);
// or, where nothing is worked out beforehand, a reason (nullptr: the problem can be run):
//   const char* plan(const OpCall&, const Problem&);  void run(const OpCall&, const Problem&);
// or, where it has configurations, a plan for one of them, and which of them are worth measuring:
//   Planned<T> plan(const OpCall&, const Problem&, const Configuration&);
//   Configurations space(const OpCall&, const Problem&);
// The numbers of a configuration may come from a file: a plan function refuses what it cannot run.
template <auto plan, auto run, auto... space>
struct Steps;

template <typename Problem, typename T, Planned<T> (*plan)(const OpCall&, const Problem&),
          void (*run)(const OpCall&, const Problem&, const T&)>
struct Steps<plan, run> {
  static const char* make_plan(const OpCall& call, const Problem& problem, const Configuration&,
                               Plan& to) {
    Planned<T> planned = plan(call, problem);
    if (planned.reason() == nullptr) to.hold(std::move(planned.plan()));
    return planned.reason();
  }
  static Configurations space(const OpCall&, const Problem&) { return {}; }
  static void run_plan(const OpCall& call, const Problem& problem, const Plan& made) {
    run(call, problem, made.as<T>());
  }
};

template <typename Problem, const char* (*plan)(const OpCall&, const Problem&),
          void (*run)(const OpCall&, const Problem&)>
struct Steps<plan, run> {
  static const char* make_plan(const OpCall& call, const Problem& problem, const Configuration&,
                               Plan&) {
    return plan(call, problem);
  }
  static Configurations space(const OpCall&, const Problem&) { return {}; }
  static void run_plan(const OpCall& call, const Problem& problem, const Plan&) {
    run(call, problem);
  }
};

template <typename Problem, typename T,
          Planned<T> (*plan)(const OpCall&, const Problem&, const Configuration&),
          void (*run)(const OpCall&, const Problem&, const T&),
          Configurations (*configurations)(const OpCall&, const Problem&)>
struct Steps<plan, run, configurations> {
  static const char* make_plan(const OpCall& call, const Problem& problem,
                               const Configuration& configuration, Plan& to) {
    Planned<T> planned = plan(call, problem, configuration);
    if (planned.reason() == nullptr) to.hold(std::move(planned.plan()));
    return planned.reason();
  }
  static Configurations space(const OpCall& call, const Problem& problem) {
    return configurations(call, problem);
  }
  static void run_plan(const OpCall& call, const Problem& problem, const Plan& made) {
    run(call, problem, made.as<T>());
  }
};

// The plan function of algorithms that take every problem of their family.
template <typename Problem>
const char* takes_all(const OpCall&, const Problem&) {
  return nullptr;
}

// One way to solve a problem. Objects are constants at namespace scope; a family's list, or a
// provider's, holds their addresses.
template <typename Problem>
class AlgorithmFor : public Algorithm {
 public:
  using PassOver = const char* (*)(const OpCall& call, const Problem& problem);
  // `pass_over`: why the rule prefers a later algorithm although this one could run; nullptr: it
  // does not. It is called before the plan is made, and must be cheap.
  template <auto... functions>
  constexpr AlgorithmFor(const AlgorithmInfo& info, Steps<functions...> /*steps*/,
                         PassOver pass_over = nullptr)
      : Algorithm(info, &kProblemType<Problem>),
        make_plan_(Steps<functions...>::make_plan),
        run_plan_(Steps<functions...>::run_plan),
        space_(Steps<functions...>::space),
        pass_over_(pass_over) {}

  // Why the problem cannot be run; or nullptr, and `to` holds the plan.
  const char* plan(const OpCall& call, const Problem& problem, Plan& to,
                   const Configuration& configuration = {}) const {
    return make_plan_(call, problem, configuration, to);
  }
  // The configurations worth measuring, the most promising ones first.
  Configurations configurations(const OpCall& call, const Problem& problem) const {
    return space_(call, problem);
  }
  void run(const OpCall& call, const Problem& problem, const Plan& plan) const {
    run_plan_(call, problem, plan);
  }
  const char* passed_over(const OpCall& call, const Problem& problem) const {
    return pass_over_ == nullptr ? nullptr : pass_over_(call, problem);
  }

 private:
  const char* (*make_plan_)(const OpCall&, const Problem&, const Configuration&, Plan&);
  void (*run_plan_)(const OpCall&, const Problem&, const Plan&);
  Configurations (*space_)(const OpCall&, const Problem&);
  PassOver pass_over_;
};

// Why the device or the settings leave an algorithm out, whatever the problem; or nullptr.
inline const char* excluded(const OpCall& call, const Algorithm& algorithm) {
  const KernelStyle style = call.caps().style;
  if (algorithm.style == DeviceStyle::Cpu && style != KernelStyle::Cpu)
    return "the device wants many small work-items";
  if (algorithm.style == DeviceStyle::Gpu && style != KernelStyle::Gpu)
    return "the device wants few large work-items";
  if (algorithm.provider != &kPortable) [[unlikely]]
    return refuse_provider(call.caps(), call.policy(), *algorithm.provider);
  return nullptr;
}

}  // namespace ocltensor::opencl
