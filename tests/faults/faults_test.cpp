// Every OpenCL call of a training step fails once: the step must end with the right result or with
// an error, and the next step must be right. `warm`: within one process that has run the step
// before. `traced`: the same under the profiler, whose stop() must leave a complete file. `cold`: a
// new process for each call of the first step, driver start and program loading included.
// `building`: the same with an empty program cache, so that programs are built. `capture`: as warm,
// while the step is captured: a recorder that fails spoils nothing but its file.
#include <dlfcn.h>
#include <fmt/format.h>
#include <ocltensor/ocltensor.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "network.h"

namespace {

namespace ot = ocltensor;
using demo::Network;

struct Faults {
  void (*arm)(long);
  long (*count)();
  long (*live)();
};

// The layer that the OpenCL loader has mapped into this process.
Faults find_layer() {
  void* layer = dlopen(std::getenv("OPENCL_LAYERS"), RTLD_NOW | RTLD_NOLOAD);
  if (layer == nullptr) {
    fmt::print(stderr, "the OpenCL loader did not load the fault layer {}\n",
               std::getenv("OPENCL_LAYERS"));
    std::exit(2);
  }
  return {reinterpret_cast<void (*)(long)>(dlsym(layer, "fault_arm")),
          reinterpret_cast<long (*)()>(dlsym(layer, "fault_count")),
          reinterpret_cast<long (*)()>(dlsym(layer, "fault_live"))};
}

std::vector<float> pixels() {
  std::vector<float> values(16 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 17) / 16.0f;
  return values;
}

// Builds a network from the seed, trains one step, and returns the loss and some of the trained
// weights.
std::vector<float> train_step() {
  const ot::Device device("ocl");
  ot::Generator::default_of(device).set_seed(5);
  const ot::DefaultDevice on(device);
  const Network network(ot::DType::Float32);
  demo::nn::Adam adam(network.parameters(), {.lr = 1e-3});
  const ot::Tensor images = ot::tensor(pixels(), {16, 1, 8, 8}, device);
  std::vector<int64_t> labels(16);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 10);
  const ot::Tensor loss = ot::cross_entropy(network(images), ot::tensor(labels, {16}, device));
  loss.backward();
  adam.step();
  std::vector<float> result = loss.to_vector<float>();
  for (const ot::Tensor& p : network.parameters()) {
    const auto values = p.to_vector<float>();
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A fault may leave one more event or segment in a cache, but a leak at each fault adds up.
bool leaks(const Faults& faults, long before) {
  constexpr long kCached = 4;
  if (faults.live() <= before + kCached) return false;
  fmt::print("{} references to OpenCL objects are held, {} without faults\n", faults.live(),
             before);
  return true;
}

// The whole number that a text is.
long number(const char* text) { return std::stol(text); }

int warm() {
  const std::vector<float> reference = train_step();
  const Faults faults = find_layer();
  faults.arm(0);
  if (!same(train_step(), reference)) return fmt::print("two runs without faults differ\n"), 1;
  const long calls = faults.count();
  const uint64_t memory = ot::current_allocated_memory();
  const long live = faults.live();
  long raised = 0;
  for (long n = 1; n <= calls; ++n) {
    faults.arm(n);
    try {
      const std::vector<float> result = train_step();
      faults.arm(0);
      if (!same(result, reference))
        return fmt::print("call {} failed silently: a wrong result\n", n), 1;
    } catch (const ot::Error& e) {
      ++raised;
      faults.arm(0);
    }
    if (!same(train_step(), reference))
      return fmt::print("after call {} failed, the next step is wrong\n", n), 1;
    if (ot::current_allocated_memory() != memory)
      return fmt::print("after call {} failed, {} bytes are lost\n", n,
                        ot::current_allocated_memory() - memory),
             1;
  }
  if (leaks(faults, live)) return 1;
  fmt::print(
      "{} calls, each failed once: {} raised an error, {} ended right, every next step right\n",
      calls, raised, calls - raised);
  return raised > 0 ? 0 : 1;
}

int captured(long every) {
  const std::vector<float> reference = train_step();
  const Faults faults = find_layer();
  const std::string path = fmt::format("/tmp/ocltensor-faults-capture-{}", ::getpid());
  std::vector<float> result;
  const auto step = [&] {
    result.clear();
    std::filesystem::remove(path);
    ot::profiler::Capture capture(path);
    result = train_step();
    capture.stop();
  };
  faults.arm(0);
  step();
  if (!same(result, reference)) return fmt::print("a captured step differs\n"), 1;
  const long calls = faults.count();
  long raised = 0;
  long stopped = 0;
  constexpr long kLast = 12;  // the results are read with them
  for (long n = 1; n <= calls; n = std::max(n + 1, std::min(n + every, calls - kLast))) {
    faults.arm(n);
    try {
      step();
    } catch (const ot::Error& e) {
      ++(result.empty() ? raised : stopped);
      if (!result.empty() && std::filesystem::exists(path))
        return fmt::print("call {} failed: {}, and the file is still there\n", n, e.what()), 1;
    }
    faults.arm(0);
    if (!result.empty() && !same(result, reference))
      return fmt::print("call {} failed silently: a wrong result\n", n), 1;
    if (ot::profiler::is_capturing()) return fmt::print("still capturing\n"), 1;
    step();
    if (!same(result, reference) || !std::filesystem::exists(path))
      return fmt::print("after call {} failed, the next step is wrong\n", n), 1;
    std::filesystem::remove(path);
  }
  fmt::print(
      "{} calls of a captured step, every {}th and the last ones failed once: {} steps raised an "
      "error, {} captures "
      "failed beside a right step\n",
      calls, every, raised, stopped);
  return raised > 0 && stopped > 0 ? 0 : 1;
}

// A file of its own name: does it hold a whole trace?
bool whole(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str().starts_with("{") && text.str().ends_with("\n]}\n");
}

int traced() {
  const std::vector<float> reference = train_step();
  const Faults faults = find_layer();
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("traced_{}.json", getpid());
  long raised = 0, n = 0;
  for (long reached = 1; n < reached; ++n) {
    std::filesystem::remove(path);
    ot::profiler::start("interval", false, path);
    faults.arm(n);  // 0: only counts
    bool fine = true;
    try {
      fine = same(train_step(), reference);
    } catch (const ot::Error&) {
      ++raised;
    }
    try {
      ot::profiler::stop();
    } catch (const ot::Error&) {
      ++raised;
    }
    if (n == 0) reached = faults.count() + 1;
    faults.arm(0);
    if (!fine) return fmt::print("call {} failed silently: a wrong result\n", n), 1;
    if (ot::profiler::is_enabled() || !whole(path))
      return fmt::print("after call {} failed, the trace is not complete\n", n), 1;
    if (!same(train_step(), reference))
      return fmt::print("after call {} failed, the next step is wrong\n", n), 1;
  }
  std::filesystem::remove(path);
  fmt::print("{} calls, each failed once: {} errors, every trace complete\n", n - 1, raised);
  return raised > 0 ? 0 : 1;
}

std::vector<float> read_floats(const char* path) {
  std::vector<float> values;
  if (FILE* f = std::fopen(path, "rb")) {
    float v;
    while (std::fread(&v, sizeof v, 1, f) == 1) values.push_back(v);
    std::fclose(f);
  }
  return values;
}

// In a child: the first step under FAULT_AT, then one without a fault. 0: fine, 3: never reached
// the Nth call.
int cold_child(const char* expected_path, long live) {
  alarm(300);  // a hang ends as a failure
  const std::vector<float> expected = read_floats(expected_path);
  bool raised = false;
  std::string text;
  try {
    if (!same(train_step(), expected)) return fmt::print("a wrong result, and no error\n"), 1;
  } catch (const ot::Error& e) {
    raised = true;
    text = e.what();
  }
  const Faults faults = find_layer();
  const bool reached = faults.count() >= number(std::getenv("FAULT_AT"));
  faults.arm(0);
  // A device that could not be enumerated stays away for this process: then the error must say so.
  if (ot::device_count() == 0) return raised && !ot::unavailable_reason().empty() ? 0 : 1;
  try {
    if (!same(train_step(), expected))
      return fmt::print("the step after the fault is wrong ({})\n", text), 1;
  } catch (const ot::Error& e) {
    return fmt::print("the step after the fault fails: {} (first: {})\n", e.what(), text), 1;
  }
  if (leaks(faults, live)) return 1;
  return reached ? 0 : 3;
}

// A file with the right result, and for `building` an empty cache of programs; gone afterwards.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/ocltensor-faults-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string expected() const { return path_ + "/expected"; }
  std::string empty_cache() const {
    std::filesystem::remove_all(path_ + "/cache");
    return path_ + "/cache";
  }

 private:
  std::string path_;
};

// Every `step`-th call from `first` on: a process costs a quarter of a second.
int cold(const char* self, bool building, long step, long first) {
  const Folder folder;
  const std::vector<float> reference = train_step();
  if (!same(train_step(), reference)) return fmt::print("two runs without faults differ\n"), 1;
  const long live = find_layer().live();
  FILE* file = std::fopen(folder.expected().c_str(), "wb");
  if (file == nullptr) return 2;
  std::fwrite(reference.data(), sizeof(float), reference.size(), file);
  std::fclose(file);
  int status = 0;
  long n = first;
  for (;; n += step) {
    setenv("FAULT_AT", std::to_string(n).c_str(), 1);
    if (building) setenv("OCLTENSOR_CACHE_DIR", folder.empty_cache().c_str(), 1);
    const std::string command =
        fmt::format("'{}' cold-child '{}' {} 2>&1", self, folder.expected(), live);
    std::fflush(stdout);
    const int code = std::system(command.c_str());
    status = WIFEXITED(code) ? WEXITSTATUS(code) : 128;
    if (status != 0 && status != 3) {
      fmt::print("a new process whose call {} fails: exit status {}\n", n, status);
      return 1;
    }
    if (status == 3) break;
  }
  fmt::print(
      "calls {} to {} of a first step, every {}th, {} of them: each failed in a process of its "
      "own, "
      "right result or error\n",
      first, n - step, step, (n - first) / step);
  return n > first ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "warm") return warm();
    if (mode == "capture") return captured(argc > 2 ? std::max(1L, number(argv[2])) : 1);
    if (mode == "traced") return traced();
    if (mode == "cold" || mode == "building")
      return cold(argv[0], mode == "building", argc > 2 ? std::max(1L, number(argv[2])) : 1,
                  argc > 3 ? std::max(1L, number(argv[3])) : 1);
    if (mode == "cold-child" && argc > 3) return cold_child(argv[2], number(argv[3]));
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
  fmt::print(stderr,
             "usage: faults_test warm | capture | traced | cold | building [every Nth call] [from "
             "call]\n");
  return 2;
}
