// A process of its own for tests that need a fresh one: uses the OpenCL device once and says what
// happened.
//   probe add          adds two tensors; prints "right" and how many programs were built and loaded
//   probe fork         uses the device, forks, and prints what the child's call says
//   probe live         exits with live tensors, streams and events, and work under way
//   probe threads      eight threads with a stream each
//   probe capture FILE       captures an addition to a file
//   probe capture-fork FILE  forks meanwhile; the child tries to go on and to stop
//   probe reason       prints why no device is available
//   probe devices      prints how many there are, and what was found
//   probe profile      operators, copies both ways and, where it is allowed, a fallback
//   probe interrupt    works until SIGINT, which it sends to itself, ends it
//   probe handler      the same with a handler of its own, which exits with 7
//   probe left FILE    starts a trace and ends without stopping it
//   probe caps         prints what the device has, and what happens to launches and allocations
//                      beyond 256 work-items, 32 KiB of local memory and 64 MiB
//   probe kernels N    requests N custom kernels, compiles them from the last to the first, and
//                      launches each
//   probe convolve     a convolution beside that of the device `cpu`
//   probe settings     switches the profiler's two settings on and off at run time
#include <fmt/format.h>
#include <ocltensor/ocltensor.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace ot = ocltensor;

bool add_is_right(int64_t n, float seed) {
  std::vector<float> a(static_cast<size_t>(n));
  for (size_t i = 0; i < a.size(); ++i) a[i] = seed + static_cast<float>(i % 97);
  const ot::Tensor x = ot::tensor(a, {n}, "ocl");
  const auto y = ot::add(x, x).to_vector<float>();
  for (size_t i = 0; i < a.size(); ++i)
    if (y[i] != 2 * a[i]) return false;
  return true;
}

int add() {
  const auto begin = std::chrono::steady_clock::now();
  const bool right = add_is_right(1000, 0.5f);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  const tb_counters c = ot::counters("ocl");
  fmt::print("{} builds {} loads {} ms {:.0f}\n", right ? "right" : "WRONG", c.program_builds,
             c.program_loads, taken.count());
  return right ? 0 : 1;
}

// The status of a forked child that does this, or prints why it cannot.
template <typename Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      body();
    } catch (const ot::Error& e) {
      fmt::print("child: status {}: {}\n", e.status(), e.what());
    }
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

int fork_after_use() {
  if (!add_is_right(100, 1)) return 1;
  std::fflush(stdout);
  const int status = in_child([] {
    (void)add_is_right(100, 1);
    fmt::print("child ran\n");
  });
  fmt::print("child exit {} parent {}\n", status, add_is_right(100, 2) ? "right" : "WRONG");
  return 0;
}

int live() {
  static const ot::Tensor big = ot::ones({1 << 20}, {ot::DType::Float32, "ocl"});
  static const ot::Stream stream = ot::Stream::create("ocl");
  static const ot::Event event("ocl", true);
  const ot::StreamGuard guard(stream);
  static ot::Tensor result = ot::exp(big);
  event.record();
  for (int i = 0; i < 20; ++i) result = ot::add(result, big);
  fmt::print("leaving\n");
  return 0;  // without waiting
}

int threads() {
  constexpr int kThreads = 8;
  std::vector<std::thread> pool;
  std::atomic<int> right{0};
  for (int t = 0; t < kThreads; ++t)
    pool.emplace_back([t, &right] {
      const ot::Stream stream = ot::Stream::create("ocl");
      const ot::StreamGuard guard(stream);
      bool good = true;
      for (int i = 0; i < 40 && good; ++i)
        good = add_is_right(100 + 37 * i + t, static_cast<float>(t));
      right += good;
    });
  for (std::thread& t : pool) t.join();
  fmt::print("{} of {} threads right\n", right.load(), kThreads);
  return right == kThreads ? 0 : 1;
}

int capture(const std::string& path) {
  ot::profiler::Capture capture(path);
  fmt::print("computed {}\n", add_is_right(100000, 2) ? "right" : "WRONG");
  std::fflush(stdout);
  capture.stop();
  return 0;
}

