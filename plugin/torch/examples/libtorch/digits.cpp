// The digits network of examples/digits.py in C++: trains on real handwritten digits on `ocl` and
// prints the test accuracy.
//
// usage: digits [--device ocl] [--epochs 12] [--batch 64] [--seed 1]; ends with an error below an
// accuracy of 0.97.
#include <torch/torch.h>
#include <torch_ocl/torch_ocl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace {

namespace nn = torch::nn;

constexpr int64_t kPixels = 64;
constexpr double kGoal = 0.97;

struct Options {
  std::string device = "ocl";
  int64_t epochs = 12, batch = 64;
  uint64_t seed = 1;
};

Options parse(int argc, char** argv) {
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
  Options options;
  for (const auto& [name, value] : given) {
    if (name == "--device")
      options.device = value;
    else if (name == "--epochs")
      options.epochs = std::stoll(value);
    else if (name == "--batch")
      options.batch = std::stoll(value);
    else if (name == "--seed")
      options.seed = std::stoull(value);
    else
      throw std::invalid_argument("unknown option " + name);
  }
  return options;
}

struct Digits {
  torch::Tensor images;  // [n, 1, 8, 8] from 0 to 1
  torch::Tensor labels;  // [n]
};

// In the file's order: a line has the pixels from 0 to 16, and the digit.
Digits load(const std::string& path) {
  std::ifstream file(path);
  TORCH_CHECK(file, "cannot read ", path);
  std::vector<float> numbers;
  for (std::string text; std::getline(file, text, ',');) {
    const size_t end = text.find('\n');  // the last number of a line, and the next line's first
    numbers.push_back(std::stof(text.substr(0, end)));
    if (end != std::string::npos && end + 1 < text.size())
      numbers.push_back(std::stof(text.substr(end + 1)));
  }
  const torch::Tensor rows = torch::tensor(numbers).view({-1, kPixels + 1});
  return {rows.narrow(1, 0, kPixels).reshape({-1, 1, 8, 8}) / 16,
          rows.select(1, kPixels).to(torch::kLong)};
}

nn::Sequential network() {
  nn::Sequential layers;
  const auto block = [&](int64_t inputs, int64_t outputs) {
    layers->push_back(nn::Conv2d(nn::Conv2dOptions(inputs, outputs, 3).padding(1).bias(false)));
    layers->push_back(nn::BatchNorm2d(outputs));
    layers->push_back(nn::ReLU());
  };
  block(1, 32);
  block(32, 64);
  layers->push_back(nn::MaxPool2d(2));
  block(64, 64);
  layers->push_back(nn::MaxPool2d(2));
  layers->push_back(nn::Flatten());
  layers->push_back(nn::Dropout(0.25));
  layers->push_back(nn::Linear(64 * 2 * 2, 10));
  return layers;
}

// The batch moved by up to one pixel in each direction: the same for all its images.
torch::Tensor shifted(const torch::Tensor& images) {
  const torch::Tensor by = torch::randint(3, {2}, torch::kLong);
  return torch::constant_pad_nd(images, {1, 1, 1, 1})
      .narrow(2, by[0].item<int64_t>(), 8)
      .narrow(3, by[1].item<int64_t>(), 8);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A bar of the epoch, redrawn in a terminal, and its numbers.
class Progress {
 public:
  Progress(int64_t epoch, const Options& options, int64_t images)
      : epoch_(epoch), epochs_(options.epochs), images_(images) {}
  void show(int64_t seen, double loss, int64_t right) const {
    if (seen < images_ && isatty(STDOUT_FILENO) == 0) return;
    const auto share = [&](double value) { return value / static_cast<double>(seen); };
    const auto filled = static_cast<size_t>(24 * seen / images_);
    const std::string bar = std::string(filled, '#') + std::string(24 - filled, '.');
    std::printf("\repoch %2ld/%ld %s loss %.3f  accuracy %.3f  %6.0f images/s", epoch_, epochs_,
                bar.c_str(), share(loss), share(static_cast<double>(right)),
                static_cast<double>(seen) / seconds_since(start_));
    if (seen == images_) std::printf("\n");
    std::fflush(stdout);
  }

 private:
  int64_t epoch_, epochs_, images_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void train(nn::Sequential& model, const Digits& digits, const Options& options) {
  const int64_t count = digits.labels.size(0);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(2e-3));
  model->train();
  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const double rate = 2e-3 * std::min(1.0, 2.0 * static_cast<double>(options.epochs - epoch + 1) /
                                                 static_cast<double>(options.epochs));
    for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
    const torch::Tensor order = torch::randperm(count, digits.labels.options());
    torch::Tensor loss_sum = torch::zeros({}, digits.images.options());
    torch::Tensor right = torch::zeros({}, digits.labels.options());
    const Progress progress(epoch, options, count);
    for (int64_t first = 0; first < count; first += options.batch) {
      const int64_t seen = std::min(first + options.batch, count);
      const torch::Tensor rows = order.slice(0, first, seen);
      const torch::Tensor target = digits.labels.index_select(0, rows);
      const torch::Tensor output = model->forward(shifted(digits.images.index_select(0, rows)));
      const torch::Tensor loss = nn::functional::cross_entropy(output, target);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      loss_sum += loss.detach() * (seen - first);
      right += output.argmax(1).eq(target).sum();
      if (first / options.batch % 8 == 0 || seen == count)
        progress.show(seen, loss_sum.item<double>(), right.item<int64_t>());
    }
  }
}

// The part of right answers; prints how often each digit was taken for which.
double evaluate(nn::Sequential& model, const Digits& digits) {
  const torch::NoGradGuard off;
  model->eval();
  const torch::Tensor predicted = model->forward(digits.images).argmax(1).cpu();
  const torch::Tensor truth = digits.labels.cpu();
  const torch::Tensor counts = torch::bincount(truth * 10 + predicted, {}, 100).view({10, 10});
  std::printf("\ntrue \\ predicted\n");
  for (int64_t digit = 0; digit < 10; ++digit) {
    std::printf("  %ld ", digit);
    for (int64_t other = 0; other < 10; ++other) {
      const auto count = counts[digit][other].item<int64_t>();
      std::printf("%5s", count == 0 ? "." : std::to_string(count).c_str());
    }
    std::printf("\n");
  }
  return predicted.eq(truth).to(torch::kDouble).mean().item<double>();
}

int run(const Options& options) {
  const torch::Device device(options.device);
  const bool on_ocl = device.type() == torch::kPrivateUse1;
  if (on_ocl) std::printf("device       %s\n", torch_ocl::device_name(device.index()).c_str());
  torch::manual_seed(options.seed);
  const Digits all = load(DATA);
  const int64_t half = all.labels.size(0) / 2;
  const Digits learned{all.images.slice(0, 0, half).to(device),
                       all.labels.slice(0, 0, half).to(device)};
  const Digits unseen{all.images.slice(0, half).to(device), all.labels.slice(0, half).to(device)};
  nn::Sequential model = network();
  model->to(device);
  const auto start = std::chrono::steady_clock::now();
  train(model, learned, options);
  std::printf("training     %.1f s\n", seconds_since(start));
  const double accuracy = evaluate(model, unseen);
  if (on_ocl) {
    const auto peak = static_cast<double>(torch_ocl::memory_usage().peak_allocated);
    std::printf("memory peak  %.1f MiB\n", peak / (1 << 20));
    std::printf("fallbacks    %zu operators\n", torch_ocl::fallback_counts().size());
  }
  std::printf("test accuracy: %.3f\n", accuracy);
  return accuracy >= kGoal ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    torch_ocl::initialize();
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 2;
  }
}
