// ocltensor-demo: trains a small convolutional network on handwritten digits on an OpenCL device,
// through the plugin.
#include <fmt/format.h>
#include <ocltensor/ocltensor.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <numeric>

#include "digits.h"
#include "network.h"
#include "screen.h"

namespace {

namespace ot = ocltensor;
using namespace demo;

constexpr double kBar = 0.97;  // an SVM reaches 0.969 on this split
volatile std::sig_atomic_t interrupted = 0;

struct Options {
  std::string device = "ocl";
  std::string dtype = "float32";
  std::string plugin;
  std::string trace;
  int64_t epochs = 12;
  int64_t batch = 64;
  uint64_t seed = 1;
};

struct Batch {
  Tensor images, labels;
};
Batch upload(const Digits& digits, Device device) {
  return {ot::from_host(digits.pixels.data(), Dims{digits.count(), 1, kSide, kSide}, DType::Float32,
                        device),
          ot::from_host(digits.labels.data(), Dims{digits.count()}, DType::Int64, device)};
}

// Fraction of right answers; fills the confusion matrix if given.
double evaluate(const Network& network, const Batch& test,
                std::vector<std::vector<int64_t>>* confusion) {
  const ot::NoGrad off;
  network.eval();
  const auto got = network(test.images).argmax(1).to_vector<int64_t>();
  network.train();
  const auto truth = test.labels.to_vector<int64_t>();
  int64_t right = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    right += got[i] == truth[i];
    if (confusion != nullptr)
      ++(*confusion)[static_cast<size_t>(truth[i])][static_cast<size_t>(got[i])];
  }
  return static_cast<double>(right) / static_cast<double>(got.size());
}

DType compute_type(const std::string& name) {
  for (const DType t : {DType::Float16, DType::BFloat16, DType::Float64})
    if (name == ot::name(t)) return t;
  return DType::Float32;
}

void print_device(Device device) {
  const tb_device_properties p = ot::device_properties(device);
  fmt::print("device       {}  {} ({}, {}), {} compute units, {}\n", device.text(), p.name,
             p.platform, p.driver_version, p.compute_units, bytes_text(p.global_memory));
}

// Trains; returns false when interrupted.
bool train(const Network& network, const DataSet& data, const Batch& test, const Options& options,
           Device device, Progress& progress, Compiling& compiling) {
  nn::Adam adam(network.parameters(), {});
  std::mt19937_64 random(options.seed);
  std::vector<int64_t> order(static_cast<size_t>(data.train.count()));
  std::iota(order.begin(), order.end(), 0);
  const auto size = static_cast<size_t>(options.batch);
  const auto steps = static_cast<int64_t>((order.size() + size - 1) / size);
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    const double rate = 2e-3 * std::min(1.0, 2.0 * static_cast<double>(options.epochs - epoch) /
                                                 static_cast<double>(options.epochs));
    double loss_sum = 0;
    double right_sum = 0;
    int64_t seen = 0;
    for (int64_t step = 0; step < steps; ++step) {
      if (interrupted) return false;
      const auto first = order.begin() + step * options.batch;
      const std::vector<int64_t> rows(
          first, first + std::min<int64_t>(options.batch, order.end() - first));
      const Batch batch = upload(shifted_batch(data.train, rows, random), device);
      const Tensor output = network(batch.images);
      const Tensor loss = ot::cross_entropy(output, batch.labels);
      adam.zero_grad();
      loss.backward();
      adam.set_lr(rate);
      adam.step();
      const Tensor right = (output.argmax(1) == batch.labels).sum();
      const auto count = static_cast<int64_t>(rows.size());
      loss_sum += loss.item<double>() * static_cast<double>(count);
      right_sum += right.item<double>();
      seen += count;
      compiling.stop();
      progress.step(epoch, step, loss_sum / static_cast<double>(seen),
                    right_sum / static_cast<double>(seen), count);
    }
    progress.epoch_done(epoch, loss_sum / static_cast<double>(seen),
                        right_sum / static_cast<double>(seen), evaluate(network, test, nullptr));
  }
  return true;
}