int capture_and_fork(const std::string& path) {
  ot::profiler::Capture capture(path);
  if (!add_is_right(1000, 1)) return 1;
  const int status = in_child([&] {
    capture.stop();
    fmt::print("child stopped the capture\n");
  });
  if (status != 0 || !add_is_right(1000, 2)) return 1;
  capture.stop();
  fmt::print("parent stopped\n");
  return 0;
}

std::vector<float> several_operators() {
  const ot::Tensor x = ot::arange(0, 1000, 1, {ot::DType::Float32, "ocl"}).view({10, 100});
  return ot::_softmax(ot::mm(x, x.t()), 1, false).to_vector<float>();
}

int profile() {
  const bool right = add_is_right(1000, 0.5f) && several_operators().size() == 100;
  if (ot::get_setting("OCLTENSOR_ENABLE_FALLBACK") == "1") {
    const auto disabled = ot::backends::operations_disabled({"gather.out"});
    const ot::Tensor x = ot::arange(0, 1, 1, {ot::DType::Float32, "ocl"});
    (void)ot::gather(x, 0, ot::arange(0, 1, 1, {ot::DType::Int64, "ocl"}));
    for (const ot::FallbackCount& f : ot::fallback_counts()) fmt::print("fell back: {}\n", f.name);
  }
  ot::empty_cache("ocl");
  fmt::print("{}\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}

// Does not return.
int interrupt(bool own_handler) {
  if (own_handler) (void)std::signal(SIGINT, [](int) { std::exit(7); });
  if (!add_is_right(1000, 1)) return 1;
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    (void)kill(getpid(), SIGINT);
  }).detach();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end)
    if (!own_handler)
      (void)several_operators();
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return 1;
}

float largest_difference(const ot::Tensor& a, const ot::Tensor& b) {
  const auto x = a.to_vector<float>(), y = b.to_vector<float>();
  float most = x.size() == y.size() ? 0.0f : 1e30f;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    most = std::isnan(x[i]) ? 1e30f : std::max(most, std::abs(x[i] - y[i]));
  return most;
}

// Numbers that float32 adds up exactly, whatever the order.
ot::Tensor small_integers(const std::vector<int64_t>& sizes, int64_t factor) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>(i * factor % 17 - 8);
  return ot::tensor(values, sizes);
}

int convolve() {
  const ot::Tensor x = small_integers({2, 16, 20, 24}, 5), w = small_integers({32, 16, 5, 5}, 7);
  float most = 0;
  for (int i = 0; i < 2; ++i) {
    const auto on = [&](const char* device) {
      return ot::conv2d(x.to(ot::Device(device)), w.to(ot::Device(device)), {}, {1}, {2});
    };
    most = std::max(most, largest_difference(on("ocl"), on("cpu")));
  }
  fmt::print("{}, builds {}\n", most == 0 ? "right" : "WRONG", ot::counters("ocl").program_builds);
  return most == 0 ? 0 : 1;
}

int settings() {
  (void)several_operators();
  ot::set_setting("OCLTENSOR_TRACE_SIGNPOSTS", "all_intervals");
  try {
    ot::profiler::start("interval");
    fmt::print("a second trace began\n");
  } catch (const ot::Error& e) {
    fmt::print("second trace: {}\n", e.what());
  }
  (void)several_operators();
  ot::set_setting("OCLTENSOR_TRACE_SIGNPOSTS", "0");
  ot::set_setting("OCLTENSOR_TRACE_SIGNPOSTS", "copies");
  (void)several_operators();
  ot::profiler::stop();
  fmt::print("signposts {}\n", ot::get_setting("OCLTENSOR_TRACE_SIGNPOSTS"));
  ot::set_setting("OCLTENSOR_LOG_PROFILE_INFO", "operators");
  (void)several_operators();
  ot::set_setting("OCLTENSOR_LOG_PROFILE_INFO", "0");
  (void)ot::mul(ot::arange(0, 7, 1, {ot::DType::Float32, "ocl"}), 2.0).to_vector<float>();
  return 0;
}

template <typename Body>
void attempt(const char* what, const Body& body) {
  try {
    body();
    fmt::print("{}: done\n", what);
  } catch (const ot::Error& e) {
    fmt::print("{}: {}\n", what, e.what());
  }
}

