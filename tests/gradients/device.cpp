// gradient-device: calls of every row of derivatives.def on a device, their gradients compared with
// the CPU's in float64, which the other tests of this folder judge.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "calls.h"

namespace ocltensor::testing {
namespace {

struct Options {
  std::string device = "ocl", dtype, only;
  uint64_t seeds = 3;
  double budget = 0;  // seconds; 0: none
  bool verbose = false;
};

// Of 1 + the largest element. A derivative is a chain of operators that the conformance kit judges
// one by one, each to some units of the last place of its largest terms. Sums here have some
// hundred terms, so that a gradient may be off by 100 units where its terms cancel; linear algebra
// adds a condition number of 4. In float32: 1e-7 times 100. Devices compute special functions in
// float64 to 1e-12 or so (series and recurrences).
double tolerance_of(DType type) { return type == DType::Float64 ? 1e-11 : 1e-5; }

struct Tally {
  int agree = 0, wrong = 0, declined = 0;
  double worst = 0;  // as a share of the tolerance
  std::string worst_row;
  std::map<std::string, std::string> reasons;  // of what was declined, by row
  std::set<std::string> compared;              // rows
};

// How far off the worst element is, as a share of the tolerance.
double difference(const HostTensor& mine, const HostTensor& exact, double tolerance) {
  double largest = 0, off = 0;
  const bool complex = is_complex(exact.dtype);
  for (int64_t i = 0; i < exact.numel(); ++i)
    if (std::isfinite(exact.magnitude(i))) largest = std::max(largest, exact.magnitude(i));
  for (int64_t i = 0; i < exact.numel(); ++i) {
    const double d = complex ? std::abs(mine.complex(i) - exact.complex(i))
                             : std::abs(mine.real(i) - exact.real(i));
    const bool same = !complex && (mine.real(i) == exact.real(i) ||
                                   (std::isnan(mine.real(i)) && std::isnan(exact.real(i))));
    if (same) continue;
    off = std::isfinite(d) ? std::max(off, d) : INFINITY;
  }
  return off / (tolerance * (1 + largest));
}

void compare(const DifferentiableOperator& row, const Case& c, DType type, const Options& options,
             Tally& tally) {
  const Call exact(c, row.arguments);
  if (exact.leaves().empty()) return;
  const std::vector<Tensor> expected = exact.gradients();
  std::vector<Tensor> found;
  const Call mine(c, row.arguments, Device(options.device),
                  is_complex(c.dtype) ? std::nullopt : std::optional(type));
  try {
    found = mine.gradients();
  } catch (const Error& e) {
    if (e.status() != TB_UNSUPPORTED) throw;
    ++tally.declined;
    tally.reasons.try_emplace(fmt::format("{} {}", row.name, name(type)), e.what());
    return;
  }
  double worst = found.size() == expected.size() ? 0 : INFINITY;
  for (size_t i = 0; i < found.size() && std::isfinite(worst); ++i)
    worst =
        std::max(worst, difference(to_host(found[i]), to_host(expected[i]), tolerance_of(type)));
  tally.compared.insert(row.name);
  if (worst > tally.worst) {
    tally.worst = worst;
    tally.worst_row = fmt::format("{} {}", row.name, name(type));
  }
  ++(worst <= 1 ? tally.agree : tally.wrong);
  if (worst > 1 || options.verbose)
    fmt::print("{} {} {} seed {}: off by {:.2g} of the tolerance: {}\n",
               worst <= 1 ? "ok   " : "WRONG", row.name, name(type), c.seed, worst, describe(c));
}

// What a case is made in, and what the device computes it in.
struct Run {
  DType made, computed;
};
std::vector<Run> runs_of(const DifferentiableOperator& row, const Options& options) {
  const bool wide = (device_properties(Device(options.device)).features & TB_FEATURE_FP64) != 0;
  std::vector<Run> found;
  for (const DType type : checked_types(row)) {
    found.push_back({type, type == DType::Float64 ? DType::Float32 : type});
    if (type == DType::Float64 && wide) found.push_back({type, type});
  }
  std::erase_if(found, [&](const Run& r) {
    return !options.dtype.empty() && options.dtype != name(r.computed);
  });
  return found;
}

int run(const Options& options) {
  std::vector<DifferentiableOperator> rows = checked_operators();
  std::erase_if(rows, [&](const auto& row) {
    return !options.only.empty() && !std::regex_search(row.name, std::regex(options.only));
  });
  Rng(1).shuffle(rows);  // a budget reaches some of every family
  const auto start = std::chrono::steady_clock::now();
  Tally tally;
  int left = 0;
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // Every row once in its first type, then the others.
  for (uint64_t seed = 0; seed < options.seeds; ++seed)
    for (size_t pass = 0; pass < 2; ++pass)
      for (const DifferentiableOperator& row : rows) {
        const std::vector<Run> runs = runs_of(row, options);
        for (size_t i = pass; i < (pass == 0 ? std::min<size_t>(1, runs.size()) : runs.size()); ++i)
          if (options.budget > 0 && spent() > options.budget)
            ++left;
          else if (const auto c = gradient_case(*find_operator(row.name), runs[i].made, seed))
            compare(row, *c, runs[i].computed, options, tally);
      }
  for (const auto& [row, reason] : tally.reasons)
    fmt::print("declined: {}: {}\n", row, reason.substr(0, 160));
  const tb_device_properties p = device_properties(Device(options.device));
  fmt::print(
      "{}: {} of {} rows compared, {} calls agree, {} wrong, {} declined, {} not run; the "
      "worst, {}, is off by {:.2g} of the tolerance\n",
      p.name, tally.compared.size(), rows.size(), tally.agree, tally.wrong, tally.declined, left,
      tally.worst_row, tally.worst);
  return tally.wrong == 0 && tally.agree > 0 ? 0 : 1;
}

}  // namespace
}  // namespace ocltensor::testing

int main(int argc, char** argv) {
  ocltensor::testing::Options options;
  CLI::App app{"Compares gradients on a device with the CPU's"};
  app.add_option("--device", options.device, "ocl, ocl:1, ...");
  app.add_option("--dtype", options.dtype, "float32, float64 or complex64; else all");
  app.add_option("--only", options.only, "regular expression: rows to run");
  app.add_option("--seeds", options.seeds, "calls per row and type");
  app.add_option("--budget", options.budget, "seconds; what is left then is reported as not run");
  app.add_flag("--verbose", options.verbose, "print every call");
  CLI11_PARSE(app, argc, argv);
  try {
    return ocltensor::testing::run(options);
  } catch (const std::exception& e) {
    fmt::print("{}\n", e.what());
    return 2;
  }
}
