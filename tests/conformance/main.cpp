// ocltensor-conformance: tests any plugin of tensor_backend/plugin.h through that header alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>

#include "checks.h"
#include "crash.h"
#include "host/cpu/backend.h"
#include "library.h"
#include "operator_suite.h"

namespace ocltensor::conformance {
namespace {

int report(const std::string& title, const Checker& checker, bool verbose) {
  for (const std::string& text : checker.failures()) fmt::print("FAIL {}: {}\n", title, text);
  for (const std::string& text : checker.declined()) fmt::print("note {}: {}\n", title, text);
  if (verbose && checker.failures().empty())
    fmt::print("ok   {}: {} checks\n", title, checker.total());
  std::fflush(stdout);
  return static_cast<int>(checker.failures().size());
}

// Runs one group of checks; an exception is a failure, too.
template <typename Body>
int guarded_checks(const std::string& title, const char* rule, const Backend* backend,
                   const Options& options, Body&& body) {
  set_current("ABI check '" + title + "'");
  Checker checker(backend, rule);
  try {
    body(checker);
  } catch (const std::exception& e) {
    checker.expect(false, "{}", e.what());
  }
  return report(title, checker, options.verbose);
}

int run_abi(const Backend& backend, const Options& options) {
  int failures = 0;
  int groups = 0;
  const std::regex wanted(options.check);
  for (const AbiCheck& check : abi_checks()) {
    if (!std::regex_search(check.name, wanted)) continue;
    ++groups;
    failures += guarded_checks(check.name, check.rule, &backend, options, check.run);
    // What is behind a table that is none would be called next.
    if (failures > 0 && check.name == abi_checks().front().name) break;
  }
  fmt::print("ABI: {} groups of checks, {} failures\n", groups, failures);
  return failures;
}

int run_suite(const Backend& backend, const Options& options) {
  Table table;
  run_operators(backend, options, table);
  int failures = table.failures();
  for (const std::string& text : check_moments(backend, options)) {
    fmt::print("FAIL moments: {}\n", text);
    ++failures;
  }
  fmt::print("{}", table.text());
  if (!options.json.empty()) table.write_json(options.json, options.plugin);
  return failures;
}

const tb_api* load(const Options& options, int& failures) {
  if (options.plugin == "cpu") return cpu_api();
  const tb_api* api = nullptr;
  failures += guarded_checks("plugin file", rule::kExports, nullptr, options,
                             [&](Checker& c) { check_file(c, options.plugin); });
  const Plugin plugin(options.plugin);
  failures += guarded_checks("loading", rule::kExports, nullptr, options,
                             [&](Checker& c) { api = check_loading(c, plugin); });
  return api;
}

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
  const auto start = std::chrono::steady_clock::now();
  int failures = 0;
  const tb_api* api = load(options, failures);
  if (api == nullptr) return 1;
  int32_t devices = 0;
  testing::must(api->device->count, &devices);
  if (options.device >= devices) {
    char text[2048] = {};
    api->device->report(text, sizeof text);
    fmt::print(stderr, "no device {}: the backend has {}.\n{}\n", options.device, devices, text);
    return 2;
  }
  const Backend backend(options.plugin, api, options.device);
  if (options.list) {
    list_operators(backend, options);
    return 0;
  }
  if (options.abi && options.only.empty()) failures += run_abi(backend, options);
  if (options.operators) failures += run_suite(backend, options);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  fmt::print("{} in {:.1f} s\n", failures == 0 ? "PASSED" : fmt::format("{} FAILED", failures),
             taken.count());
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ocltensor::conformance

int main(int argc, char** argv) {
  using namespace ocltensor::conformance;
  CLI::App app{"Tests a tensor backend plugin through tensor_backend/plugin.h"};
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
  app.add_option("--json", options.json, "write the result table as JSON");
  app.add_option("--rules", options.rules,
                 "check that this plugin.h states every rule that failures cite, and nothing else");
  app.add_flag("--list", options.list, "print operators and dtypes, test nothing");
  app.add_flag(
      "--quick", options.quick,
      "one contiguous and one strided case each, within a budget of 150 processor seconds");
  app.add_flag("--verbose", options.verbose, "print each case before it runs");
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
