// Trains a small classifier, saves its parameters as safetensors, and loads them into another one.
#include <ocltensor/ocltensor.h>

#include <filesystem>
#include <iostream>

namespace ot = ocltensor;

struct Net : ot::nn::Module {
  ot::nn::Linear hidden{2, 32}, out{32, 2};
  Net() { add("hidden", hidden), add("out", out); }
  ot::Tensor operator()(const ot::Tensor& x) const { return out(hidden(x).relu()); }
};

int main() {
  const ot::DefaultDevice device(ot::is_available() ? "ocl" : "cpu");
  ot::manual_seed(1);

  // Points in a square; class 1 where both coordinates have the same sign.
  const ot::Tensor x = ot::rand({512, 2}) * 2 - 1;
  const ot::Tensor labels = (x.select(1, 0) * x.select(1, 1) > 0).to(ot::DType::Int64);
  const std::string file = "train.safetensors";

  const Net net;
  ot::nn::AdamW adam(net.parameters(), {.lr = 0.02});
  for (int step = 0; step < 200; ++step) {
    const ot::Tensor loss = ot::cross_entropy(net(x), labels);
    adam.zero_grad();
    loss.backward();
    adam.step();
  }
  ot::save_safetensors(file, net.state());
  const Net other;
  other.load_state(ot::load_safetensors(file));

  const auto accuracy = [&](const Net& of) {
    const ot::NoGrad off;
    return (of(x).argmax(1) == labels).to(ot::DType::Float32).mean().item<float>();
  };
  std::cout << std::boolalpha << net.parameter_count()
            << " parameters, accuracy above 0.95: " << (accuracy(net) > 0.95f) << "\n";
  std::cout << "the same after loading: " << (accuracy(other) == accuracy(net)) << "\n";
  std::filesystem::remove(file);
}
