// What the two gradients of a convolution share: made once per call, but never by commands that are
// dropped, after which it would be read without having been written.
#include <gtest/gtest.h>

#include "any_call.h"
#include "ops/conv/conv.h"
#include "runtime/program/dry_run.h"

namespace ocltensor::opencl::conv {
namespace {

struct Kept {
  int staged = 0;
};
const int kMine = 0, kOther = 0;

TEST(SharedOperands, AreKeptFromOneGradientToTheOther) {
  const AnyCall call;
  Shared shared;
  Kept* first = shared.of<Kept>(*call, &kMine);
  ASSERT_NE(first, nullptr);
  first->staged = 3;
  EXPECT_EQ(shared.of<Kept>(*call, &kMine), first);
  EXPECT_EQ(first->staged, 3);
}

TEST(SharedOperands, AreOfTheProviderThatKeepsFirst) {
  const AnyCall call;
  Shared shared;
  ASSERT_NE(shared.of<Kept>(*call, &kMine), nullptr);
  EXPECT_EQ(shared.of<Kept>(*call, &kOther), nullptr);
}

TEST(SharedOperands, AreNotKeptByADryRun) {
  const AnyCall call;
  Shared shared;
  {
    const DryRun dry;
    EXPECT_EQ(shared.of<Kept>(*call, &kMine), nullptr);
  }
  EXPECT_EQ(shared.owner, nullptr);
  Kept* kept = shared.of<Kept>(*call, &kMine);
  ASSERT_NE(kept, nullptr);
  kept->staged = 1;
  const DryRun dry;  // what is there already is not read either: its commands may be the dropped
  EXPECT_EQ(shared.of<Kept>(*call, &kMine), nullptr);
}

}  // namespace
}  // namespace ocltensor::opencl::conv
