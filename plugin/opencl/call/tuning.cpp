// Runs, judges and times the choices that a class of shapes has.
#include "tuning.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "result_check.h"

namespace ocltensor::opencl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWrong = std::numeric_limits<double>::infinity();
constexpr double kMargin = 0.03;  // by which a choice must be faster than the rule's
constexpr size_t kQuick = 6;      // configurations of an algorithm, where few are asked for
constexpr size_t kFinalists = 3;  // choices that are measured in pairs with the rule's
constexpr int kPairs = 7;
constexpr double kBatch = 2000;  // microseconds that a measurement takes at least
constexpr int kLargestBatch = 64;
constexpr double kMuchSlower = 1.5;  // times the best: measured only twice
constexpr int kRepetitions = 4;
constexpr double kSlow = 200'000;  // microseconds from which on there are fewer repetitions
constexpr int kFew = 2;

struct Session {
  std::mutex mutex;  // guards what follows
  std::vector<TunedClass> tuned;
  TuningProgress progress;
  std::set<std::pair<std::string, std::string>> untuned;  // family, class
  std::set<std::string> settled;  // classes that need not be looked at again
};
Session& session() {
  static Session& s = *new Session;  // leaked: threads may run while the process ends
  return s;
}
std::atomic<bool> stopped{false};

std::string name_of(const Question& q) {
  return fmt::format("{} {} {}", q.call.device().index(), q.family.name(), q.shape_text);
}

// One choice, and its time in microseconds: 0 if it is not known, kWrong if it cannot be taken.
struct Trial {
  size_t candidate;
  Configuration configuration{};
  double time = 0;
};

Choice choice_of(const Question& q, const Trial& t) {
  return {q.candidates[t.candidate].algorithm, t.configuration};
}

// All choices of a problem, the rule's first, with what is known of their times.
std::vector<Trial> trials_of(const Question& q, size_t by_rule,
                             const std::vector<size_t>& allowed) {
  std::vector<Trial> trials{{by_rule}};
  for (const size_t i : allowed) {
    if (i != by_rule && q.candidates[i].refusal == nullptr) trials.push_back({i});
    size_t taken = 0;
    for (const Configuration& c : q.configurations(i)) {
      if (q.call.policy().tuning == Tuning::Quick && taken == kQuick) break;
      if (q.refuse(i, c) != nullptr) continue;
      trials.push_back({i, c});
      ++taken;
    }
  }
  const auto known = measurement_of(q.call.device(), q.family, q.shape, q.call.policy().keep);
  if (!known) return trials;
  for (Trial& t : trials)
    for (const Timed& timed : known->times)
      if (timed.choice == choice_of(q, t)) t.time = timed.microseconds;
  return trials;
}

bool is_complete(const std::vector<Trial>& trials) {
  return std::ranges::all_of(trials, [](const Trial& t) { return t.time > 0; });
}

class Tuner {
 public:
  Tuner(const Question& q, std::vector<Trial> trials)
      : q_(q), stream_(q.call.stream()), trials_(std::move(trials)) {}

  // Returns whether the best choice is known now.
  bool run() {
    stream_.synchronize();  // raises a failure of earlier work before measuring
    if (!build()) return false;
    Scratch results = q_.attempt(rule().candidate, {}, true);
    const bool tf32 = q_.call.policy().allow_tf32;
    const ResultCheck expected(q_.results(), tf32 ? 0x1p-10 : 0, results.read());
    if (!expected.is_fit()) {
      logging::debug("tuning", "{} cannot be tuned: all results are the same", q_.problem);
      return false;
    }
    batch_ = std::clamp(static_cast<int>(kBatch / time_of(rule(), 1)), 1, kLargestBatch);
    rule().time = best_time(rule());
    best_ = rule().time;
    for (size_t i = 1; i < trials_.size() && !stopped; ++i) {
      show(i);
      if (trials_[i].time == 0) measure(trials_[i], expected);
    }
    choose();
    return true;
  }
  Measurement measurement() const {
    Measurement m{q_.shape_text, {}, choice_of(q_, trials_[chosen_])};
    for (const Trial& t : trials_)
      if (t.time > 0) m.times.push_back({choice_of(q_, t), t.time});
    return m;
  }
  TunedClass report() const {
    const auto count = [&](auto fits) {
      return static_cast<uint32_t>(std::ranges::count_if(trials_, fits));
    };
    return {q_.call.device().index(),
            q_.family.name(),
            q_.shape_text,
            text_of(choice_of(q_, trials_[0])),
            text_of(choice_of(q_, trials_[chosen_])),
            trials_[0].time,
            trials_[chosen_].time,
            count([](const Trial& t) { return t.time > 0; }),
            count([](const Trial& t) { return t.time == kWrong; }),
            is_complete(trials_)};
  }
  // For a class that is known already.
  void take(const Choice& best) {
    for (size_t i = 0; i < trials_.size(); ++i)
      if (choice_of(q_, trials_[i]) == best) chosen_ = i;
  }

