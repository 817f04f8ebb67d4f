// The kernels that a text declares, as they are found before a driver reads it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/program/parameters.h"

namespace ocltensor::opencl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DeclaredKernels, AreThoseOfTheTextAlone) {
  EXPECT_THAT(declared_kernels(R"(
    // __kernel void in_a_comment(__global float *x) {}
    /* kernel void in_another( */
    void helper(int n);
    __attribute__((reqd_work_group_size(64, 1, 1))) __kernel void first(__global float *x) {
      helper(1);
    }
    kernel
    __attribute__((vec_type_hint(float4)))
    void second (global float *x);
    float kernel_size(int n) { return n; }
    __kernel void third() {})"),
              ElementsAre("first", "second", "third"));
}

TEST(DeclaredKernels, OfOddTexts) {
  for (const char* text : {"", "__kernel", "__kernel void", "kernel void x", "void f(", "/* ", "//",
                           "__kernel void;", "__kernel {void f()}"})
    EXPECT_THAT(declared_kernels(text), IsEmpty()) << text;
  const std::string name(100'000, 'k');
  EXPECT_THAT(declared_kernels("__kernel void " + name + "() {}"), ElementsAre(name));
}

}  // namespace
}  // namespace ocltensor::opencl
