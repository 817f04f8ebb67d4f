// Custom kernels through the C++ host, on the default device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <array>
#include <thread>

namespace ot = ocltensor;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

constexpr const char* kSource = R"(
__kernel void scale(__global float *out, __global const float *in, float factor, int shift) {
  const size_t i = get_global_id(0);
  out[i] = in[i] * factor + shift;
}
__kernel void at_offset(__global float *base, ulong offset, short by) {
  ((__global float *)((__global char *)base + offset))[get_global_id(0)] += by;
}
__kernel void pick(__global float *out, __global const uchar *which, __global const float *from) {
  out[get_global_id(0)] = from[which[get_global_id(0)]];
}
__kernel void weigh(__global float *out, float4 w) { out[get_global_id(0)] = w.x + 2 * w.w; }
typedef struct { int a; float b; } Pair;
__kernel void types(__global float4 *v, __global const uint *u, __global ushort *h,
                    __global void *any, __global Pair *p) {}
__kernel void local_sum(__global float *out, __local float *scratch) {}
)";

const ot::KernelLibrary& library() {
  static const auto compiled = ot::KernelLibrary::compile(kSource);
  return compiled;
}

// PoCL writes a file of the kernel's name, and ends the process where that fails; NVIDIA's driver
// writes beyond its memory.
TEST(CustomKernels, NamesOfAnyLengthRunOrAreRefusedWithTheLimit) {
  for (const size_t length : {200, 252, 253, 254, 255, 256, 260, 1000}) {
    const std::string name(length, 'k');
    try {
      const auto compiled = ot::KernelLibrary::compile(
          "__kernel void " + name + "(__global float *x) { x[get_global_id(0)] = 1; }");
      const ot::Tensor x = ot::zeros({4}, {ot::DType::Float32, "ocl"});
      compiled.kernel(name).launch({x}, {4});
      EXPECT_THAT(x.to_vector<float>(), ElementsAre(1, 1, 1, 1)) << length;
    } catch (const ot::Error& error) {
      EXPECT_GT(length, 252u);
      EXPECT_EQ(error.status(), TB_E_COMPILE);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("this one has {}: kkk", length)));
      EXPECT_THAT(error.what(), ContainsRegex("at most (252 characters with Portable Computing|"
                                              "252 characters with NVIDIA)"));
    }
  }
}

TEST(CustomKernels, BindTensorsNumbersListsAndBytes) {
  EXPECT_THAT(library().names(),
              ElementsAre("at_offset", "local_sum", "pick", "scale", "types", "weigh"));
  const ot::Tensor in = ot::tensor(std::vector<float>{1, 2, 3, 4}, {4}, "ocl");
  const ot::Tensor out = ot::zeros({4}, {ot::DType::Float32, "ocl"});
  library().kernel("scale").launch({out, in, 2.5, int64_t{-1}}, {4}, {2});
  EXPECT_THAT(out.to_vector<float>(), ElementsAre(1.5f, 4.f, 6.5f, 9.f));
  library().kernel("at_offset").launch({out.narrow(0, 1, 3), int64_t{10}}, {3});
  EXPECT_THAT(out.to_vector<float>(), ElementsAre(1.5f, 14.f, 16.5f, 19.f));
  library().kernel("pick").launch(
      {out, std::vector<int64_t>{2, 0, 1, 2}, std::vector<double>{.5, .25, 8}}, {4});
  EXPECT_THAT(out.to_vector<float>(), ElementsAre(8.f, .5f, .25f, 8.f));
  const std::vector<float> vector{1, 9, 9, 3};
  library().kernel("weigh").launch({out, ot::KernelBytes{std::as_bytes(std::span(vector))}}, {4});
  EXPECT_THAT(out.to_vector<float>(), ElementsAre(7.f, 7.f, 7.f, 7.f));
}

// Kernels of the plugin may bring declarations of the functions that they use; others have all.
TEST(CustomKernels, HaveAllFunctionsOfOpenCL) {
  const auto all = ot::KernelLibrary::compile(R"(
__kernel void f(__global float *out, __global const float *in) {
  const size_t i = get_global_id(0);
  const float4 v = vload4(i, in);
  const int4 near = convert_int4_sat_rtp(v);
  out[i] = dot(v, convert_float4(near)) + native_recip(4.0f) + mad24(near.x, 2, near.y);
}
)");
  const ot::Tensor in = ot::tensor(std::vector<float>{0.5f, 1, -1.5f, 2}, {4}, "ocl");
  const ot::Tensor out = ot::zeros({1}, {ot::DType::Float32, "ocl"});
  all.kernel("f").launch({out, in}, {1});
  EXPECT_FLOAT_EQ(out.to_vector<float>()[0], 0.5f + 1 + 1.5f + 4 + 0.25f + 3);
}