void print_summary(Device device, const Progress& progress) {
  const tb_counters counters = ot::counters(device);
  fmt::print("\ntraining     {:.1f} s, {:.0f} images/s\n", progress.seconds(),
             static_cast<double>(progress.images()) / progress.seconds());
  fmt::print("memory       peak {} in use, {} reserved\n",
             bytes_text(ot::max_allocated_memory(device)),
             bytes_text(ot::driver_allocated_memory(device)));
  fmt::print("operators    {} run, {} kernel launches, {} copies ({})\n", counters.operators,
             counters.launches, counters.copies, bytes_text(counters.copied_bytes));
  fmt::print("programs     {} compiled, {} taken from the cache\n", counters.program_builds,
             counters.program_loads);
  const auto fallbacks = ot::fallback_counts();
  fmt::print("fallbacks    {}\n", fallbacks.empty() ? "none" : "");
  for (const auto& f : fallbacks) fmt::print("             {} x {}\n", f.count, f.name);
}

int run(const Options& options) {
  if (!options.plugin.empty()) ot::load_plugin(options.plugin);
  const Device device(options.device);
  print_device(device);
  const DataSet data = load_digits();
  fmt::print(
      "data         {} digits to train on, {} to test on; {} epochs in batches of {}, {}, seed "
      "{}\n\n",
      data.train.count(), data.test.count(), options.epochs, options.batch, options.dtype,
      options.seed);
  std::fflush(stdout);  // a cold driver compiles kernels for a while before the first epoch ends
  ot::Generator::default_of(device).set_seed(options.seed);

  Compiling compiling([device]() -> uint64_t {
    try {  // programs that additional processes compile are loaded here
      const tb_counters c = ot::counters(device);
      return c.program_builds == 0 ? 0 : c.program_builds + c.program_loads;
    } catch (const ot::Error&) {
      return 0;  // a backend that counts nothing
    }
  });
  const ot::DefaultDevice on(device);
  const Network network(compute_type(options.dtype));
  const Batch test = upload(data.test, device);
  const int64_t steps = (data.train.count() + options.batch - 1) / options.batch;
  Progress progress(options.epochs, steps);
  if (!options.trace.empty()) ot::profiler::start("interval", false, options.trace, device);
  const bool finished = train(network, data, test, options, device, progress, compiling);
  compiling.stop();
  if (!options.trace.empty()) ot::profiler::stop(device);
  if (!finished) fmt::print("\ninterrupted\n");

  std::vector<std::vector<int64_t>> confusion(kClasses, std::vector<int64_t>(kClasses));
  const double accuracy = evaluate(network, test, &confusion);
  print_confusion(confusion);
  print_summary(device, progress);
  fmt::print("test accuracy: {:.3f}\n", accuracy);
  if (!finished) return 130;
  return accuracy >= kBar ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // PoCL up to 5 compiles kernels twice otherwise.
  setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
  Options options;
  CLI::App app{
      "Trains a convolutional network on handwritten digits; ends with an error below an accuracy "
      "of 0.97."};
  app.add_option("--device", options.device, "cpu, ocl or ocl:N")->capture_default_str();
  app.add_option("--epochs", options.epochs, "passes over the training set")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "images in a step")
      ->check(CLI::Range(2, 898))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of everything random")->capture_default_str();
  app.add_option("--dtype", options.dtype, "of convolutions and products")
      ->check(CLI::IsMember({"float32", "float64", "float16", "bfloat16"}))
      ->capture_default_str();
  app.add_option("--plugin", options.plugin,
                 "path of the plugin (default: found beside the library)");
  app.add_option("--trace", options.trace,
                 "write a trace for https://ui.perfetto.dev to this file");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGINT, [](int) { interrupted = 1; });
  try {
    return run(options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "\nocltensor-demo: {}\n", e.what());
    return 2;
  }
}
