// A process of its own for tests of how processes end: uses a device, and again where the process
// or a thread ends. Each call there is right or throws TB_E_STATE; what else it does ends the
// process with status 9.
//   end_probe PLACE DEVICE DONE CALL
//   PLACE  a row of kPlaces; "early" ones are set up before the device is first used, as are
//          statics of other files, "late" ones after that
//   DONE   none: nothing but a tensor was made before; all: every call was made before
//   CALL   a row of kCalls; all: each in turn
#include <fmt/format.h>
#include <ocltensor/ocltensor.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

namespace ot = ocltensor;

std::string device, chosen;

ot::Tensor& kept() {  // from before the end
  static ot::Tensor& t = *new ot::Tensor;
  return t;
}

bool is(const ot::Tensor& t, const std::vector<float>& wanted) {
  const std::vector<float> got = t.to(ot::DType::Float32).to_vector<float>();
  if (got.size() != wanted.size()) return false;
  for (size_t i = 0; i < got.size(); ++i)
    if (std::abs(got[i] - wanted[i]) > 1e-4f) return false;
  return true;
}

ot::Tensor range(int64_t n) {
  return ot::arange(0, n, 1, {ot::DType::Float32, ot::Device(device)});
}

bool trains() {
  ot::DefaultDevice on{ot::Device(device)};
  ot::nn::Linear layer(2, 3);
  const ot::Tensor loss = layer(ot::ones({4, 2})).sum();
  loss.backward();
  return is(layer.bias.grad(), {4, 4, 4});
}

bool differentiates() {
  ot::Tensor x = range(3);
  x.requires_grad_();
  (x * x).sum().backward();
  return is(x.grad(), {0, 2, 4});
}

bool saves() {
  const std::string path = fmt::format("/tmp/ocltensor-end-{}.npy", ::getpid());
  ot::save_npy(path, range(5));
  const bool right = is(ot::load_npy(path, ot::Device(device)), {0, 1, 2, 3, 4});
  (void)::unlink(path.c_str());
  return right;
}

bool streams() {
  const ot::Stream other = ot::Stream::create(ot::Device(device));
  const ot::StreamGuard guard(other);
  const ot::Event event{ot::Device(device)};
  const ot::Tensor x = range(3) + 1;
  event.record();
  event.synchronize();
  return is(x, {1, 2, 3});
}

bool has_kernels() {
  if (device == "cpu") return true;
  const auto library = ot::KernelLibrary::compile(
      "__kernel void twice(__global float* x) { x[get_global_id(0)] *= 2; }", ot::Device(device));
  const ot::Tensor x = range(3);
  library.kernel("twice").launch({x}, {3});
  return is(x, {0, 2, 4});
}

bool replays() {
  if (device == "cpu") return true;
  const ot::Tensor x = range(3);
  const ot::Graph graph = ot::Graph::record(ot::Device(device), [&] { x.add_(1); });
  graph.replay();
  graph.replay();
  return is(x, {2, 3, 4});
}

bool marks() {
  const ot::profiler::Range range("the end");
  return true;
}

constexpr struct {
  const char* name;
  bool (*is_right)();
} kCalls[] = {
    {"create",
     [] {
       return is(ot::zeros({2}, ot::Device(device)), {0, 0});
     }},
    {"full",
     [] {
       return is(ot::full({2}, 7, ot::Device(device)), {7, 7});
     }},
    {"add",
     [] {
       return is(kept() + kept(), {2, 2, 2, 2});
     }},
    {"multiply",
     [] {
       return is(kept() * 2, {2, 2, 2, 2});
     }},
    {"divide",
     [] {
       return is(kept().div(4), {0.25, 0.25, 0.25, 0.25});
     }},
    {"in place",
     [] {
       return is(range(3).add_(1), {1, 2, 3});
     }},
    {"matmul",
     [] {
       return is(range(4).view({2, 2}).matmul(range(2)), {1, 3});
     }},
    {"to host",
     [] {
       return is(kept(), {1, 1, 1, 1});
     }},
    {"to device",
     [] {
       return is(ot::tensor<float>({3, 4}, {2}, ot::Device(device)), {3, 4});
     }},
    {"item", [] { return range(5).sum().item<float>() == 10; }},
    {"softmax",
     [] {
       return is(ot::_softmax(kept(), 0, false), {0.25, 0.25, 0.25, 0.25});
     }},
    {"random", [] { return ot::rand({100}, ot::Device(device)).lt(1).all().item<bool>(); }},
    {"free", [] { return range(1000000).defined(); }},
    {"synchronize", [] { return ot::synchronize(ot::Device(device)), true; }},
    {"empty cache", [] { return ot::empty_cache(ot::Device(device)), true; }},
    {"backward", differentiates},
    {"module", trains},
    {"sort",
     [] {
       return is(std::get<0>(range(4).sort(std::nullopt, -1, true)), {3, 2, 1, 0});
     }},
    {"convolution",
     [] {
       return is(ot::conv2d(range(4).view({1, 1, 2, 2}), range(1).add(1).view({1, 1, 1, 1})),
                 {0, 1, 2, 3});
     }},
    {"print", [] { return range(2).text().find('1') != std::string::npos; }},
    {"save", saves},
    {"stream", streams},
    {"kernel", has_kernels},
    {"graph", replays},
    {"range", marks},
    {"settings", [] { return !ot::backends::disabled_operations().empty() || true; }},
};

