// ocltensor-replay: runs a capture again, compares, times, lists and exports it.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/config.h"
#include "export.h"
#include "ocltensor/error.h"
#include "replay/comparison.h"
#include "replay/names.h"
#include "report.h"
#include "runtime/device/device.h"

namespace {

namespace ot = ocltensor;
using tools::Capture;

struct Options {
  std::string file, device, kernel_dir, export_dir;
  bool list = false, as_json = false;
  int repetitions = 0;
  size_t rows = 40;
  ot::replay::Rules rules;
};

// Prints progress to standard error if that is a terminal; at most one line.
void show(const char* what, size_t done, size_t total) {
  static const bool visible = isatty(2) != 0;
  if (!visible || total == 0) return;
  const size_t filled = 24 * done / total;
  std::string bar;
  for (size_t i = 0; i < 24; ++i) bar += i < filled ? "█" : "░";
  fmt::print(stderr, "\r{:<12} {} {}/{}", what, bar, done, total);
  if (done == total) fmt::print(stderr, "\r{:<72}\r", "");
  std::fflush(stderr);
}

void declare(CLI::App& app, Options& o) {
  app.add_option("FILE", o.file, "a capture: profiler.opencl_capture writes it")->required();
  app.add_option("--device", o.device, "as OCLTENSOR_DEVICES: an index, or a part of a name");
  app.add_flag("--exact", o.rules.exact, "every bit must be as captured");
  app.add_option(
         "--tolerance", o.rules.tolerance,
         "how many epsilons of its type a number may be off, relative to the largest number "
         "of its tensor; integers must be equal")
      ->capture_default_str();
  app.add_flag("--list", o.list, "show programs, buffers and launches; run nothing");
  app.add_option("--time", o.repetitions,
                 "time launch by launch: the median of N repetitions (default 5)")
      ->expected(0, 1)
      ->default_str("5")
      ->check(CLI::Range(1, 10000));
  app.add_option("--rows", o.rows, "of the table of times; 0: all")->capture_default_str();
  app.add_option("--kernel-dir", o.kernel_dir,
                 "take programs and their build options from files of this folder, named as "
                 "--export names them");
  app.add_option("--export", o.export_dir,
                 "write programs, options, launches and a README to this folder; run nothing");
  app.add_flag("--json", o.as_json, "print JSON");
}

int run(const Options& o) {
  const Capture capture(ot::capture_file::open_file(o.file));
  if (!o.as_json) tools::print_heading(capture, o.file);
  nlohmann::json out;
  if (!o.export_dir.empty()) {
    tools::export_report(capture, o.file, o.export_dir);
    if (!o.as_json) fmt::print("exported to  {}\n", o.export_dir);
  }
  if (o.list && !o.as_json) tools::print_list(capture);
  if (o.as_json) out = tools::describe(capture);
  int code = 0;
  if (!o.list && o.export_dir.empty()) {
    ot::opencl::Device& device = ot::opencl::device(0);
    if (!o.as_json)
      fmt::print("replayed on  {} ({}, driver {})\n", device.caps().name, device.caps().platform,
                 device.caps().driver_version);
    ot::replay::Replacements replaced;
    if (!o.kernel_dir.empty()) replaced = ot::replay::read_replacements(capture, o.kernel_dir);
    ot::replay::Replayer replayer(capture, device, replaced, o.repetitions > 0, show);
    replayer.run();
    const auto verdict = ot::replay::compare(capture, replayer, o.rules, show);
    code = verdict.right ? 0 : 1;
    if (o.as_json) {
      out["device"] = device.caps().name;
      out["verdict"] = tools::to_json(verdict);
    } else {
      tools::print_verdict(verdict, o.rules.tolerance);
    }
    std::vector<std::vector<uint64_t>> times;
    for (int i = 0; i < o.repetitions; ++i) {
      replayer.run();
      times.push_back(replayer.times());
    }
    if (o.repetitions > 0) {
      const auto medians = tools::medians(times);
      if (o.as_json)
        out["times"] = tools::to_json(capture, medians);
      else
        tools::print_times(capture, medians, o.rows == 0 ? medians.size() : o.rows);
    }
  }
  // Names may contain bytes that are not UTF-8.
  if (o.as_json)
    std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Runs a capture again and compares with the captured results. Exit status: 0 right, 1 "
      "mismatch, 2 error."};
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    ot::config::validate();
    // A recorder would record the replay itself.
    ot::config::set(ot::config::Knob::CaptureEnabled, "0");
    if (!options.device.empty()) ot::config::set(ot::config::Knob::Devices, options.device);
    return run(options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "ocltensor-replay: {}\n", e.what());
    return 2;
  }
}
