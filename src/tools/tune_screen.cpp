// Lines and the table of ocltensor-tune.
#include "tune_screen.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace ocltensor {
namespace {

using tuning::Class;

constexpr size_t kBar = 24;
constexpr size_t kColumns = 119;

double speedup(const Class& c) {
  return c.rule_time > 0 && c.best_time > 0 ? c.rule_time / c.best_time : 1;
}

std::string name_of(const tuning::Problem& p) {
  return fmt::format("{} {} {}", p.family, p.dtype, p.text);
}

std::string bar(size_t done, size_t all) {
  const size_t filled = all == 0 ? kBar : kBar * done / all;
  return std::string(filled, '#') + std::string(kBar - filled, '.');
}

std::string duration(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  return seconds < 5400 ? fmt::format("{:.0f} min", seconds / 60)
                        : fmt::format("{:.1f} h", seconds / 3600);
}

std::string sentence(const Class& c) {
  const std::string wrong = c.wrong == 0 ? "" : fmt::format(", {} of them wrong", c.wrong);
  const std::string rest = c.complete ? "" : "; not complete";
  if (c.best == c.rule)
    return fmt::format("{} stays ({:.1f} us; {} choices{}{})", c.rule, c.rule_time, c.tried, wrong,
                       rest);
  return fmt::format("{} is {:.2f} times as fast as {} ({:.1f} us; {} choices{}{})", c.best,
                     speedup(c), c.rule, c.best_time, c.tried, wrong, rest);
}

}  // namespace

TuneScreen::TuneScreen(size_t problems)
    : problems_(problems),
      terminal_(isatty(STDOUT_FILENO) != 0),
      begin_(std::chrono::steady_clock::now()) {}

std::string TuneScreen::time_left(size_t done) const {
  if (done == 0) return "";
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
  const double each = spent.count() / static_cast<double>(done);
  return fmt::format(", {} left", duration(each * static_cast<double>(problems_ - done)));
}

void TuneScreen::show(size_t done, const tuning::Problem& problem,
                      const tuning::Progress& progress) {
  if (!terminal_) return;
  std::string line = fmt::format("[{}] {}/{}{}  {}", bar(done, problems_), done + 1, problems_,
                                 time_left(done), name_of(problem));
  if (progress.best_time > 0)
    line += fmt::format("  {}/{} best {:.2f}x", progress.index + 1, progress.count,
                        progress.rule_time / progress.best_time);
  fmt::print("\r\033[K{}", line.substr(0, kColumns));
  std::fflush(stdout);
}

void TuneScreen::clear() {
  if (!terminal_) return;
  fmt::print("\r\033[K");
  std::fflush(stdout);
}

void TuneScreen::finish(const tuning::Problem& problem, const std::vector<Class>& found,
                        const std::string& failure) {
  clear();
  if (!failure.empty()) fmt::print("{}: not tuned: {}\n", name_of(problem), failure);
  for (const Class& c : found) {
    // What an algorithm is made of has classes of its own, such as products behind convolutions.
    const std::string inner =
        c.family == problem.family ? "" : fmt::format(", {} {}", c.family, c.shapes);
    fmt::print("{}{}: {}\n", name_of(problem), inner, sentence(c));
  }
  std::fflush(stdout);
}

void print_table(const std::vector<Class>& classes) {
  struct Row {
    size_t count = 0, changed = 0;
    double logarithms = 0, best = 1, worst = INFINITY;
  };
  std::map<std::string, Row> rows;
  for (const Class& c : classes) {
    const double s = speedup(c);
    for (Row* row : {&rows[c.family], &rows["~all"]}) {  // sorted last
      ++row->count;
      row->changed += c.best != c.rule ? 1 : 0;
      row->logarithms += std::log(s);
      row->best = std::max(row->best, s);
      row->worst = std::min(row->worst, s);
    }
  }
  if (rows.empty()) return;
  fmt::print("\n{:<20} {:>8} {:>8} {:>15} {:>6} {:>6}\n", "times as fast as", "classes", "changed",
             "geometric mean", "best", "worst");
  for (const auto& [family, row] : rows)
    fmt::print("{:<20} {:>8} {:>8} {:>15.2f} {:>6.2f} {:>6.2f}\n",
               family == "~all" ? "all" : family, row.count, row.changed,
               std::exp(row.logarithms / static_cast<double>(row.count)), row.best, row.worst);
}

}  // namespace ocltensor
