// What the plugin adds to a driver's launch: the same small kernel enqueued by hand and as an
// operator, through the C ABI and through the C++ host. Run with --benchmark_repetitions=9 and
// compare medians; the difference of raw and plugin is the plugin's own share.
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <ocltensor/ocltensor.h>

#include <CL/opencl.hpp>
#include <cstdlib>
#include <stdexcept>

namespace {

namespace ot = ocltensor;
constexpr int64_t kCount = 256;
constexpr int kFlushEvery = 1000;
constexpr const char* kEmpty = "__kernel void empty(__global float* x, ulong at, int n) {}";

struct Plugin {
  const tb_api* api = nullptr;
  tb_stream stream = nullptr;
};

// The plugin that the host has loaded: the same library gives the same tables.
const Plugin& plugin() {
  static const Plugin p = [] {
    (void)ot::device_properties("ocl");
    void* library = dlopen(PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) throw std::runtime_error("the host has not loaded " PLUGIN);
    const auto get =
        reinterpret_cast<tb_plugin_get_api_fn>(dlsym(library, TB_PLUGIN_GET_API_SYMBOL));
    Plugin found;
    if (get(TB_ABI_MAJOR, nullptr, nullptr, &found.api) != TB_OK ||
        found.api->stream->default_stream(0, &found.stream, nullptr) != TB_OK)
      throw std::runtime_error("the plugin does not start");
    return found;
  }();
  return p;
}

// What the plugin's stream stands on, with references of our own.
struct Driver {
  cl::Context context;
  cl::Device device;
  cl::CommandQueue queue;

