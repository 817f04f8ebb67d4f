// Running the cases of all operators.
#include "operator_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "crash.h"
#include "support/cases.h"
#include "support/compare.h"
#include "support/execute.h"
#include "support/record.h"

namespace ocltensor::conformance {
namespace {

using namespace testing;

std::vector<const Operator*> selected(const Backend& backend, const Options& options) {
  std::vector<const Operator*> list;
  uint32_t count = 0;
  must(backend.api().operators->count, &count);
  for (uint32_t i = 0; i < count; ++i) {
    tb_op op = nullptr;
    tb_op_info info{};
    info.struct_size = sizeof info;
    must(backend.api().operators->at, i, &op, &info);
    const Operator* known = find_operator(info.name);
    const bool mine =
        i % static_cast<uint32_t>(options.shards) == static_cast<uint32_t>(options.shard);
    if (known != nullptr && mine && options.wants(known->name)) list.push_back(known);
  }
  return list;
}

uint64_t hash(std::string_view text, uint64_t seed) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Rng(seed).next();
}

// All that a case depends on is (operator, dtype, seed), so that one seed reproduces it. Even seeds
// are contiguous, odd ones strided: two consecutive seeds cover both.
Draw make_draw(const Operator& op, DType dtype, uint64_t seed) {
  Rng rng(hash(op.name, seed * 16 + static_cast<uint64_t>(dtype) + 1));
  static constexpr SizeMode kModes[] = {
      SizeMode::Small,  SizeMode::Small,  SizeMode::Small,  SizeMode::Small,
      SizeMode::Small,  SizeMode::Edge,   SizeMode::Edge,   SizeMode::Edge,
      SizeMode::Edge,   SizeMode::Edge,   SizeMode::Edge,   SizeMode::Edge,
      SizeMode::Medium, SizeMode::Medium, SizeMode::Medium, SizeMode::Large};
  const SizeMode mode = rng.pick(kModes);
  const bool specials = rng.chance(0.4);
  return Draw(rng.next(), seed % 2 == 0 ? LayoutMode::Contiguous : LayoutMode::Strided, mode,
              specials);
}

struct Suite {
  const Backend& backend;
  const Options& options;
  const Sink& say;
  bool first;  // not the continuation of a run that a crash has ended
  std::unique_ptr<Recorder> recorder;

  static Event event(Event::Kind kind, const Operator& op, DType dtype, uint64_t seed,
                     std::string text = {}, std::string arguments = {}) {
    return {.kind = kind,
            .op = op.name,
            .dtype = dtype,
            .seed = seed,
            .text = std::move(text),
            .arguments = std::move(arguments)};
  }
  static Event failed(const Case& c, std::string what) {
    return event(Event::Kind::Failed, *c.op, c.dtype, c.seed, std::move(what), describe(c));
  }

  Event judge(const Case& c, Outcome outcome) {
    if (!outcome.violations.empty()) return failed(c, outcome.violations.front());
    if (outcome.status == TB_UNSUPPORTED)
      return event(Event::Kind::Declined, *c.op, c.dtype, c.seed,
                   fmt::format("{}: {}", reason_name(outcome.reason), outcome.message));
    if (outcome.status != TB_OK)
      return failed(c, fmt::format("status {}: {}", outcome.status, outcome.message));
    const std::vector<Expected> expected = expect(c, options.rounded_weights);
    if (c.unique) outcome.outs = c.unique(outcome.outs);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string difference = mismatch(outcome.outs.at(i), expected[i]);
      if (!difference.empty()) return failed(c, fmt::format("output {}: {}", i, difference));
    }
    if (recorder) recorder->write(c, outcome.outs, expected);
    return event(Event::Kind::Passed, *c.op, c.dtype, c.seed);
  }

