// The measurements behind ocltensor-info --self-test.
#include "self_test.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

namespace tools {
namespace {

namespace ot = ocltensor;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Best of a few repetitions: the machine may be shared.
template <typename Body>
double best_seconds(Body body) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    body();
    best = std::min(best, seconds_since(begin));
  }
  return best;
}

}  // namespace

SelfTest run_self_test(ot::Device device) {
  SelfTest result;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> a(256);
  std::vector<float> b(256);
  for (size_t i = 0; i < a.size(); ++i) a[i] = normal(random), b[i] = normal(random);
  const auto begin = Clock::now();
  const ot::Tensor x = ot::tensor(a, {256}, device);
  const ot::Tensor y = ot::tensor(b, {256}, device);
  const auto sum = ot::add(x, y).to_vector<float>();
  result.first_result_ms = seconds_since(begin) * 1e3;
  result.right = true;
  for (size_t i = 0; i < a.size(); ++i) result.right = result.right && sum[i] == a[i] + b[i];

  constexpr int kLaunches = 1000;
  ot::Tensor z = ot::add(x, y);
  result.launch_us = best_seconds([&] {
                       for (int i = 0; i < kLaunches; ++i) ot::add_out(z, z, y);
                       ot::synchronize(device);
                     }) /
                     kLaunches * 1e6;
  result.round_trip_us = best_seconds([&] {
                           ot::add_out(z, x, y);
                           ot::synchronize(device);
                         }) *
                         1e6;

  constexpr int64_t kCount = int64_t{16} << 20;
  constexpr double kGigabytes = kCount * sizeof(float) * 1e-9;
  std::vector<float> host(kCount);
  for (float& v : host) v = normal(random);
  ot::Tensor source = ot::empty({kCount}, {ot::DType::Float32, device});
  const ot::Tensor host_tensor = ot::from_host(host.data(), ot::Dims{kCount}, ot::DType::Float32);
  result.upload_gb_per_s = kGigabytes / best_seconds([&] {
                             source.copy_(host_tensor);
                             ot::synchronize(device);
                           });
  const ot::Tensor target = ot::empty_like(source);
  result.copy_gb_per_s = 2 * kGigabytes / best_seconds([&] {
                           target.copy_(source);
                           ot::synchronize(device);
                         });
  result.download_gb_per_s = kGigabytes / best_seconds([&] { host_tensor.copy_(source); });
  return result;
}

}  // namespace tools
