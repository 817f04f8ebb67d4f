// Prints the results of a replay as tables.
#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tools {
namespace {

namespace ot = ocltensor;
using ot::replay::Tensor;

struct TypeSummary {
  size_t tensors = 0, equal = 0, wrong = 0;
  const Tensor* worst = nullptr;
};

std::map<ot::DType, TypeSummary> by_type(const ot::replay::Verdict& verdict) {
  std::map<ot::DType, TypeSummary> summary;
  for (const Tensor& t : verdict.tensors) {
    TypeSummary& s = summary[t.dtype];
    ++s.tensors;
    s.equal += t.different == 0;
    s.wrong += !t.right;
    if (t.different > 0 && (s.worst == nullptr || t.epsilons > s.worst->epsilons)) s.worst = &t;
  }
  return summary;
}

void print_tensor(const Tensor& t) {
  fmt::print("  {:<28} {:<10} {:<18} {} of {} elements differ, by at most {:.3g}",
             t.name.empty() ? "-" : t.name, ot::name(t.dtype), shape_text(t.result->sizes),
             t.different, t.elements, t.error);
  if (ot::epsilon(t.dtype) > 0)
    fmt::print(" where the largest is {:.3g}: {:.1f} eps", t.magnitude, t.epsilons);
  fmt::print("{}\n", t.right ? "" : "  MISMATCH");
}

}  // namespace

void print_verdict(const ot::replay::Verdict& verdict, double tolerance) {
  for (const auto& [dtype, s] : by_type(verdict)) {
    fmt::print("{:<12} {} tensors, {} bit-equal", ot::name(dtype), s.tensors, s.equal);
    if (s.worst != nullptr && ot::epsilon(dtype) > 0)
      fmt::print(", largest error {:.3g} ({:.1f} eps of {:.3g}, in {})", s.worst->error,
                 s.worst->epsilons, s.worst->magnitude, s.worst->name);
    fmt::print("{}\n", s.wrong > 0 ? fmt::format(", {} MISMATCHES", s.wrong) : "");
  }
  if (verdict.unknown_bytes > 0)
    fmt::print("other bytes  {} differ, of scratch and freed memory of no known type\n",
               verdict.unknown_bytes);
  std::vector<const Tensor*> different;
  for (const Tensor& t : verdict.tensors)
    if (t.different > 0) different.push_back(&t);
  std::ranges::sort(different, [](const Tensor* a, const Tensor* b) {
    return a->right != b->right ? b->right : a->epsilons > b->epsilons;
  });
  constexpr size_t kRows = 12;
  for (size_t i = 0; i < std::min(kRows, different.size()); ++i) print_tensor(*different[i]);
  if (different.size() > kRows) fmt::print("  ... and {} more\n", different.size() - kRows);
  if (verdict.bit_equal)
    fmt::print("result       bit-equal ({} of written buffers)\n",
               size_text(verdict.written_bytes));
  else if (verdict.right)
    fmt::print("result       within tolerance ({} eps of a tensor's largest number)\n", tolerance);
  else
    fmt::print("result       MISMATCH\n");
}

json to_json(const ot::replay::Verdict& verdict) {
  json out = {{"right", verdict.right},
              {"bit_equal", verdict.bit_equal},
              {"written_bytes", verdict.written_bytes},
              {"different_bytes", verdict.different_bytes},
              {"unknown_bytes", verdict.unknown_bytes},
              {"tensors", json::array()}};
  for (const Tensor& t : verdict.tensors)
    out["tensors"].push_back({{"operator", t.name},
                              {"output", t.result->output},
                              {"dtype", std::string(ot::name(t.dtype))},
                              {"sizes", t.result->sizes},
                              {"elements", t.elements},
                              {"different", t.different},
                              {"error", t.error},
                              {"magnitude", t.magnitude},
                              {"epsilons", t.epsilons},
                              {"right", t.right}});
  return out;
}

std::vector<LaunchTime> medians(const std::vector<std::vector<uint64_t>>& repetitions) {
  std::vector<LaunchTime> times;
  for (size_t launch = 0; launch < repetitions.front().size(); ++launch) {
    std::vector<uint64_t> each;
    each.reserve(repetitions.size());
    for (const auto& repetition : repetitions) each.push_back(repetition.at(launch));
    const auto middle = each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2);
    std::ranges::nth_element(each, middle);
    times.push_back({launch, static_cast<double>(*middle) * 1e-3});
  }
  std::ranges::stable_sort(times, std::ranges::greater{}, &LaunchTime::microseconds);
  return times;
}

void print_times(const Capture& capture, const std::vector<LaunchTime>& times, size_t rows) {
  const auto launches = launches_of(capture);
  double total = 0;
  for (const LaunchTime& t : times) total += t.microseconds;
  fmt::print("\n{:>10} {:>7} {:>7}  {:<32} {:<28} {}\n", "us", "share", "launch", "kernel",
             "operator", "work-items / per group");
  double rest = total;
  for (size_t i = 0; i < std::min(rows, times.size()); ++i) {
    const LaunchTime& t = times[i];
    const Launch& l = *launches[t.launch];
    rest -= t.microseconds;
    fmt::print("{:>10.1f} {:>6.1f}% {:>7}  {:<32} {:<28} {}\n", t.microseconds,
               total == 0 ? 0 : t.microseconds / total * 100, t.launch,
               capture.kernel(l.kernel).name, label(capture, l), range_text(l));
  }
  if (times.size() > rows)
    fmt::print("{:>10.1f} {:>6.1f}%          {} more launches (--rows 0 shows all)\n", rest,
               total == 0 ? 0 : rest / total * 100, times.size() - rows);
  fmt::print("{:>10.1f}  in all\n", total);
}

json to_json(const Capture& capture, const std::vector<LaunchTime>& times) {
  const auto launches = launches_of(capture);
  json out = json::array();
  for (const LaunchTime& t : times)
    out.push_back({{"launch", t.launch},
                   {"kernel", capture.kernel(launches[t.launch]->kernel).name},
                   {"operator", label(capture, *launches[t.launch])},
                   {"microseconds", t.microseconds}});
  return out;
}

}  // namespace tools
