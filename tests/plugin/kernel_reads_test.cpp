// Defines are tied to their kernel: one that it does not read is refused, and so is one that it
// needs and that is missing.
#include "runtime/program/kernel_reads.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "kernel_sources.h"
#include "kernels/defines.h"
#include "ocltensor/error.h"
#include "plugin/any_call.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(KernelReads, AreKnownOfEveryKernelFile) {
  for (const Source* source : kernel_sources::all()) {
    if (!std::string_view(source->path).ends_with(".cl")) continue;
    const auto all = kernel_reads();
    EXPECT_EQ(std::ranges::count(all, std::string_view(source->path), &KernelReads::path), 1)
        << source->path;
  }
}

TEST(KernelReads, ADefineThatAKernelDoesNotReadIsRefused) {
  if (!checks_defines()) GTEST_SKIP() << "SKIPPED: built without OCLTENSOR_WERROR";
  const AnyCall any;
  EXPECT_THAT(error_of([] {
                (void)device(0).programs().find(kernel_sources::reduce_arg_merge,
                                                Defines().set(define::DEPTH, 64));
              }),
              AllOf(HasSubstr("reduce/arg_merge.cl"), HasSubstr("DEPTH")));
}

TEST(KernelReads, ADefineMayBeReadByAnothersText) {
  const Source& source = kernel_sources::elementwise_elementwise_gpu;
  refuse_unread(source, "#define EXPRESSION (a + WEIGHT)\n#define WEIGHT 3\n");
  EXPECT_THAT(error_of([&] {
                refuse_unread(source, "#define EXPRESSION (a + WEIGHTS)\n#define WEIGHT 3\n");
              }),
              HasSubstr("WEIGHT"));
}

// Which would be 0 in an #if, so that a launcher that forgets one would go unseen.
TEST(KernelReads, AMissingDefineIsRefused) {
  if (!checks_defines()) GTEST_SKIP() << "SKIPPED: built without OCLTENSOR_WERROR";
  const AnyCall any;
  EXPECT_THAT(error_of([] {
                (void)device(0).programs().find(kernel_sources::scan_scan_extremes, Defines());
              }),
              AllOf(HasSubstr("scan/scan_extremes.cl"), HasSubstr("FLOATING")));
}

}  // namespace
}  // namespace ocltensor::opencl