 private:
  Trial& rule() { return trials_[0]; }

  void attempt(const Trial& t) const { (void)q_.attempt(t.candidate, t.configuration, false); }

  // Builds the programs of all choices, side by side where the driver can. A program that does not
  // compile is met again by its choice. False: this call is itself part of a rehearsal that has not
  // everything yet.
  bool build() const {
    Rehearsal& rehearsal = stream_.rehearsal();
    const bool outer = rehearsal.is_on();
    if (!outer) stream_.begin_rehearsal();
    for (const Trial& t : trials_) {
      if (t.time != 0 && &t != trials_.data()) continue;
      try {
        attempt(t);
      } catch (const Error&) {  // met again when its turn comes
      }
    }
    if (outer) return !rehearsal.has_stopped();
    uint32_t missing = stream_.end_rehearsal();
    while (missing > 0 && !stopped) {
      try {
        missing = rehearsal.build_some(q_.call.device());
      } catch (const Error& error) {
        logging::debug("tuning", "{}: {}", q_.problem, error.what());
      }
    }
    stream_.synchronize();
    return !stopped;
  }

  double time_of(const Trial& t, int runs) const {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < runs; ++i) attempt(t);
    stream_.synchronize();
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / runs;
  }
  double best_time(const Trial& t) const {
    double best = time_of(t, batch_);
    const int repetitions = best > kSlow ? kFew : kRepetitions;
    const auto may_win = [&] { return best_ == 0 || best < kMuchSlower * best_; };
    for (int i = 1; i < repetitions && (i < kFew || may_win()); ++i)
      best = std::min(best, time_of(t, batch_));
    return best;
  }

  void measure(Trial& t, const ResultCheck& expected) {
    std::string objection;
    try {
      const Scratch results = q_.attempt(t.candidate, t.configuration, true);
      objection = expected.objection(results.read());
      if (objection.empty()) t.time = best_time(t);
    } catch (const Error& error) {
      if (error.status() == TB_E_OUT_OF_MEMORY) return;  // perhaps another time
      objection = error.what();
    }
    if (!objection.empty()) {
      t.time = kWrong;
      logging::line(logging::Level::Warning, "tuning", "{} is not taken for {}: {}",
                    text_of(choice_of(q_, t)), q_.problem, objection);
    }
    best_ = std::min(best_, t.time);
  }

  // Of the fastest, that which beats the rule's choice in pairs; else the rule's.
  void choose() {
    if (stopped) return;
    std::vector<size_t> order;
    for (size_t i = 1; i < trials_.size(); ++i)
      if (trials_[i].time > 0 && trials_[i].time < rule().time) order.push_back(i);
    std::ranges::sort(order, {}, [&](size_t i) { return trials_[i].time; });
    if (order.size() > kFinalists) order.resize(kFinalists);
    double lowest = 1 - kMargin;
    for (const size_t i : order) {
      show(i);
      const double ratio = ratio_in_pairs(trials_[i]);
      if (stopped) {
        trials_[i].time = 0;  // so that the next time it is measured, and compared, again
        return;
      }
      if (ratio >= lowest) continue;
      lowest = ratio;
      chosen_ = i;
    }
    if (chosen_ != 0) trials_[chosen_].time = lowest * rule().time;
  }
  // The time as a part of the rule's: of the medians or of the minima, whichever is larger.
  double ratio_in_pairs(const Trial& t) const {
    std::vector<double> ratios;
    double fastest = 0, fastest_rule = 0;
    const int pairs = trials_[0].time > kSlow ? kFew + 1 : kPairs;
    for (int i = 0; i < pairs && !stopped; ++i) {
      if (i > kFew && fastest > fastest_rule) break;
      const bool rule_first = i % 2 == 0;
      const double first = time_of(rule_first ? trials_[0] : t, batch_);
      const double second = time_of(rule_first ? t : trials_[0], batch_);
      const double mine = rule_first ? second : first, rule = rule_first ? first : second;
      ratios.push_back(mine / rule);
      fastest = i == 0 ? mine : std::min(fastest, mine);
      fastest_rule = i == 0 ? rule : std::min(fastest_rule, rule);
    }
    if (ratios.empty()) return 1;
    std::ranges::nth_element(ratios, ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2));
    return std::max(ratios[ratios.size() / 2], fastest / fastest_rule);
  }

  void show(size_t i) const {
    const std::lock_guard lock(session().mutex);
    TuningProgress& p = session().progress;
    p.family = q_.family.name();
    p.problem = q_.shape_text;
    p.choice = text_of(choice_of(q_, trials_[i]));
    p.index = static_cast<uint32_t>(i);
    p.count = static_cast<uint32_t>(trials_.size());
    p.rule_time = trials_[0].time;
    p.best_time = best_;
  }

  const Question& q_;
  Stream& stream_;
  std::vector<Trial> trials_;
  size_t chosen_ = 0;
  int batch_ = 1;
  double best_ = 0;
};

