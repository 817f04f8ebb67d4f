// A program of libtorch alone on ocl: operators and gradients against the CPU in float64, streams,
// memory, random numbers, threads. Ends with an error at the first thing that is not as it should.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <link.h>
#include <torch/torch.h>
#include <torch_ocl/torch_ocl.h>

#include <cstdio>
#include <sstream>
#include <thread>

namespace {

const torch::Device kOcl(torch::kPrivateUse1);

template <typename Body>
void expect_error(const char* text, Body&& body) {
  std::string got;
  try {
    body();
  } catch (const std::exception& error) {
    got = error.what();
  }
  TORCH_CHECK(got.find(text) != std::string::npos, "expected an error '", text, "', got '", got,
              "'");
}

// `ulps` of float32 at the largest number: rounding of sums grows with their length.
void expect_close(const torch::Tensor& got, const torch::Tensor& wanted, double ulps) {
  TORCH_CHECK(got.device().type() == torch::kPrivateUse1, "a result is on ", got.device());
  const torch::Tensor exact = wanted.to(torch::kDouble);
  const auto error = (got.cpu().to(torch::kDouble) - exact).abs().max().item<double>();
  const double limit = ulps * 1.2e-7 * std::max(exact.abs().max().item<double>(), 1e-30);
  TORCH_CHECK(error <= limit, "the error is ", error, ", the limit ", limit);
}

void test_devices() {
  torch_ocl::initialize();
  TORCH_CHECK(torch_ocl::is_available(), torch_ocl::unavailable_reason());
  TORCH_CHECK(torch_ocl::unavailable_reason().empty());
  TORCH_CHECK(torch::Device("ocl").type() == torch::kPrivateUse1);
  TORCH_CHECK(torch::Device("ocl:0").str() == "ocl:0");
  TORCH_CHECK(torch_ocl::current_device() == 0 && !torch_ocl::device_name().empty());
  const auto beyond = torch_ocl::device_count();
  expect_error("there is no device ocl:", [&] { torch_ocl::synchronize(beyond); });
  expect_error("there is no device ocl:", [&] { torch_ocl::set_current_device(beyond); });
  expect_error("there is no device ocl:",
               [&] { torch::ones({2}, torch::Device(torch::kPrivateUse1, beyond)); });
}

void test_operators() {
  const torch::Tensor a = torch::randn({33, 70}), b = torch::randn({70, 41});
  // A product's sum of 70 terms; softmax divides numbers of that error.
  expect_close(torch::mm(a.to(kOcl), b.to(kOcl)),
               torch::mm(a.to(torch::kDouble), b.to(torch::kDouble)), 70);
  expect_close(a.to(kOcl).softmax(1), a.to(torch::kDouble).softmax(1), 8);
  expect_close(a.to(kOcl).t().contiguous(), a.t(), 0);
  TORCH_CHECK(torch::empty({0, 3}, kOcl).sum(0).cpu().equal(torch::zeros({3})));
  TORCH_CHECK(torch_ocl::fallback_counts().empty());
}

// The gradients of all parameters of a small network, on `device` and of `type`.
std::vector<torch::Tensor> gradients(const torch::Device& device, torch::ScalarType type) {
  torch::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 5, 3)),
                              torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Linear(180, 4));
  const torch::Tensor x = torch::randn({6, 2, 8, 8});
  model->to(device, type);
  const torch::Tensor target = torch::arange(6, torch::kLong).remainder(4).to(device);
  torch::nn::functional::cross_entropy(model->forward(x.to(device, type)), target).backward();
  std::vector<torch::Tensor> found;
  for (const torch::Tensor& parameter : model->parameters()) found.push_back(parameter.grad());
  return found;
}

void test_autograd() {
  const auto got = gradients(kOcl, torch::kFloat);
  const auto wanted = gradients(torch::kCPU, torch::kDouble);
  TORCH_CHECK(got.size() == 4);
  // Sums of up to 6 * 36 terms through three layers.
  for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], wanted[i], 216);
}

