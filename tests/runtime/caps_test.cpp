// OCLTENSOR_CAPS: what devices say, what is refused, and which programs are shared. In processes of
// their own, as devices are asked once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include "fresh_process.h"

namespace {

namespace ot = ocltensor;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Caps, WithoutThemNothingIsRefused) {
  const Outcome o = probe("caps");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, AllOf(HasSubstr("40 KiB: done"), HasSubstr("128 MiB: done"),
                            Not(HasSubstr("local 32768 "))));
  // NVIDIA's driver itself lets a kernel that says nothing of its size have 256.
  if (o.text.find("kernel takes 256\n") == std::string::npos) {
    EXPECT_THAT(o.text, HasSubstr("512 work-items: done"));
  }
}

TEST(Caps, LimitsAreReportedAndHold) {
  const Outcome o =
      probe("caps", "OCLTENSOR_CAPS=work_group=256,local_memory=32K,largest_allocation=64M,fp64=0");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("group 256 local 32768 piece 67108864"));
  EXPECT_THAT(o.text, HasSubstr("program sees fp64 0"));
  EXPECT_THAT(o.text, HasSubstr("kernel takes 256"));
  EXPECT_THAT(o.text,
              HasSubstr("a group of 512 work-items is larger than this kernel's limit of 256"));
  EXPECT_THAT(o.text, ContainsRegex("4096[0-9] bytes of local memory, limit 32768"));
  EXPECT_THAT(o.text, HasSubstr("the largest single allocation of this device is 64.00 MiB"));
}

TEST(Caps, AProfileLowersWhatTheDeviceHas) {
  const Outcome o = probe("caps", "OCLTENSOR_CAPS=small-gpu,work_group=128");
  EXPECT_THAT(o.text, HasSubstr("group 128 local 32768 piece 268435456"));
  const Outcome all = probe("caps", "OCLTENSOR_CAPS=smallest-gpu,unified_memory=0");
  EXPECT_THAT(all.text, HasSubstr("features 0 group 128 local 32768"));
}

// The kernels of GPUs for the smallest of operators are launched with more items.
TEST(Caps, LaunchesFitTheLimitOfTheirKernel) {
  const Outcome o =
      probe("add", "OCLTENSOR_KERNEL_STYLE=gpu OCLTENSOR_CAPS=work_group=256,kernel_work_group=32");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("right"));
}

// And a driver that says so, and refuses what is larger.
TEST(Caps, LaunchesFitWhatTheDriverSaysOfTheirKernel) {
  for (const char* mode : {"add", "convolve"}) {
    const Outcome o = probe(
        mode, "OPENCL_LAYERS=" POOR_DRIVER " KERNEL_WORK_GROUP=32 OCLTENSOR_KERNEL_STYLE=gpu");
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_THAT(o.text, HasSubstr("right"));
  }
}

TEST(Caps, TheReportSaysWhichKernelsADeviceIsGiven) {
  EXPECT_THAT(probe("devices", "OCLTENSOR_KERNEL_STYLE=cpu").text, HasSubstr("kernels for CPUs"));
  const std::string gpu = "OCLTENSOR_KERNEL_STYLE=gpu OCLTENSOR_CAPS=";
  EXPECT_THAT(probe("devices", gpu + "item_registers=128,trusted_compiler=0").text,
              HasSubstr("kernels for GPUs, tiles of up to 64 results (128 registers a work-item), "
                        "programs by builders first"));
  EXPECT_THAT(probe("devices", gpu + "item_registers=16,structs_by_value=0").text,
              HasSubstr("tiles in local memory (16 registers a work-item), parameters in buffers"));
}

TEST(Caps, WhatWouldRaiseIsRefusedWithWhatTheDeviceHas) {
  const Outcome o = probe("reason", "OCLTENSOR_CAPS=local_memory=1024G");
  EXPECT_THAT(o.text, AllOf(HasSubstr("devices 0"), HasSubstr("a device is refused"),
                            HasSubstr("local_memory=1099511627776 is more than this device has")));
}

TEST(Caps, UnknownNamesAreRefusedWithAllNames) {
  for (const char* bad : {"fp8=0", "gpu-tiny", "fp16=2", "work_group=1", "fp16"}) {
    const Outcome o = probe("reason", std::string("OCLTENSOR_CAPS=") + bad);
    EXPECT_THAT(o.text, AllOf(HasSubstr("OCLTENSOR_CAPS"), HasSubstr("int64_atomics"),
                              HasSubstr("small-gpu")));
  }
}

// A program that names an extension is another one where that is hidden; all others are shared.
TEST(Caps, ProgramsAreSharedUnlessTheyDiffer) {
  const Folder f;
  EXPECT_THAT(probe("add", f.cache()).text, HasSubstr("right builds 1 loads 0"));
  EXPECT_THAT(probe("add", f.cache() + " OCLTENSOR_CAPS=local_memory=32K,int64_atomics=0").text,
              HasSubstr("right builds 0 loads 1"));
  EXPECT_THAT(probe("add", f.cache() + " OCLTENSOR_CAPS=fp64=0").text,
              HasSubstr("right builds 1 loads 0"));
  EXPECT_THAT(probe("add", f.cache() + " OCLTENSOR_FLOAT64=0").text,
              HasSubstr("right builds 0 loads 1"));
}

// In this process: as the device is, and (CMakeLists.txt) with the kernels and limits of a small
// GPU. Sums of eigenvalues and of their squares are traces; 80 rows take the launches that many
// work-groups share.
TEST(SmallGpu, EigenvaluesOfLargerMatrices) {
  constexpr int64_t kRows = 80;
  std::vector<float> a(kRows * kRows);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>((i * i * 31 + i * 7) % 19) / 19;
  double trace = 0, trace_of_square = 0;
  for (size_t i = 0; i < kRows; ++i) {
    trace += a[i * kRows + i];
    for (size_t j = 0; j < kRows; ++j) trace_of_square += a[i * kRows + j] * a[j * kRows + i];
  }
  const ot::Tensor values = ot::linalg_eigvals(ot::tensor(a, {kRows, kRows}, "ocl"));
  const auto distance = [](const ot::Tensor& terms, double wanted) {
    return ot::abs(ot::sub(ot::sum(terms), wanted)).to_vector<float>()[0];
  };
  // 80 eigenvalues of at most 40, each right to some 1e-6 of the largest.
  EXPECT_NEAR(distance(values, trace), 0, 80 * 40e-6);
  EXPECT_NEAR(distance(ot::mul(values, values), trace_of_square), 0, 80 * 2 * 40 * 40e-6);
}

}  // namespace