bool is_settled(const Question& q) {
  const std::lock_guard lock(session().mutex);
  return session().settled.contains(name_of(q));
}
void settle(const Question& q) {
  const std::lock_guard lock(session().mutex);
  session().settled.insert(name_of(q));
}
void report(TunedClass tuned, bool fresh) {
  const std::lock_guard lock(session().mutex);
  session().tuned.push_back(std::move(tuned));
  session().progress.classes += fresh ? 1 : 0;
}

}  // namespace

Choice tune(const Question& q, size_t by_rule, const std::vector<size_t>& allowed) {
  // One thread at a time, so that measurements do not disturb each other; again in the same one
  // for what an algorithm is made of.
  static auto& measuring = *new std::recursive_mutex;  // leaked: threads may run at the end
  const std::lock_guard lock(measuring);
  Device& device = q.call.device();
  const bool keep = q.call.policy().keep;
  const Choice known = find_measured(device, q.family, q.shape, keep, false);
  if (stopped || is_settled(q)) return known;
  std::vector<Trial> trials = trials_of(q, by_rule, allowed);
  if (trials.size() < 2) return known;
  const bool complete = is_complete(trials);
  Tuner tuner(q, std::move(trials));
  if (complete) {
    tuner.take(known);
  } else if (!tuner.run()) {
    if (!q.call.stream().rehearsal().is_on() && !stopped) settle(q);
    return known;
  } else {
    (void)add_measured(device, q.family, q.shape, tuner.measurement(), keep, Existing::IsReplaced);
  }
  report(tuner.report(), !complete);
  if (!stopped) settle(q);
  return find_measured(device, q.family, q.shape, keep, false);
}

void note_untuned(const Question& q, size_t by_rule, const std::vector<size_t>& allowed) {
  const std::vector<Trial> trials = trials_of(q, by_rule, allowed);
  if (trials.size() < 2 || is_complete(trials)) return;
  const std::lock_guard lock(session().mutex);
  session().untuned.insert({q.family.name(), q.shape_text});
  session().progress.untuned = static_cast<uint32_t>(session().untuned.size());
}

void start_tuning() {
  const std::lock_guard lock(session().mutex);
  stopped = false;
  session().tuned.clear();
  session().progress = {};
  session().untuned.clear();
  session().settled.clear();
}

void stop_tuning() { stopped = true; }

std::vector<TunedClass> tuned_classes() {
  const std::lock_guard lock(session().mutex);
  return session().tuned;
}

TuningProgress tuning_progress() {
  const std::lock_guard lock(session().mutex);
  return session().progress;
}

}  // namespace ocltensor::opencl