void test_streams() {
  const c10::Stream before = torch_ocl::current_stream();
  TORCH_CHECK(before == torch_ocl::default_stream());
  const c10::Stream side = torch_ocl::stream_from_pool();
  TORCH_CHECK(side != before && side.device() == c10::Device(torch::kPrivateUse1, 0));
  c10::Event done(torch::kPrivateUse1);
  torch::Tensor sum;
  {
    const c10::StreamGuard guard(side);
    TORCH_CHECK(torch_ocl::current_stream() == side);
    sum = torch::arange(1 << 20, kOcl).sum();
    done.record(side);
  }
  TORCH_CHECK(torch_ocl::current_stream() == before);
  done.block(before);
  TORCH_CHECK((sum + 1).item<int64_t>() == (int64_t{1} << 19) * ((1 << 20) - 1) + 1);
  torch_ocl::synchronize();
  TORCH_CHECK(done.query());
  torch_ocl::set_current_stream(side);
  std::thread([&] { TORCH_CHECK(torch_ocl::current_stream() == before); }).join();
  torch_ocl::set_current_stream(before);
}

void test_memory() {
  torch_ocl::reset_peak_memory();
  const torch_ocl::MemoryUsage before = torch_ocl::memory_usage();
  constexpr int64_t kBytes = int64_t{8} << 20;
  {
    const torch::Tensor block = torch::zeros({kBytes}, torch::dtype(torch::kByte).device(kOcl));
    TORCH_CHECK(torch_ocl::memory_usage().allocated >= before.allocated + kBytes);
  }
  const torch_ocl::MemoryUsage after = torch_ocl::memory_usage();
  TORCH_CHECK(after.allocated == before.allocated);
  TORCH_CHECK(after.peak_allocated >= before.allocated + kBytes && after.total > 0);
  torch_ocl::synchronize();
  torch_ocl::empty_cache();
  TORCH_CHECK(torch_ocl::memory_usage().reserved < after.reserved);
}

void test_random_numbers() {
  const auto draw = [] { return torch::randn({1000}, kOcl).cpu(); };
  torch_ocl::manual_seed(7);
  const torch::Tensor first = draw();
  TORCH_CHECK(!draw().equal(first));
  torch::manual_seed(7);
  TORCH_CHECK(draw().equal(first) && torch_ocl::default_generator().current_seed() == 7);
}

void test_settings() {
  const std::string name = "OCLTENSOR_LOG_LEVEL";
  const std::string before = torch_ocl::get_setting(name);
  torch_ocl::set_setting(name, "error");
  TORCH_CHECK(torch_ocl::get_setting(name) == "error");
  torch_ocl::set_setting(name, before);
  expect_error("OCLTENSOR_NO_SUCH", [] { torch_ocl::get_setting("OCLTENSOR_NO_SUCH"); });
}

void test_saving() {
  std::stringstream file;
  const torch::Tensor on_device = torch::arange(12, kOcl).view({3, 4});
  torch::save(on_device, file);
  torch::Tensor loaded;
  torch::load(loaded, file, torch::kCPU);
  TORCH_CHECK(loaded.device().is_cpu() && loaded.equal(on_device.cpu()));
}

void test_threads() {
  std::vector<std::thread> threads;
  std::array<bool, 4> right{};
  for (size_t i = 0; i < right.size(); ++i)
    threads.emplace_back([&right, i] {
      torch::Tensor x = torch::full({100}, static_cast<double>(i), kOcl).requires_grad_();
      for (int step = 0; step < 20; ++step) {
        x.mutable_grad() = torch::Tensor();
        (x * x).sum().backward();
      }
      right[i] = x.grad().cpu().equal(torch::full({100}, 2.0 * static_cast<double>(i)));
    });
  for (std::thread& thread : threads) thread.join();
  for (const bool one : right) TORCH_CHECK(one);
}

void test_no_python() {
  const auto look = [](dl_phdr_info* info, size_t, void*) {
    return std::string(info->dlpi_name).find("libpython") != std::string::npos ||
                   std::string(info->dlpi_name).find("libtorch_python") != std::string::npos
               ? 1
               : 0;
  };
  TORCH_CHECK(dl_iterate_phdr(look, nullptr) == 0, "Python was loaded");
}

}  // namespace

int main() {
  try {
    test_devices();
    test_operators();
    test_autograd();
    test_streams();
    test_memory();
    test_random_numbers();
    test_settings();
    test_saving();
    test_threads();
    test_no_python();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::printf("passed on %s\n", torch_ocl::device_name().c_str());
}
