// Which devices Hopper's kernels run on.
#include "nvidia_hopper/provider.h"

#include <gtest/gtest.h>

#include "nvidia/device_facts.h"

namespace ocltensor::opencl {
namespace {

TEST(HopperProvider, SuitsHopperUnlessItIsToldToBeLess) {
  Capabilities caps;
  caps.facts.set(nvidia::DeviceFacts{.compute_capability = 90});
  caps.max_work_group_size = 1024;
  EXPECT_TRUE(kNvidiaHopper.suits(caps));
  caps.is_capped = true;  // by float64, say
  EXPECT_TRUE(kNvidiaHopper.suits(caps));
  caps.max_work_group_size = 256;
  EXPECT_FALSE(kNvidiaHopper.suits(caps));
  caps.max_work_group_size = 1024;
  caps.local_memory_capped = true;
  EXPECT_FALSE(kNvidiaHopper.suits(caps));
  caps.local_memory_capped = false;
  caps.facts.set(nvidia::DeviceFacts{.compute_capability = 100});
  EXPECT_FALSE(kNvidiaHopper.suits(caps));
}

}  // namespace
}  // namespace ocltensor::opencl
