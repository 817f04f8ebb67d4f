// Printing and writing results.
#include "report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ocltensor/error.h"

namespace ocltensor::conformance {
namespace {

bool on_terminal() {
  static const bool yes = isatty(STDOUT_FILENO) != 0;
  return yes;
}

void print(const std::string& line) {
  fmt::print("{}{}\n", on_terminal() ? "\r\033[K" : "", line);
  std::fflush(stdout);
}

// Text of an XML document: control characters have no form there.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += code < 0x20 && c != '\n' && c != '\t' ? '?' : c;
  }
  return out;
}

struct Suite {
  int tests = 0, failures = 0, skipped = 0;
  std::string text;

  void begin(const std::string& folder, const std::string& name, double seconds) {
    ++tests;
    text += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">\n", folder,
                        escaped(name), seconds);
  }
  void fail(const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    ++failures;
    text += fmt::format("   <failure message=\"{}\">{}</failure>\n", escaped(lines.front()),
                        escaped(fmt::format("{}", fmt::join(lines, "\n"))));
  }
  void skip(const std::string& why) {
    ++skipped;
    text += fmt::format("   <skipped message=\"{}\"/>\n", escaped(why));
  }
  void end() { text += "  </testcase>\n"; }
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << "\n";
  file.close();
  check(static_cast<bool>(file), "cannot write '{}': check folder and permissions", path);
}

}  // namespace

void Report::group(Group group) {
  for (const std::string& text : group.failures)
    print(fmt::format("FAIL {}: {}", group.title, text));
  for (const std::string& text : group.notes) print(fmt::format("note {}: {}", group.title, text));
  if (options_.verbose && group.failures.empty())
    print(fmt::format("ok   {}: {} checks", group.title, group.checks));
  groups_.push_back(std::move(group));
}

void Report::add(const Event& e) {
  Cell& cell = table_.cell(e.op, e.dtype);
  switch (e.kind) {
    case Event::Kind::Passed: ++cell.passed; break;
    case Event::Kind::Declined:
      ++cell.declined;
      table_.decline(e.text);
      break;
    case Event::Kind::NotRun: ++cell.not_run; break;
    default: {
      const std::string type(name(e.dtype));
      std::string line = fmt::format(
          "FAIL {} {}: {}\n     case: {}\n     again: --plugin {} --only '^{}$' --dtype {} --seed "
          "{} "
          "--cases 1",
          e.op, type, e.text, e.arguments, options_.plugin, e.op, type, e.seed);
      print(line);
      table_.fail(e.op, e.dtype, std::move(line));
    }
  }
  if (on_terminal()) {
    fmt::print("\r\033[K[{}/{}] {}{}", e.task, e.tasks, e.op, e.task == e.tasks ? "\r\033[K" : "");
    std::fflush(stdout);
  }
}

int Report::failures() const {
  size_t sum = table_.failures().size();
  for (const Group& group : groups_) sum += group.failures.size();
  return static_cast<int>(sum);
}

void Report::print_table() const { fmt::print("{}", table_.text()); }

void Report::write() const {
  if (!options_.json.empty()) write_json();
  if (!options_.junit.empty()) write_junit();
}

void Report::write_json() const {
  nlohmann::json out{{"plugin", options_.plugin}, {"declined", table_.reasons()}};
  out["failures"] = nlohmann::json::array();
  for (const Table::Failure& failure : table_.failures()) out["failures"].push_back(failure.line);
  for (const Group& group : groups_)
    out["groups"].push_back({{"title", group.title},
                             {"checks", group.checks},
                             {"failures", group.failures},
                             {"notes", group.notes}});
  for (const auto& [op, cells] : table_.rows())
    for (const auto& [dtype, c] : cells)
      out["operators"][op][std::string(name(dtype))] = {{"passed", c.passed},
                                                        {"failed", c.failed},
                                                        {"declined", c.declined},
                                                        {"not_run", c.not_run}};
  write_file(options_.json, out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Report::write_junit() const {
  Suite suite;
  for (const Group& group : groups_) {
    suite.begin("abi", group.title, group.seconds);
    suite.fail(group.failures);
    if (group.failures.empty() && group.checks == 0 && !group.notes.empty())
      suite.skip(group.notes.front());
    suite.end();
  }
  for (const auto& [op, cells] : table_.rows())
    for (const auto& [dtype, c] : cells) {
      suite.begin("operators." + op, std::string(name(dtype)), 0);
      std::vector<std::string> lines;
      for (const Table::Failure& failure : table_.failures())
        if (failure.op == op && failure.dtype == dtype) lines.push_back(failure.line);
      suite.fail(lines);
      if (c.failed == 0 && c.passed == 0) suite.skip(c.declined > 0 ? "declined" : "not run");
      suite.end();
    }
  write_file(options_.junit,
             fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite "
                         "name=\"ocltensor-conformance {}\" tests=\"{}\" failures=\"{}\" "
                         "errors=\"0\" skipped=\"{}\">\n{} </testsuite>\n</testsuites>",
                         escaped(options_.plugin), suite.tests, suite.failures, suite.skipped,
                         suite.text));
}

}  // namespace ocltensor::conformance
