// The rows, and how each is timed.
#include "speed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tools {
namespace {

namespace ot = ocltensor;
using Clock = std::chrono::steady_clock;

constexpr double kSampleSeconds = 0.05;
constexpr double kTooSlow = 3;  // seconds of one call: it is not repeated

struct Row {
  std::string name;
  double gigabytes, gigaflops;  // one of them is 0
  std::function<void()> run;
};

double seconds(const std::function<void()>& body) {
  const auto begin = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What ran more often than before, the last such if one algorithm called another.
std::string algorithm_of(const std::vector<ot::backends::Algorithm>& before) {
  std::string found;
  const auto after = ot::backends::algorithms();
  for (size_t i = 0; i < after.size() && i < before.size(); ++i)
    if (after[i].id == before[i].id && after[i].runs > before[i].runs)
      found += (found.empty() ? "" : " ") + after[i].id;
  return found;
}

SpeedRow measure(const Row& row, ot::Device device) try {
  SpeedRow result;
  result.name = row.name;
  const auto before = ot::backends::algorithms();
  const auto call = [&](int times) {
    return seconds([&] {
      for (int i = 0; i < times; ++i) row.run();
      ot::synchronize(device);
    });
  };
  result.first_ms = call(1) * 1e3;
  double best = call(1);
  const int times = std::clamp(static_cast<int>(kSampleSeconds / best), 1, 1000);
  for (int i = 0; best < kTooSlow && i < 5; ++i) best = std::min(best, call(times) / times);
  result.algorithm = algorithm_of(before);
  result.microseconds = best * 1e6;
  result.unit = row.gigaflops != 0 ? "GFLOP/s" : "GB/s";
  result.rate = (row.gigabytes + row.gigaflops) / best;
  return result;
} catch (const ot::Error& error) {
  SpeedRow result;
  result.name = row.name;
  result.error = error.what();
  return result;
}

class Rows {
 public:
  explicit Rows(ot::Device device) : device_(device) {}

  std::vector<Row> all() {
    const int64_t many = int64_t{1} << 24;
    const ot::Tensor x = numbers({many}), y = numbers({many});
    moved("copy 2^24 float32", 8.0 * many, [=] { (void)x.clone(); });
    moved("add 2^24 float32", 12.0 * many, [=] { (void)ot::add(x, y); });
    moved("gelu 2^24 float32", 8.0 * many, [=] { (void)ot::gelu(x); });
    moved("sum 2^24 float32", 4.0 * many, [=] { (void)ot::sum(x); });
    const ot::Tensor rows = x.view({many / 1024, 1024}), weight = numbers({1024});
    moved("softmax of rows of 1024 float32", 8.0 * many, [=] { (void)ot::softmax(rows, 1); });
    moved("layer_norm of rows of 1024 float32", 8.0 * many,
          [=] { (void)ot::layer_norm(rows, {1024}, weight, weight); });
    moved("transposed copy 4096x4096 float32", 8.0 * many, [=] {
      (void)x.view({4096, 4096}).t().contiguous();
    });
    const ot::Tensor million = numbers({int64_t{1} << 20});
    moved("sort 2^20 float32", 8.0 * (1 << 20), [=] { (void)ot::sort(million); });
    moved("cumsum 2^20 float32", 8.0 * (1 << 20), [=] { (void)ot::cumsum(million, 0); });
    for (const ot::DType type : {ot::DType::Float32, ot::DType::Float16, ot::DType::BFloat16}) {
      product(1024, 1024, 1024, type);
      product(1, 4096, 4096, type);
      convolution(8, 64, 64, 56, 3, type);
      convolution(8, 256, 64, 56, 1, type);
      attention(2, 8, 1024, 64, type);
      attention(2, 8, 1024, 128, type);
    }
    product(2048, 2048, 2048, ot::DType::Float32);
    return std::move(rows_);
  }

 private:
  ot::Tensor numbers(const std::vector<int64_t>& sizes, ot::DType type = ot::DType::Float32) {
    return ot::randn(sizes, {ot::DType::Float32, device_}).to(type);
  }
  void moved(const std::string& name, double bytes, std::function<void()> run) {
    rows_.push_back({name, bytes * 1e-9, 0, std::move(run)});
  }
  void computed(const std::string& name, double flops, std::function<void()> run) {
    rows_.push_back({name, 0, flops * 1e-9, std::move(run)});
  }
  void product(int64_t m, int64_t n, int64_t k, ot::DType type) {
    const ot::Tensor a = numbers({m, k}, type), b = numbers({n, k}, type);
    computed(fmt::format("mm {}x{}x{} {}", m, n, k, ot::name(type)),
             2.0 * static_cast<double>(m * n * k), [=] { (void)ot::mm(a, b.t()); });
  }
  void convolution(int64_t images, int64_t in, int64_t out, int64_t side, int64_t window,
                   ot::DType type) {
    const ot::Tensor x = numbers({images, in, side, side}, type);
    const ot::Tensor w = numbers({out, in, window, window}, type);
    computed(fmt::format("conv2d {}x{}x{}x{} to {}, window {}, {}", images, in, side, side, out,
                         window, ot::name(type)),
             2.0 * static_cast<double>(images * in * out * side * side * window * window),
             [=] { (void)ot::conv2d(x, w, {}, {1}, {window / 2}); });
  }
  void attention(int64_t batch, int64_t heads, int64_t length, int64_t width, ot::DType type) {
    const std::vector<int64_t> sizes{batch, heads, length, width};
    const ot::Tensor q = numbers(sizes, type), k = numbers(sizes, type), v = numbers(sizes, type);
    computed(fmt::format("attention {}x{}x{}x{} {}", batch, heads, length, width, ot::name(type)),
             4.0 * static_cast<double>(batch * heads * length * length * width),
             [=] { (void)ot::scaled_dot_product_attention(q, k, v); });
  }

  ot::Device device_;
  std::vector<Row> rows_;
};

}  // namespace

std::vector<SpeedRow> measure_speed(ot::Device device,
                                    const std::function<void(const SpeedRow&)>& tell) {
  std::vector<SpeedRow> all;
  for (const Row& row : Rows(device).all()) {
    all.push_back(measure(row, device));
    tell(all.back());
  }
  return all;
}

}  // namespace tools