  Event run(const Operator& op, const FamilyCases& cases, DType dtype, uint64_t seed) {
    const std::string again =
        fmt::format("--only '^{}$' --dtype {} --seed {} --cases 1", op.name, name(dtype), seed);
    set_current(again, "the making of its arguments");
    std::string arguments = "(none yet)";
    try {
      Draw draw = make_draw(op, dtype, seed);
      Case c = cases.make(op, dtype, draw);
      c.seed = seed;
      arguments = describe(c);
      set_current(again, arguments);
      if (options.verbose)
        fmt::print(stderr, "{} {} {}: {}\n", op.name, name(dtype), seed, arguments);
      return judge(c, execute(backend, c, infer(c), &draw));
    } catch (const NoReference& e) {
      return event(Event::Kind::Failed, op, dtype, seed, std::string("no reference: ") + e.what(),
                   arguments);
    } catch (const std::exception& e) {
      return event(Event::Kind::Failed, op, dtype, seed, e.what(), arguments);
    }
  }
};

struct Task {
  const Operator* op;
  const FamilyCases* cases;
  DType dtype;
  uint64_t seed;
  size_t round;  // within the operator, in random order
};

// Every operator's first case, then every operator's second case, and so on; which dtype and layout
// comes first is random, so that a budget that ends early has still seen all operators and types.
std::vector<Task> plan(Suite& suite, const std::vector<const Operator*>& operators) {
  const Options& options = suite.options;
  std::vector<Task> tasks;
  for (const Operator* op : operators) {
    const FamilyCases* cases = find_cases(op->family);
    if (cases == nullptr) {
      if (suite.first)
        suite.say(Suite::event(Event::Kind::Failed, *op, DType::Float32, 0,
                               fmt::format("no cases for family '{}'", op->family)));
      continue;
    }
    std::vector<Task> own;
    for (const DType dtype : kSuiteTypes)
      if (options.wants(dtype) && cases->accepts(*op, dtype))
        for (int i = 0; i < options.cases; ++i)
          own.push_back({op, cases, dtype, options.seed + static_cast<uint64_t>(i), 0});
    Rng rng(hash(op->name, options.seed));
    rng.shuffle(own);
    for (size_t i = 0; i < own.size(); ++i) own[i].round = i;
    tasks.insert(tasks.end(), own.begin(), own.end());
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& a, const Task& b) { return a.round < b.round; });
  return tasks;
}

// Of all threads: a budget in wall time would cover less on a busy machine.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

CurrentTask current(size_t index, const Task& task) {
  CurrentTask now{.index = index, .op = {}, .dtype = task.dtype, .seed = task.seed};
  const std::string& name = task.op->name;
  std::copy_n(name.begin(), std::min(name.size(), sizeof now.op - 1), now.op);
  return now;
}

}  // namespace

void run_operators(const Backend& backend, const Options& options, const Resume& resume,
                   const Sink& say) {
  Suite suite{backend, options, say, resume.task == 0, nullptr};
  if (!options.record.empty())
    suite.recorder = std::make_unique<Recorder>(options.record, resume.task != 0);
  const std::vector<Task> tasks = plan(suite, selected(backend, options));
  const double start = processor_seconds() - resume.spent;
  for (size_t i = resume.task; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    // Every operator runs once, whatever it takes: a run that skipped one would pass in vain.
    const bool spent =
        options.budget > 0 && task.round > 0 && processor_seconds() - start > options.budget;
    set_current_task(current(i, task));
    Event event = spent || resume.skipped.contains(task.op->name)
                      ? Suite::event(Event::Kind::NotRun, *task.op, task.dtype, task.seed)
                      : suite.run(*task.op, *task.cases, task.dtype, task.seed);
    event.task = i + 1;
    event.tasks = tasks.size();
    event.spent = processor_seconds() - start;
    say(event);
  }
  set_current_task({});
}

void list_operators(const Backend& backend, const Options& options) {
  for (const Operator* op : selected(backend, options)) {
    std::string types;
    const FamilyCases* cases = find_cases(op->family);
    for (const DType dtype : kSuiteTypes)
      if (cases != nullptr && cases->accepts(*op, dtype))
        types += fmt::format(" {}", info(dtype).suffix);
    fmt::print("{:<46} {:<10}{}\n", op->name, op->family, types);
    if (!options.verbose) continue;
    fmt::print("    {}\n", op->text);
    if (op->is(kDataDependentShape)) fmt::print("    flag TB_OP_DATA_DEPENDENT_SHAPE\n");
    if (op->is(kRandom)) fmt::print("    flag TB_OP_RANDOM\n");
  }
}

}  // namespace ocltensor::conformance
