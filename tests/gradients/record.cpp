// gradient-record FILE [SEEDS]: writes calls of every row of derivatives.def with the CPU's
// gradients, for tests/oracle/gradients.py.
#include "support/record.h"

#include <fmt/format.h>

#include "calls.h"

namespace ocltensor::testing {
namespace {

RecordedGradients gradients_of(const Operator& op, const Call& f) {
  RecordedGradients found;
  found.result_form = result_form(op);
  const std::vector<Tensor> gradients = f.gradients();
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Leaf& leaf = f.leaves()[i];
    found.leaves.push_back(
        {leaf.argument, leaf.position, preparation_of(op, leaf.argument), to_host(gradients[i])});
  }
  for (const Tensor& w : f.weights()) {
    found.weighted.push_back(w.defined());
    found.weights.push_back(w.defined() ? to_host(w) : HostTensor());
  }
  return found;
}

int record(const std::string& path, uint64_t seeds) {
  Recorder recorder(path, false);
  int calls = 0;
  for (const DifferentiableOperator& row : checked_operators()) {
    const Operator& op = *find_operator(row.name);
    for (const DType type : checked_types(row))
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        const std::optional<Case> c = gradient_case(op, type, seed);
        if (!c) continue;
        const Call f(*c, row.arguments);
        if (f.leaves().empty()) continue;
        recorder.write(*c, gradients_of(op, f));
        ++calls;
      }
  }
  fmt::print("{} calls\n", calls);
  return calls > 0 ? 0 : 1;
}

}  // namespace
}  // namespace ocltensor::testing

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    fmt::print("usage: gradient-record FILE [SEEDS]\n");
    return 2;
  }
  try {
    return ocltensor::testing::record(argv[1], argc == 3 ? std::stoull(argv[2]) : 8);
  } catch (const std::exception& e) {
    fmt::print("{}\n", e.what());
    return 2;
  }
}
