// Running the cases of all operators.
#include "operator_suite.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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
  Table& table;
  std::unique_ptr<Recorder> recorder;

  void fail(const Operator& op, DType dtype, uint64_t seed, const std::string& what,
            const std::string& arguments) {
    ++table.cell(op.name, dtype).failed;
    std::string line = fmt::format(
        "FAIL {} {}: {}\n     case: {}\n     again: --plugin {} --only '^{}$' --dtype {} --seed {} "
        "--cases 1",
        op.name, name(dtype), what, arguments, options.plugin, op.name, name(dtype), seed);
    fmt::print("{}{}\n", isatty(STDOUT_FILENO) ? "\r\033[K" : "", line);
    std::fflush(stdout);
    table.fail(std::move(line));
  }

  void judge(const Case& c, Outcome outcome) {
    for (const std::string& v : outcome.violations)
      return fail(*c.op, c.dtype, c.seed, v, describe(c));
    if (outcome.status == TB_UNSUPPORTED) {
      ++table.cell(c.op->name, c.dtype).declined;
      return table.decline(fmt::format("{}: {}", reason_name(outcome.reason), outcome.message));
    }
    if (outcome.status != TB_OK)
      return fail(*c.op, c.dtype, c.seed,
                  fmt::format("status {}: {}", outcome.status, outcome.message), describe(c));
    const std::vector<Expected> expected = expect(c);
    if (c.unique) outcome.outs = c.unique(outcome.outs);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string difference = mismatch(outcome.outs.at(i), expected[i]);
      if (!difference.empty())
        return fail(*c.op, c.dtype, c.seed, fmt::format("output {}: {}", i, difference),
                    describe(c));
    }
    if (recorder) recorder->write(c, outcome.outs, expected);
    ++table.cell(c.op->name, c.dtype).passed;
  }

  void run(const Operator& op, const FamilyCases& cases, DType dtype, uint64_t seed) {
    set_current(
        fmt::format("--only '^{}$' --dtype {} --seed {} --cases 1", op.name, name(dtype), seed));
    std::string arguments = "(none yet)";
    try {
      Draw draw = make_draw(op, dtype, seed);
      Case c = cases.make(op, dtype, draw);
      c.seed = seed;
      arguments = describe(c);
      if (options.verbose)
        fmt::print(stderr, "{} {} {}: {}\n", op.name, name(dtype), seed, arguments);
      judge(c, execute(backend, c, infer(c), &draw));
    } catch (const NoReference& e) {
      fail(op, dtype, seed, std::string("no reference: ") + e.what(), arguments);
    } catch (const std::exception& e) {
      fail(op, dtype, seed, e.what(), arguments);
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
      suite.fail(*op, DType::Float32, 0, fmt::format("no cases for family '{}'", op->family), "");
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

void show_progress(size_t done, size_t all, const std::string& name) {
  if (!isatty(STDOUT_FILENO)) return;
  fmt::print("\r\033[K[{}/{}] {}", done, all, name);
  std::fflush(stdout);
}

}  // namespace

void run_operators(const Backend& backend, const Options& options, Table& table) {
  Suite suite{backend, options, table, nullptr};
  if (!options.record.empty()) suite.recorder = std::make_unique<Recorder>(options.record);
  const std::vector<Task> tasks = plan(suite, selected(backend, options));
  const double start = processor_seconds();
  size_t done = 0;
  for (const Task& task : tasks) {
    // Every operator runs once, whatever it takes: a run that skipped one would pass in vain.
    if (options.budget > 0 && task.round > 0 && processor_seconds() - start > options.budget) {
      ++table.cell(task.op->name, task.dtype).not_run;
      continue;
    }
    show_progress(++done, tasks.size(), task.op->name);
    suite.run(*task.op, *task.cases, task.dtype, task.seed);
  }
  if (isatty(STDOUT_FILENO)) fmt::print("\r\033[K");
}

void list_operators(const Backend& backend, const Options& options) {
  for (const Operator* op : selected(backend, options)) {
    std::string types;
    const FamilyCases* cases = find_cases(op->family);
    for (const DType dtype : kSuiteTypes)
      if (cases != nullptr && cases->accepts(*op, dtype))
        types += fmt::format(" {}", info(dtype).suffix);
    fmt::print("{:<46} {:<10}{}\n", op->name, op->family, types);
  }
}

}  // namespace ocltensor::conformance
