// The declaration of work-groups that run at a time: asked for by sources, added to PTX.
#include "nvidia/resident_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel_sources.h"
#include "nvidia/device_facts.h"
#include "runtime/program/source.h"

namespace ocltensor::opencl::nvidia {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ResidentGroups, AreAskedForByTilesOnDevicesOfNvidia) {
  Capabilities caps;
  const std::string product = expand(kernel_sources::matmul_sgemm);
  EXPECT_FALSE(wants_resident_groups(caps, product));
  caps.facts.set(DeviceFacts{.compute_capability = 61});
  EXPECT_TRUE(wants_resident_groups(caps, product));
  EXPECT_TRUE(wants_resident_groups(caps, expand(kernel_sources::conv_implicit)));
  EXPECT_FALSE(wants_resident_groups(caps, expand(kernel_sources::matmul_split_k_sum)));
}

TEST(ResidentGroups, AreDeclaredForKernelsOf256Items) {
  using namespace std::string_literals;
  EXPECT_EQ(declare_resident_groups(".entry f()\n.reqntid 256, 1, 1\n{\n}\n"
                                    ".entry g()\n.reqntid 128, 1, 1\n{\n}\n\0 rest"s),
            ".entry f()\n.reqntid 256, 1, 1\n.minnctapersm 2\n{\n}\n"
            ".entry g()\n.reqntid 128, 1, 1\n{\n}\n");
}

TEST(ResidentGroups, LeaveOtherProgramsAlone) {
  for (const std::string text : {"",
                                 "\x7f"
                                 "ELF",
                                 ".entry g()\n.reqntid 1256, 1, 1\n{\n}\n"})
    EXPECT_EQ(declare_resident_groups(text), text);
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia
