// gradient-training [DEVICE]: some steps of the demo's network on a device, and the same on the
// CPU.
#include <fmt/format.h>

#include <cmath>

#include "network.h"

namespace {

namespace ot = ocltensor;
using demo::Network;

constexpr int kSteps = 4;
// Of each parameter's largest element. Four steps of a rate of 0.01 add gradients of some hundred
// roundings of 6e-8 each; batch norm divides by deviations under 1, and passes errors on to the
// next step.
constexpr double kTolerance = 1e-4;

// Trains from these parameters and this data; the generator of dropout begins at the same place.
std::vector<double> train(const Network& network, ot::Device device) {
  ot::Generator::default_of(device).set_seed(3);
  ot::Generator data(ot::Device(), 7);
  ot::nn::SGD sgd(network.parameters(), {.lr = 0.01, .momentum = 0.9});
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const ot::Tensor images = rand({32, 1, 8, 8}, ot::DType::Float32, data).to(device);
    const ot::Tensor labels = randint(0, 10, {32}, ot::DType::Int64, data).to(device);
    const ot::Tensor loss = cross_entropy(network(images), labels);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

int run(ot::Device device) {
  const Network exact(ot::DType::Float32), mine(ot::DType::Float32);
  mine.load_state(exact.state());
  mine.to(device);
  const std::vector<double> expected = train(exact, ot::Device()), found = train(mine, device);
  double worst = 0;
  std::string where;
  const auto note = [&](const std::string& name, double off) {
    if (!(off <= worst)) worst = off, where = name;
  };
  for (size_t i = 0; i < found.size(); ++i)
    note(fmt::format("the loss of step {}", i), std::abs(found[i] - expected[i]) / expected[i]);
  const auto state = exact.state(), device_state = mine.state();
  for (size_t i = 0; i < state.size(); ++i) {
    const auto& [name, tensor] = state[i];
    const ot::Tensor off = (device_state[i].second.cpu() - tensor).abs().max();
    note(name, off.item<double>() / tensor.abs().max().item<double>());
  }
  fmt::print("{} steps, loss {:.4f} to {:.4f}; {} is off by {:.2g}, accepted {:.2g}\n", kSteps,
             found.front(), found.back(), where, worst, kTolerance);
  return worst <= kTolerance ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "ocl");
  } catch (const std::exception& e) {
    fmt::print("{}\n", e.what());
    return 2;
  }
}