bool make(const char* name, bool (*is_right)()) {
  fmt::print("{}: ", name);
  try {
    const bool right = is_right();
    fmt::print("{}\n", right ? "right" : "WRONG");
    return right;
  } catch (const ot::Error& error) {
    fmt::print("status {}: {}\n", error.status(), error.what());
    return error.status() == TB_E_STATE;
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return false;
  }
}

void make_calls() {
  bool good = true;
  for (const auto& call : kCalls)
    if (chosen == "all" || chosen == call.name) good = make(call.name, call.is_right) && good;
  if (!good) ::_exit(9);
  fmt::print("end\n");
}

// ---- places

struct AtEnd {
  std::string armed_by;
  explicit AtEnd(const char* place) : armed_by(place) {}
  ~AtEnd();
};
std::string& place() {
  static std::string& name = *new std::string;
  return name;
}
AtEnd::~AtEnd() {
  if (armed_by == place()) make_calls();
}
const AtEnd static_early("static early");  // NOLINT
__attribute__((destructor)) void at_unloading() {
  if (place() == "unloading") make_calls();
}

void use() {
  kept() = ot::ones({4}, ot::Device(device));
  ot::synchronize(ot::Device(device));
}
void use_all() {
  for (const auto& call : kCalls) (void)call.is_right();
}
bool uses_all = false;
void use_device() {
  use();
  if (uses_all) use_all();
}

void thread_local_object(bool early, const char* name) {
  if (!early) use_device();
  thread_local const AtEnd object(name);
  (void)&object;
  if (early) use_device();
}

std::atomic<int> stage{0};
void reach(int number) {
  stage = number;
  stage.notify_all();
}
void wait_for(int number) {
  for (int now = stage; now < number; now = stage) stage.wait(now);
}
// Makes the calls again and again from now on, and all of them once while the process ends.
void outlive_main() {
  std::thread([] {
    use_device();
    reach(1);
    wait_for(2);
    make_calls();
    reach(3);
  }).detach();
  wait_for(1);
}
// Ends the process, which threads of the driver would keep alive.
void make_calls_after_main() {
  wait_for(1);
  make_calls();
  std::fflush(stdout);
  std::_Exit(0);
}
void wait_for_thread() {
  reach(2);
  wait_for(3);
}

constexpr struct {
  const char* name;
  void (*set_up)();
} kPlaces[] = {
    {"exit handler early", [] { std::atexit(make_calls), use_device(); }},
    {"exit handler late", [] { use_device(), std::atexit(make_calls); }},
    {"static early", use_device},
    {"static late",
     [] {
       use_device();
       static const AtEnd object("static late");
     }},
    {"unloading", use_device},
    {"thread_local early", [] { thread_local_object(true, "thread_local early"); }},
    {"thread_local late", [] { thread_local_object(false, "thread_local late"); }},
    {"worker thread_local early",
     [] { std::thread(thread_local_object, true, "worker thread_local early").join(); }},
    {"worker thread_local late",
     [] { std::thread(thread_local_object, false, "worker thread_local late").join(); }},
    {"thread after main, early", [] { std::atexit(wait_for_thread), outlive_main(); }},
    {"thread after main, late", [] { outlive_main(), std::atexit(wait_for_thread); }},
    {"exit in a thread, early",
     [] {
       std::atexit(make_calls);
       std::thread([] { use_device(), std::exit(0); }).join();
     }},
    {"exit in a thread, late",
     [] { std::thread([] { use_device(), std::atexit(make_calls), std::exit(0); }).join(); }},
    {"quick exit", [] { std::at_quick_exit(make_calls), use_device(), std::quick_exit(0); }},
    {"main thread ends first",
     [] {
       use_device();
       std::thread(make_calls_after_main).detach();
       pthread_key_t key{};  // of main's thread, thread_locals are not destroyed then
       (void)pthread_key_create(&key, [](void*) { reach(1); });
       (void)pthread_setspecific(key, &key);
       pthread_exit(nullptr);
     }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  place() = argv[1], device = argv[2], uses_all = argv[3] == std::string_view("all");
  chosen = argv[4];
  for (const auto& row : kPlaces)
    if (row.name == place()) {
      row.set_up();
      return 0;
    }
  return 2;
}
