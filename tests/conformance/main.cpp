// ocltensor-conformance: tests any plugin of tensor_backend/plugin.h through that header alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>

#include "crash.h"
#include "groups.h"
#include "rules.h"

namespace ocltensor::conformance {
namespace {

// Does the header say everything that failures cite?
int check_rules(const std::string& header) {
  std::ifstream file(header);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  int missing = 0;
  for (const char* rule : rule::kAll) {
    if (text.find(rule) != std::string::npos) continue;
    fmt::print("'{}' does not say: {}\n", header, rule);
    ++missing;
  }
  return missing == 0 ? 0 : 1;
}

int run(const Options& options) {
  if (!options.rules.empty()) return check_rules(options.rules);
  if (options.list) {
    print_list(options);
    return 0;
  }
  return run_groups(options);
}

}  // namespace
}  // namespace ocltensor::conformance

int main(int argc, char** argv) {
  using namespace ocltensor::conformance;
  CLI::App app{"Tests a tensor backend plugin through tensor_backend/plugin.h"};
  app.get_formatter()->column_width(34);  // no option's description begins in its own column
  Options options;
  std::string types;
  app.add_option("--plugin", options.plugin,
                 "path of the plugin, or 'cpu' for the linked-in backend");
  app.add_option("--device", options.device, "device index");
  app.add_option("--shards", options.shards, "split the operators into so many parts")
      ->check(CLI::Range(1, 64));
  app.add_option("--shard", options.shard, "which part, from 0")->check(CLI::Range(0, 63));
  app.add_option("--only", options.only, "regular expression: operators to test");
  app.add_option("--check", options.check, "regular expression: ABI checks to run");
  app.add_option("--dtype", types, "comma-separated dtypes, e.g. float32,int64");
  app.add_option("--cases", options.cases, "random cases per operator and dtype")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--seed", options.seed, "seed of the first case; later ones count up");
  app.add_option(
      "--budget", options.budget,
      "processor seconds for the operator part; every operator runs once, what else does not "
      "fit is reported as not run");
  app.add_option("--record", options.record, "write all passed cases for tests/oracle/replay.py");
  app.add_option("--json", options.json, "write the results as JSON");
  app.add_option("--junit", options.junit, "write the results as JUnit's XML");
  app.add_option("--timeout", options.timeout,
                 "seconds that a group of ABI checks, or a case, may take; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--in-process", options.in_process,
               "run everything in this process, for debuggers: the first crash ends the run");
  app.add_flag(
      "--minimal", options.minimal,
      "the profile of a smallest useful backend: generators, pinned memory, statistics, "
      "limits, timing and the profiler may be declined, and operators are those that it has");
  app.add_flag("--rounded-weights", options.rounded_weights,
               "accept 16-bit attention whose weights are rounded to the operands' type, as for "
               "matrix units and in PyTorch");
  app.add_option("--rules", options.rules,
                 "check that this plugin.h states every rule that failures cite, and nothing else");
  app.add_flag("--list", options.list,
               "print operators and dtypes, with --verbose schemas and flags too; test nothing");
  app.add_flag(
      "--quick", options.quick,
      "one contiguous and one strided case each, within a budget of 150 processor seconds");
  app.add_flag("--verbose", options.verbose,
               "print each case before it runs, and groups that pass");
  app.add_flag("!--no-abi", options.abi, "skip the ABI part");
  app.add_flag("!--no-operators", options.operators, "skip the operator part");
  CLI11_PARSE(app, argc, argv);
  if (options.quick) {
    options.cases = 2;
    if (options.budget == 0) options.budget = 150;
  }
  install_crash_handler();
  try {
    for (const std::string& name : CLI::detail::split(types, ','))
      if (!name.empty()) options.dtypes.push_back(ocltensor::dtype_from_name(name));
    return run(options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "ocltensor-conformance: {}\n", e.what());
    return 2;
  }
}
