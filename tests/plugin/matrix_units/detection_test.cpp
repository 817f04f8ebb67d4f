// Which devices are taken for ones with matrix units, and the reasons for which they are refused;
// the forms that each architecture has, and the choice among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "matrix_units/device_facts.h"
#include "matrix_units/matmul/forms.h"

namespace ocltensor::opencl::matrix_units {
namespace {

using testing::HasSubstr;

Capabilities gpu(const char* vendor, const char* name, std::vector<uint32_t> sub_groups) {
  Capabilities caps;
  caps.type = CL_DEVICE_TYPE_GPU;
  caps.vendor = vendor;
  caps.name = name;
  caps.driver_version = "3513.0";
  caps.subgroups = true;
  caps.subgroup_sizes = std::move(sub_groups);
  return caps;
}
Capabilities of_amd(const char* name, std::vector<uint32_t> sub_groups = {}) {
  return gpu("Advanced Micro Devices, Inc.", name, std::move(sub_groups));
}
Capabilities of_intel(const char* name, std::vector<uint32_t> sub_groups) {
  return gpu("Intel(R) Corporation", name, std::move(sub_groups));
}

constexpr const char* kExtension = " cl_intel_subgroup_matrix_multiply_accumulate ";

DeviceFacts seen(const Capabilities& caps, const char* extensions = " ") {
  return detect(extensions, caps);
}
const char* name(const DeviceFacts& facts) {
  return facts.architecture == nullptr ? "none" : facts.architecture->name;
}

TEST(MatrixUnits, AreKnownByTheDevicesName) {
  EXPECT_STREQ(name(seen(of_amd("gfx1100", {32}))), "gfx1100");
  EXPECT_STREQ(name(seen(of_amd("gfx942:sramecc+:xnack-", {64}))), "gfx942");
  EXPECT_STREQ(name(seen(of_amd("gfx1030", {32}))), "gfx1030");
  EXPECT_STREQ(name(seen(of_amd("gfx803", {64}))), "none");
  EXPECT_STREQ(name(seen(of_amd("gfx11000", {32}))), "none");
  // Mesa's name of the same GPU, whose compiler has none of the built-ins.
  EXPECT_STREQ(name(seen(of_amd("AMD Radeon RX 7900 XTX (radeonsi, navi31)"))), "none");
  EXPECT_STREQ(name(seen(gpu("NVIDIA Corporation", "gfx1100", {32}))), "none");
  Capabilities processor = of_amd("gfx1100", {32});
  processor.type = CL_DEVICE_TYPE_CPU;
  EXPECT_STREQ(name(seen(processor)), "none");
}

// MI200 takes subnormal float16 for 0.
TEST(MatrixUnits, HaveTheirTypes) {
  EXPECT_FALSE(has(seen(of_amd("gfx90a", {64})).kinds, Kind::Half));
  EXPECT_TRUE(has(seen(of_amd("gfx90a", {64})).kinds, Kind::BFloat));
  EXPECT_TRUE(has(seen(of_amd("gfx942", {64})).kinds, Kind::Half));
  EXPECT_TRUE(has(seen(of_amd("gfx1153", {32})).kinds, Kind::Half));
}

TEST(MatrixUnits, OfIntelAreKnownByNameOrExtension) {
  EXPECT_STREQ(name(seen(of_intel("Intel(R) Arc(TM) A770 Graphics", {8, 16, 32}))), "xmx8");
  EXPECT_STREQ(name(seen(of_intel("Intel(R) Data Center GPU Max 1550", {16, 32}))), "xmx16");
  EXPECT_STREQ(name(seen(of_intel("Intel(R) Arc(TM) B580 Graphics", {16, 32}), kExtension)),
               "xmx16");
  // Meteor Lake's graphics, of the same name, have none.
  EXPECT_STREQ(name(seen(of_intel("Intel(R) Arc(TM) Graphics", {8, 16, 32}))), "none");
  EXPECT_STREQ(name(seen(of_intel("Intel(R) UHD Graphics 630", {8, 16, 32}))), "none");
}

TEST(MatrixUnits, OfOtherSubGroupsAreRefusedWithBothNumbers) {
  const DeviceFacts wide = seen(of_amd("gfx1100", {64}));
  EXPECT_EQ(wide.kinds, 0);
  EXPECT_STREQ(wide.refusal,
               "the unit of gfx1100 has sub-groups of 32 lanes, the driver's have 64");
  const DeviceFacts intel = seen(of_intel("Intel(R) Arc(TM) A770 Graphics", {16, 32}));
  EXPECT_STREQ(intel.refusal,
               "the unit of xmx8 has sub-groups of 8 lanes, the driver's have 16, 32");
  EXPECT_EQ(seen(of_amd("gfx1030", {64})).refusal, nullptr) << "work-items alone";
  EXPECT_EQ(seen(of_amd("gfx942")).refusal, nullptr) << "the proof will tell";
  Capabilities without = of_intel("Intel(R) Arc(TM) A770 Graphics", {8, 16, 32});
  without.subgroups = false;
  EXPECT_THAT(seen(without).refusal, HasSubstr("no sub-groups"));
}

// 64 KiB of local memory and groups of 256 are what drivers of these devices have.
TEST(MatrixUnits, HaveFormsForEveryDevice) {
  Capabilities caps;
  caps.local_memory = 64 << 10;
  caps.max_work_group_size = 256;
  for (const Architecture& a : architectures()) {
    const auto all = static_cast<uint32_t>((1 << forms(a).size()) - 1);
    // A sub-group of 16 makes twice the work-group.
    const bool is_large = a.unit == Unit::IntelXmx && a.lanes == 16;
    caps.max_work_group_size = is_large ? 512 : 256;
    EXPECT_EQ(usable_forms(a, caps), all) << a.name;
    for (const Form& f : forms(a)) EXPECT_EQ(f.rows(a) % 16, 0) << a.name;
  }
  EXPECT_EQ(usable_forms(architectures()[0], {}), 0u);
}

TEST(MatrixUnits, TakeFormsThatFillTheDevice) {
  for (const Architecture& a : architectures()) {
    const auto choose = [&](int64_t m, int64_t n, int64_t k, int64_t pieces) {
      return choose_form(a, {1, m, n, k, 96 * a.compute_units_together, Kind::Half, 7, pieces});
    };
    EXPECT_EQ(choose(8192, 8192, 4096, kMostPieces), (Choice{0, 1})) << a.name;
    EXPECT_EQ(choose(16, 8192, 4096, 1).form, 2u) << a.name;
    EXPECT_NE(choose(512, 512, 512, 1).form, 0u) << a.name;
    EXPECT_GT(choose(64, 64, 65536, kMostPieces).pieces, 16) << a.name;
  }
}

}  // namespace
}  // namespace ocltensor::opencl::matrix_units
