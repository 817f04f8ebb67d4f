// Groups of checks, the operators, and what becomes of a process that ends before it is done.
#include "groups.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <regex>

#include "checks.h"
#include "crash.h"
#include "host/cpu/backend.h"
#include "library.h"
#include "operator_suite.h"
#include "process.h"
#include "report.h"

namespace ocltensor::conformance {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::unique_ptr<Backend> open_backend(const Options& options) {
  set_current("opening the plugin", "dlopen and tb_plugin_get_api");
  const tb_api* api = nullptr;
  if (options.plugin == "cpu") {
    api = cpu_api();
  } else {
    const Plugin plugin(options.plugin);
    const tb_host_api host = {sizeof(tb_host_api), TB_ABI_MAJOR, TB_ABI_MINOR, nullptr, nullptr};
    ErrorBuffer error;
    error.raise_if_failed(plugin.get_api(TB_ABI_MAJOR, &host, error.get(), &api));
  }
  set_current("opening the plugin", "device.count");
  int32_t devices = 0;
  testing::must(api->device->count, &devices);
  if (options.device >= devices) {
    char text[2048] = {};
    api->device->report(text, sizeof text);
    fail(TB_E_UNAVAILABLE, "no device {}: the backend has {}.\n{}", options.device, devices, text);
  }
  set_current("opening the plugin", "stream.default_stream and generator.create");
  return std::make_unique<Backend>(options.plugin, api, options.device);
}

// Runs one group of checks; an exception is a failure, too.
template <typename Body>
Event checked(const std::string& title, const char* rule, const Backend* backend,
              const Options& options, Body&& body) {
  Checker checker(title, backend, rule, options.minimal);
  checker.trying("its beginning");
  try {
    body(checker);
  } catch (const std::exception& e) {
    checker.expect(false, "{}", e.what());
  }
  return {.kind = Event::Kind::Check,
          .checks = checker.total(),
          .failures = checker.failures(),
          .notes = checker.declined()};
}

class Runner {
 public:
  explicit Runner(const Options& options) : options_(options), report_(options) {}

  int run() {
    const auto start = Clock::now();
    bool right = options_.plugin == "cpu" || run_loading();
    if (right && options_.abi && options_.only.empty()) right = run_abi();
    if (right && options_.operators) run_suite();
    report_.write();
    const int failures = report_.failures();
    fmt::print("{} in {:.1f} s\n", failures == 0 ? "PASSED" : fmt::format("{} FAILED", failures),
               seconds_since(start));
    return nothing_to_test_ ? 2 : failures == 0 ? 0 : 1;
  }

 private:
  using Body = std::function<void(const Sink&)>;

  // Here or in a process of its own. A Stop is heard last.
  Ending run_body(const Body& body, const Sink& hear) {
    if (!options_.in_process) return run_in_child(body, options_.timeout, hear);
    try {
      body(hear);
    } catch (const std::exception& e) {
      hear({.kind = Event::Kind::Stop, .text = e.what()});
    }
    return {};
  }

  // Backends are opened by the processes that test them; --in-process has one for all.
  const Backend& backend() {
    if (!backend_) backend_ = open_backend(options_);
    return *backend_;
  }

  // False: it had failures, or nothing after it can be tested.
  bool run_group(const std::string& title, const Body& body) {
    const auto start = Clock::now();
    Report::Group group{.title = title, .checks = 0, .failures = {}, .notes = {}, .seconds = 0};
    const Ending ending = run_body(body, [&](const Event& event) {
      if (event.kind == Event::Kind::Stop) {
        stopped_ = true;
        nothing_to_test_ = !event.text.empty();
        if (nothing_to_test_) {
          group.title = "opening the plugin";
          group.failures.push_back(event.text);
        }
        return;
      }
      group.checks += event.checks;
      group.failures.insert(group.failures.end(), event.failures.begin(), event.failures.end());
      group.notes.insert(group.notes.end(), event.notes.begin(), event.notes.end());
    });
    if (ending.how != Ending::How::Done)
      group.failures.push_back(
          fmt::format("{} while trying {}", text_of(ending, options_.timeout), current_what()));
    group.seconds = seconds_since(start);
    const bool right = group.failures.empty();
    report_.group(std::move(group));
    return right && !stopped_;
  }

  bool run_loading() {
    run_group("plugin file", [&](const Sink& say) {
      say(checked("plugin file", rule::kExports, nullptr, options_,
                  [&](Checker& c) { check_file(c, options_.plugin); }));
    });
    if (stopped_) return false;
    run_group("loading", [&](const Sink& say) {
      set_current("loading", "dlopen");
      const Plugin plugin(options_.plugin);
      const tb_api* api = nullptr;
      say(checked("loading", rule::kExports, nullptr, options_,
                  [&](Checker& c) { api = check_loading(c, plugin); }));
      if (api == nullptr) say({.kind = Event::Kind::Stop});  // a failed check has said why
    });
    return !stopped_;
  }

  // False: nothing after it can be tested.
  bool run_abi() {
    int groups = 0;
    const int before = report_.failures();
    const std::regex wanted(options_.check);
    for (const AbiCheck& check : abi_checks()) {
      if (!std::regex_search(check.name, wanted)) continue;
      ++groups;
      const bool right = run_group(check.name, [&](const Sink& say) {
        say(checked(check.name, check.rule, &backend(), options_, check.run));
      });
      // What is behind a table that is none would be called next.
      if (stopped_ || (!right && check.name == abi_checks().front().name)) break;
    }
    fmt::print("ABI: {} groups of checks, {} failures\n", groups, report_.failures() - before);
    return !stopped_;
  }

  void run_suite() {
    Resume resume;
    while (run_operators_from(resume)) {
    }
    if (!stopped_)
      run_group("moments", [&](const Sink& say) {
        say({.kind = Event::Kind::Check, .failures = check_moments(backend(), options_)});
      });
    report_.print_table();
  }

  // Runs the cases from `resume` on. True: a crash or a hang has ended that, and cases are left.
  bool run_operators_from(Resume& resume) {
    const Ending ending =
        run_body([&](const Sink& say) { run_operators(backend(), options_, resume, say); },
                 [&](const Event& event) {
                   if (event.kind == Event::Kind::Stop) {
                     stopped_ = nothing_to_test_ = true;
                     report_.group({.title = "operators", .failures = {event.text}});
                     return;
                   }
                   report_.add(event);
                   resume.spent = std::max(resume.spent, event.spent);
                 });
    if (ending.how == Ending::How::Done || stopped_) return false;
    const std::string text =
        fmt::format("{} while trying {}", text_of(ending, options_.timeout), current_what());
    const CurrentTask task = current_task();
    if (task.index == kNoTask) {
      report_.group({.title = "operators", .failures = {text}});
      return false;
    }
    report_.add(
        {.kind = Event::Kind::Failed,
         .op = task.op,
         .dtype = task.dtype,
         .seed = task.seed,
         .text = text_of(ending, options_.timeout) + ": the operator's other cases are left out",
         .arguments = current_what()});
    resume.task = task.index + 1;
    resume.skipped.insert(task.op);
    return true;
  }

  const Options& options_;
  Report report_;
  std::unique_ptr<Backend> backend_;
  bool stopped_ = false;          // the plugin cannot be tested further
  bool nothing_to_test_ = false;  // because it or its device could not be opened
};

}  // namespace

int run_groups(const Options& options) { return Runner(options).run(); }

void print_list(const Options& options) { list_operators(*open_backend(options), options); }

}  // namespace ocltensor::conformance