TEST(CustomKernels, ErrorsNameTheLineOrTheArgument) {
  EXPECT_THAT([] { ot::KernelLibrary::compile("__kernel void f() {\n  not_a_type x;\n}\n"); },
              ThrowsMessage<ot::Error>(HasSubstr("line 2:   not_a_type x;")));
  EXPECT_THAT([] { (void)library().kernel("scales"); },
              ThrowsMessage<ot::Error>(HasSubstr("it has: at_offset, local_sum, pick, scale")));
  const ot::Tensor x = ot::ones({4}, {ot::DType::Float32, "ocl"});
  const ot::Kernel scale = library().kernel("scale");
  // A driver would take a number or bytes for a buffer's handle.
  EXPECT_THAT(([&] {
                scale.launch({int64_t{4096}, x, 1.0, int64_t{0}}, {4});
              }),
              ThrowsMessage<ot::Error>(HasSubstr("a pointer takes a tensor")));
  const std::array<std::byte, 8> bytes{};
  EXPECT_THAT(([&] {
                scale.launch({x, ot::KernelBytes{bytes}, 1.0, int64_t{0}}, {4});
              }),
              ThrowsMessage<ot::Error>(HasSubstr("bytes are the value of a number")));
  EXPECT_THAT(([&] {
                scale.launch({x, x, x, int64_t{0}}, {4});
              }),
              ThrowsMessage<ot::Error>(HasSubstr("which is no pointer")));
  EXPECT_THAT(
      [&] {
        scale.launch({x, x, 1.0}, {4});
      },
      ThrowsMessage<ot::Error>(HasSubstr("has 4 parameters, 3 arguments were given")));
  EXPECT_THAT(
      [&] {
        scale.launch({x, x, 1.0, 1.5}, {4});
      },
      ThrowsMessage<ot::Error>(HasSubstr("argument 3 (int shift): 1.5 is not a value")));
  EXPECT_THAT(
      [&] {
        scale.launch({x, x, 1.0, int64_t{1} << 40}, {4});
      },
      ThrowsMessage<ot::Error>(HasSubstr("is not a value of this type")));
  EXPECT_THAT(
      [&] {
        scale.launch({x, x, 1.0, int64_t{1}}, {4}, {3});
      },
      ThrowsMessage<ot::Error>(HasSubstr("no multiple of the group size 3")));
  EXPECT_THAT(
      [&] {
        scale.launch({x.narrow(0, 1, 3), x, 1.0, int64_t{1}}, {3});
      },
      ThrowsMessage<ot::Error>(HasSubstr("4 bytes past an address")));
}

// Two tensors for four parameters are pairs of base and offset only where the parameters are.
TEST(CustomKernels, TooFewArgumentsAreNoPairs) {
  const ot::Tensor x = ot::ones({4}, "ocl");
  EXPECT_THAT(
      [&] {
        library().kernel("scale").launch({x, x}, {4});
      },
      ThrowsMessage<ot::Error>(
          AllOf(HasSubstr("kernel scale has 4 parameters, 2 arguments were given"),
                HasSubstr(": float* out, float* in, float factor, int shift"))));
  const auto others = ot::KernelLibrary::compile(
      "__kernel void two(__global float *y, __global const float *x) {}\n"
      "__kernel void words(__global float *y, __global const ulong *x) {}\n"
      "__kernel void number(__global float *y, float a) {}\n"
      "__kernel void mixed(__global float *y, int a, __global const float *x, int n) {}\n");
  for (const char* name : {"two", "words", "number"})
    EXPECT_THAT([&] { others.kernel(name).launch({x}, {4}); },
                ThrowsMessage<ot::Error>(HasSubstr("has 2 parameters, 1 arguments")));
  EXPECT_THAT(([&] {
                others.kernel("mixed").launch({x, x}, {4});
              }),
              ThrowsMessage<ot::Error>(HasSubstr("has 4 parameters, 2 arguments")));
}

TEST(CustomKernels, ATensorsDtypeFitsThePointer) {
  using ot::DType;
  const auto of = [](DType type) { return ot::ones({8}, {type, "ocl"}); };
  const ot::Tensor x = of(DType::Float32);
  const auto refusal = [&](const char* kernel, std::initializer_list<ot::KernelArgument> args,
                           const char* text) {
    EXPECT_THAT([&] { library().kernel(kernel).launch(args, {1}); },
                ThrowsMessage<ot::Error>(HasSubstr(text)));
  };
  refusal("scale", {of(DType::Float64), x, 1.0, int64_t{0}},
          "kernel scale, argument 0 (float* out): the tensor is float64, which this pointer does "
          "not take: convert it, or declare the parameter as double* or");
  refusal("scale", {x, of(DType::Int8), 1.0, int64_t{0}}, "the tensor is int8");
  refusal("scale", {x, of(DType::Int32), 1.0, int64_t{0}}, "the tensor is int32");
  refusal("pick", {x, of(DType::Float32), x}, "argument 1 (uchar* which): the tensor is float32");
  const ot::Tensor i = of(DType::Int32), h = of(DType::Float16), p = of(DType::Float64);
  const ot::Kernel types = library().kernel("types");
  types.launch({x, i, h, x, p}, {1});
  types.launch({x, i, of(DType::BFloat16), of(DType::Bool), x}, {1});
  types.launch({of(DType::Complex64), i, of(DType::Int16), h, x}, {1});
  refusal("types", {h, i, h, x, p}, "argument 0 (float4* v): the tensor is float16");
  refusal("types", {x, x, h, x, p}, "argument 1 (uint* u): the tensor is float32");
  refusal("types", {x, i, i, x, p}, "argument 2 (ushort* h): the tensor is int32");
  library().kernel("pick").launch({x, of(DType::Bool), x}, {1});
  const std::array<std::byte, 8> bytes{};
  refusal("weigh", {x, ot::KernelBytes{bytes}}, "the type has 16 bytes, 8 were given");
  refusal("scale", {x, x.cpu(), 1.0, int64_t{0}},
          "kernel scale, argument 1: the tensor is on cpu, the kernel on ocl:0");
  refusal("local_sum", {x, x}, "__local memory cannot be passed");
}

TEST(CustomKernels, OneKernelFromManyThreads) {
  const ot::Kernel scale = library().kernel("scale");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const ot::StreamGuard guard(ot::Stream::create("ocl"));
      for (int64_t i = 0; i < 50; ++i) {
        const ot::Tensor in = ot::ones({16}, {ot::DType::Float32, "ocl"});
        const ot::Tensor out = ot::zeros({16}, {ot::DType::Float32, "ocl"});
        scale.launch({out, in, static_cast<double>(t), i}, {16});
        for (const float v : out.to_vector<float>()) wrong += v != static_cast<float>(t + i);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