// The number-th of a set of programs.
std::string generated(size_t number) {
  return fmt::format(
      "__kernel void f(__global float *x, float a) {{ x[get_global_id(0)] = a * {} + 0.5f; }}\n",
      number);
}

// Builders begin with the first one, this process with the last one.
int kernels(size_t count) {
  std::vector<std::string> sources;
  for (size_t i = 0; i < count; ++i) sources.push_back(generated(i));
  const uint32_t asked = ot::KernelLibrary::request(sources);
  bool right = true;
  const ot::Tensor x = ot::zeros({4}, {ot::DType::Float32, "ocl"});
  for (size_t i = count; i-- > 0;) {
    const auto library = ot::KernelLibrary::compile(sources[i]);
    library.kernel("f").launch({x, 3.0}, {4});
    const float expected = 3 * static_cast<float>(i) + 0.5f;
    for (const float value : x.to_vector<float>()) right = right && value == expected;
  }
  const tb_counters c = ot::counters("ocl");
  fmt::print("{} asked {} builds {} loads {}\n", right ? "right" : "WRONG", asked, c.program_builds,
             c.program_loads);
  const auto library = ot::KernelLibrary::compile(sources[0]);
  const ot::Tensor integers = ot::zeros({4}, {ot::DType::Int32, "ocl"});
  attempt("integers", [&] { library.kernel("f").launch({integers, 3.0}, {4}); });
  return right ? 0 : 1;
}

int caps() {
  const tb_device_properties p = ot::device_properties("ocl");
  fmt::print("features {} group {} local {} piece {} units {}\n", p.features, p.max_work_group_size,
             p.local_memory, p.largest_allocation, p.compute_units);
  const auto library = ot::KernelLibrary::compile(R"(
#ifdef cl_khr_fp64
#define HAS_FP64 1
#else
#define HAS_FP64 0
#endif
__kernel void tell(__global int *out) { out[get_global_id(0)] = HAS_FP64; }
__kernel void large(__global int *out) {
  __local int held[10240];
  held[get_local_id(0)] = HAS_FP64;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = held[get_local_id(0) ^ 1];
})");
  const ot::Tensor out = ot::zeros({512}, {ot::DType::Int32, "ocl"});
  library.kernel("tell").launch({out}, {512}, {256});
  fmt::print("program sees fp64 {}\n", out.to_vector<int32_t>()[0]);
  fmt::print("kernel takes {}\n", library.kernel("tell").max_work_group_size());
  attempt("512 work-items", [&] {
    library.kernel("tell").launch({out}, {512}, {512});
    (void)out.to_vector<int32_t>();
  });
  attempt("40 KiB", [&] {
    library.kernel("large").launch({out}, {512}, {2});
    (void)out.to_vector<int32_t>();
  });
  attempt("128 MiB", [] { (void)ot::empty({1 << 27}, {ot::DType::UInt8, "ocl"}); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "add") return add();
    if (mode == "fork") return fork_after_use();
    if (mode == "live") return live();
    if (mode == "threads") return threads();
    if (mode == "capture" && argc > 2) return capture(argv[2]);
    if (mode == "capture-fork" && argc > 2) return capture_and_fork(argv[2]);
    if (mode == "profile") return profile();
    if (mode == "interrupt") return interrupt(false);
    if (mode == "handler") return interrupt(true);
    if (mode == "settings") return settings();
    if (mode == "caps") return caps();
    if (mode == "kernels" && argc > 2) return kernels(std::strtoul(argv[2], nullptr, 10));
    if (mode == "convolve") return convolve();
    if (mode == "left" && argc > 2) {
      ot::profiler::start("interval", false, argv[2]);
      return several_operators().size() == 100 ? 0 : 1;
    }
    if (mode == "devices")
      return fmt::print("devices {}\n{}", ot::device_count(), ot::device_report()), 0;
    if (mode == "reason")
      return fmt::print("devices {}: {}\n", ot::device_count(), ot::unavailable_reason()), 0;
  } catch (const ot::Error& e) {
    fmt::print("error {}: {}\n", e.status(), e.what());
    return 3;
  }
  fmt::print(
      stderr,
      "usage: probe add|fork|live|threads|reason|devices|capture FILE|capture-fork FILE|profile|"
      "interrupt|handler|left FILE|settings|caps|kernels N|convolve\n");
  return 2;
}
