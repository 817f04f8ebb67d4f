// ocltensor-tune: fits kernels to a device by measuring once; writes what it measured as a file for
// others.
#include <fmt/format.h>
#include <ocltensor/ocltensor.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <limits>

#include "tune_screen.h"

namespace {

namespace ot = ocltensor;
namespace tuning = ocltensor::tuning;
using Clock = std::chrono::steady_clock;

std::atomic<bool> interrupted{false};
void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);  // a second Ctrl-C ends the process
}

struct Options {
  std::string device = "ocl", plugin, exported;
  std::vector<std::string> families, dtypes;
  double budget = std::numeric_limits<double>::infinity();
  bool quick = false, list = false, again = false;
};

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

// Those that the options ask for. Error where they ask for what does not exist.
std::vector<tuning::Problem> chosen(const Options& options, ot::Device device) {
  static constexpr char kUnknown[] = "there is no problem of '{}'; --list shows all";
  const std::vector<tuning::Problem> all = tuning::problems(device);
  ot::check(!all.empty(), "{} has nothing to tune", device.text());
  for (const std::string& name : options.families)
    ot::check(std::ranges::find(all, name, &tuning::Problem::family) != all.end(), kUnknown, name);
  for (const std::string& name : options.dtypes)
    ot::check(std::ranges::find(all, name, &tuning::Problem::dtype) != all.end(), kUnknown, name);
  std::vector<tuning::Problem> list;
  for (const tuning::Problem& p : all) {
    // In a hurry: the most common type alone.
    const bool wanted =
        !options.quick || (p.quick && (p.dtype == "float32" || !options.dtypes.empty()));
    if (wanted && is_among(options.families, p.family) && is_among(options.dtypes, p.dtype))
      list.push_back(p);
  }
  return list;
}

// Tunes one problem in a thread of its own, with the line alive meanwhile; returns why it failed.
std::string tune(ot::Device device, const tuning::Problem& problem, const Options& options,
                 Clock::time_point end, const std::function<void()>& show) {
  std::future<void> work = std::async(std::launch::async, [&] {
    tuning::tune(device, problem, options.quick ? tuning::Effort::Quick : tuning::Effort::Full);
  });
  while (work.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    if (interrupted || Clock::now() > end) tuning::stop(device);
    show();
  }
  try {
    work.get();
  } catch (const ot::Error& error) {
    return error.what();
  }
  return {};
}

Clock::time_point end_of(const Options& options) {
  if (!std::isfinite(options.budget)) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.budget));
}

int run(const Options& options, ot::Device device) {
  const std::vector<tuning::Problem> problems = chosen(options, device);
  if (options.list) {
    for (const tuning::Problem& p : problems)
      fmt::print("{:<20} {:<10} {}\n", p.family, p.dtype, p.text);
    return 0;
  }
  fmt::print("{}: {}\n", device.text(), ot::device_properties(device).name);
  if (options.again) ot::backends::forget_measurements();
  std::signal(SIGINT, interrupt);
  tuning::start(device);
  const Clock::time_point end = end_of(options);
  ot::TuneScreen screen(problems.size());
  size_t done = 0;
  for (const tuning::Problem& problem : problems) {
    if (interrupted || Clock::now() > end) break;
    const size_t before = tuning::results(device).size();
    const std::string failure = tune(device, problem, options, end,
                                     [&] { screen.show(done, problem, tuning::progress(device)); });
    const std::vector<tuning::Class> all = tuning::results(device);
    screen.finish(problem, {all.begin() + static_cast<ptrdiff_t>(before), all.end()}, failure);
    ++done;
  }
  ot::print_table(tuning::results(device));
  const std::string file = tuning::measurements_file(device);
  fmt::print("\n{}\n",
             file.empty() ? "There is no cache folder: nothing was kept." : "Kept in " + file);
  const bool stopped = interrupted || done < problems.size() || Clock::now() > end;
  if (stopped) fmt::print("Stopped early: the next run measures what is missing.\n");
  return interrupted ? 130 : 0;
}

int write_export(const Options& options, ot::Device device) {
  std::ofstream file(options.exported);
  file << tuning::export_measurements(device);
  file.close();
  ot::check(file.good(), "cannot write {}", options.exported);
  fmt::print("Written: {}\n", options.exported);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Fits kernels to a device by measuring once; of each problem, every algorithm with every "
      "size that suits the device is run, compared, and timed; what is clearly faster than the "
      "usual choice is kept on disk, and used from then on."};
  Options options;
  app.add_option("--device", options.device, "the device, such as ocl:1")->capture_default_str();
  app.add_option("--family", options.families, "only these families (matmul, conv, ...)")
      ->delimiter(',');
  app.add_option("--dtype", options.dtypes, "only these types (float32, float16, ...)")
      ->delimiter(',');
  app.add_option("--budget", options.budget, "stop after so many seconds")
      ->check(CLI::PositiveNumber);
  app.add_flag("--quick", options.quick,
               "a few problems in float32, a few sizes of each algorithm");
  app.add_flag("--list", options.list, "print the problems, and measure nothing");
  app.add_flag("--again", options.again, "forget all earlier measurements first");
  app.add_option("--export", options.exported,
                 "measure nothing, but write the device's measurements to this file, for others");
  app.add_option("--plugin", options.plugin, "the plugin's file; default: where the library looks");
  app.set_version_flag("--version", OCLTENSOR_VERSION);
  CLI11_PARSE(app, argc, argv);
  try {
    if (!options.plugin.empty())
      ot::load_plugin(std::filesystem::absolute(options.plugin).string());
    const ot::Device device(options.device);
    return options.exported.empty() ? run(options, device) : write_export(options, device);
  } catch (const ot::Error& error) {
    fmt::print(stderr, "ocltensor-tune: {}\n", error.what());
    return 1;
  }
}
