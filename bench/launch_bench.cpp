// What the plugin adds to a driver's launch: the same small kernel enqueued by hand and as an
// operator, through the C ABI and through the C++ host. Run with --benchmark_repetitions=9 and
// compare medians; the difference of raw and plugin is the plugin's own share.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <ocltensor/ocltensor.h>

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

// A kernel of the operator's shape: five buffers with offsets and one structure; two arguments
// change each time.
void raw_launch(benchmark::State& state) {
  const tb_interop_api* interop = plugin().api->interop;
  void *context = nullptr, *device = nullptr, *queue = nullptr;
  interop->context(0, &context, nullptr);
  interop->device(0, &device, nullptr);
  interop->queue(plugin().stream, &queue, nullptr);
  const char* source =
      "typedef struct { long v[60]; } P; __kernel void add(__global float* o, ulong oo, __global "
      "const float* a, ulong ao,"
      "__global const float* b, ulong bo, __global const float* c, ulong co, __global const float* "
      "d, ulong doff, const P p)"
      "{ for (int i = 0; i < (int)p.v[0]; ++i) o[i] = a[i] + b[i]; }";
  auto* cl_context_handle = static_cast<cl_context>(context);
  cl_device_id id = static_cast<cl_device_id>(device);
  cl_program program = clCreateProgramWithSource(cl_context_handle, 1, &source, nullptr, nullptr);
  clBuildProgram(program, 1, &id, "", nullptr, nullptr);
  cl_kernel kernel = clCreateKernel(program, "add", nullptr);
  cl_mem buffer =
      clCreateBuffer(cl_context_handle, CL_MEM_READ_WRITE, 3 * kCount * 4, nullptr, nullptr);
  struct {
    int64_t v[60];
  } parameters{{kCount}};
  cl_ulong offset = 0;
  for (cl_uint i = 0; i < 10; ++i)
    clSetKernelArg(kernel, i, i % 2 ? sizeof offset : sizeof buffer,
                   i % 2 ? static_cast<void*>(&offset) : &buffer);
  const size_t one = 1;
  int n = 0;
  for (auto _ : state) {
    clSetKernelArg(kernel, 1, sizeof offset, &offset);
    clSetKernelArg(kernel, 10, sizeof parameters, &parameters);
    clEnqueueNDRangeKernel(static_cast<cl_command_queue>(queue), kernel, 1, nullptr, &one, &one, 0,
                           nullptr, nullptr);
    if (++n % kFlushEvery == 0) clFinish(static_cast<cl_command_queue>(queue));
  }
  clFinish(static_cast<cl_command_queue>(queue));
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
}
BENCHMARK(raw_launch);

// The driver's enqueue alone.
void raw_empty(benchmark::State& state) {
  const tb_interop_api* interop = plugin().api->interop;
  void *context = nullptr, *device = nullptr, *shared = nullptr;
  interop->context(0, &context, nullptr);
  interop->device(0, &device, nullptr);
  interop->queue(plugin().stream, &shared, nullptr);
  const char* source = kEmpty;
  auto* id = static_cast<cl_device_id>(device);
  auto* queue = static_cast<cl_command_queue>(shared);
  cl_program program =
      clCreateProgramWithSource(static_cast<cl_context>(context), 1, &source, nullptr, nullptr);
  clBuildProgram(program, 1, &id, "", nullptr, nullptr);
  cl_kernel kernel = clCreateKernel(program, "empty", nullptr);
  cl_mem buffer =
      clCreateBuffer(static_cast<cl_context>(context), CL_MEM_READ_WRITE, 64, nullptr, nullptr);
  const cl_ulong offset = 0;
  const cl_int count = 1;
  clSetKernelArg(kernel, 0, sizeof buffer, static_cast<const void*>(&buffer));
  clSetKernelArg(kernel, 1, sizeof offset, &offset);
  clSetKernelArg(kernel, 2, sizeof count, &count);
  const size_t one = 1;
  int n = 0;
  for (auto _ : state) {
    clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr);
    if (++n % kFlushEvery == 0) clFinish(queue);
  }
  clFinish(queue);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
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