  Driver() {
    const tb_interop_api* interop = plugin().api->interop;
    void *own_context = nullptr, *own_device = nullptr, *own_queue = nullptr;
    interop->context(0, &own_context, nullptr);
    interop->device(0, &own_device, nullptr);
    interop->queue(plugin().stream, &own_queue, nullptr);
    context = cl::Context(static_cast<cl_context>(own_context), true);
    device = cl::Device(static_cast<cl_device_id>(own_device), true);
    queue = cl::CommandQueue(static_cast<cl_command_queue>(own_queue), true);
  }
  cl::Kernel kernel(const char* source, const char* name) const {
    const cl::Program program(context, std::string(source));
    program.build(device);
    return cl::Kernel(program, name);
  }
};

void enqueue_one(const Driver& driver, const cl::Kernel& kernel, int& count) {
  const size_t one = 1;
  clEnqueueNDRangeKernel(driver.queue(), kernel(), 1, nullptr, &one, &one, 0, nullptr, nullptr);
  if (++count % kFlushEvery == 0) clFinish(driver.queue());
}

// A kernel of the operator's shape: five buffers with offsets and one structure; two arguments
// change each time.
void raw_launch(benchmark::State& state) {
  const Driver driver;
  cl::Kernel kernel = driver.kernel(
      "typedef struct { long v[60]; } P; __kernel void add(__global float* o, ulong oo, __global "
      "const float* a, ulong ao,"
      "__global const float* b, ulong bo, __global const float* c, ulong co, __global const float* "
      "d, ulong doff, const P p)"
      "{ for (int i = 0; i < (int)p.v[0]; ++i) o[i] = a[i] + b[i]; }",
      "add");
  const cl::Buffer buffer(driver.context, CL_MEM_READ_WRITE, 3 * kCount * 4);
  struct {
    int64_t v[60];
  } parameters{{kCount}};
  const cl_ulong offset = 0;
  for (cl_uint i = 0; i < 10; i += 2) {
    kernel.setArg(i, buffer);
    kernel.setArg(i + 1, offset);
  }
  int n = 0;
  for (auto _ : state) {
    clSetKernelArg(kernel(), 1, sizeof offset, &offset);
    clSetKernelArg(kernel(), 10, sizeof parameters, &parameters);
    enqueue_one(driver, kernel, n);
  }
  driver.queue.finish();
}
BENCHMARK(raw_launch);

// The driver's enqueue alone.
void raw_empty(benchmark::State& state) {
  const Driver driver;
  cl::Kernel kernel = driver.kernel(kEmpty, "empty");
  const cl::Buffer buffer(driver.context, CL_MEM_READ_WRITE, 64);
  kernel.setArg(0, buffer);
  kernel.setArg(1, cl_ulong{0});
  kernel.setArg(2, cl_int{1});
  int n = 0;
  for (auto _ : state) enqueue_one(driver, kernel, n);
  driver.queue.finish();
}
BENCHMARK(raw_empty);

void plugin_empty(benchmark::State& state) {
  const Plugin& p = plugin();
  const ot::Tensor a = ot::ones({kCount}, {ot::DType::Float32, "ocl"});
  tb_library library = nullptr;
  tb_kernel kernel = nullptr;
  if (p.api->kernel->compile(0, kEmpty, "", &library, nullptr) != TB_OK ||
      p.api->kernel->find(library, "empty", &kernel, nullptr, nullptr) != TB_OK)
    throw std::runtime_error("the empty kernel does not compile");
  tb_value args[2]{};
  args[0].tag = TB_TENSOR;
  args[0].as.p = &a.abi();
  args[1].tag = TB_INT;
  args[1].as.i = 1;
  const uint64_t one = 1;
  int n = 0;
  for (auto _ : state) {
    if (p.api->kernel->launch(p.stream, kernel, args, 2, 1, &one, &one, nullptr) != TB_OK)
      state.SkipWithError("the launch failed");
    if (++n % kFlushEvery == 0) p.api->stream->synchronize(p.stream, nullptr);
  }
  ot::synchronize("ocl");
  p.api->kernel->destroy(library, nullptr);
}
BENCHMARK(plugin_empty);

void plugin_add(benchmark::State& state) {
  const Plugin& p = plugin();
  const ot::Tensor a = ot::ones({kCount}, {ot::DType::Float32, "ocl"});
  const ot::Tensor b = ot::ones({kCount}, {ot::DType::Float32, "ocl"});
  const ot::Tensor c = ot::empty_like(a);
  tb_call call{};
  call.struct_size = sizeof call;
  p.api->operators->find("add.out", &call.op, nullptr);
  call.stream = p.stream;
  tb_value args[3]{};
  args[0].tag = args[1].tag = TB_TENSOR;
  args[0].as.p = &a.abi();
  args[1].as.p = &b.abi();
  args[2].tag = TB_INT;
  args[2].as.i = 1;
  const tb_tensor* outs[] = {&c.abi()};
  call.args = args;
  call.arg_count = 3;
  call.outs = outs;
  call.out_count = 1;
  int n = 0;
  for (auto _ : state) {
    if (p.api->operators->invoke(&call, nullptr) != TB_OK) state.SkipWithError("add.out failed");
    if (++n % kFlushEvery == 0) p.api->stream->synchronize(p.stream, nullptr);
  }
  ot::synchronize("ocl");
}
BENCHMARK(plugin_add);

void host_add(benchmark::State& state) {
  const ot::Tensor a = ot::ones({kCount}, {ot::DType::Float32, "ocl"});
  const ot::Tensor b = ot::ones({kCount}, {ot::DType::Float32, "ocl"});
  ot::Tensor c = ot::empty_like(a);
  int n = 0;
  for (auto _ : state) {
    ot::add_out(c, a, b);
    if (++n % kFlushEvery == 0) ot::synchronize("ocl");
  }
  ot::synchronize("ocl");
}
BENCHMARK(host_add);

// Adds tensors of other layouts: a row to each row of a matrix, a matrix to a transposed one.
void host_add_layout(benchmark::State& state, const ot::Tensor& a, const ot::Tensor& b) {
  ot::Tensor c = ot::empty({16, 16}, {ot::DType::Float32, "ocl"});
  int n = 0;
  for (auto _ : state) {
    ot::add_out(c, a, b);
    if (++n % kFlushEvery == 0) ot::synchronize("ocl");
  }
  ot::synchronize("ocl");
}
void host_add_row(benchmark::State& state) {
  host_add_layout(state, ot::ones({16, 16}, "ocl"), ot::ones({16}, "ocl"));
}
BENCHMARK(host_add_row);
void host_add_transposed(benchmark::State& state) {
  host_add_layout(state, ot::ones({16, 16}, "ocl").transpose(0, 1), ot::ones({16, 16}, "ocl"));
}
BENCHMARK(host_add_transposed);

// With a number that was not there before: nothing of an earlier call is known.
void host_add_unknown(benchmark::State& state, const ot::Tensor& a, const ot::Tensor& b) {
  ot::Tensor c = ot::empty_like(a);
  int n = 0;
  for (auto _ : state) {
    ot::add_out(c, a, b, 0.5 * ++n);
    if (n % kFlushEvery == 0) ot::synchronize("ocl");
  }
  ot::synchronize("ocl");
}
void host_add_new(benchmark::State& state) {
  host_add_unknown(state, ot::ones({kCount}, "ocl"), ot::ones({kCount}, "ocl"));
}
BENCHMARK(host_add_new);
void host_add_new_row(benchmark::State& state) {
  host_add_unknown(state, ot::ones({16, 16}, "ocl"), ot::ones({16}, "ocl"));
}
BENCHMARK(host_add_new_row);

void host_add_functional(benchmark::State& state) {
  const ot::Tensor a = ot::ones({kCount}, {ot::DType::Float32, "ocl"});
  const ot::Tensor b = ot::ones({kCount}, {ot::DType::Float32, "ocl"});
  int n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ot::add(a, b));
    if (++n % kFlushEvery == 0) ot::synchronize("ocl");
  }
  ot::synchronize("ocl");
}
BENCHMARK(host_add_functional);

// The same, recorded for a gradient.
void host_add_recorded(benchmark::State& state) {
  const ot::Tensor a = ot::ones({kCount}, "ocl").requires_grad_(), b = ot::ones({kCount}, "ocl");
  int n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ot::add(a, b));
    if (++n % kFlushEvery == 0) ot::synchronize("ocl");
  }
  ot::synchronize("ocl");
}
BENCHMARK(host_add_recorded);

}  // namespace

BENCHMARK_MAIN();
