// clhpp through the plugin's hidden functions, where no OpenCL library is linked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Forward, ReachesTheDriver) {
  Device& d = device(0);
  cl_int code = CL_INVALID_VALUE;
  const cl::Buffer buffer(d.context(), CL_MEM_READ_WRITE, 64, nullptr, &code);  // of the table
  ASSERT_EQ(code, CL_SUCCESS);
  EXPECT_EQ(buffer.getInfo<CL_MEM_SIZE>(), 64u);  // looked up
  EXPECT_EQ(d.context().getInfo<CL_CONTEXT_DEVICES>().at(0), d.handle());
}

TEST(Forward, ACopyHasAReferenceOfItsOwn) {
  cl_int code = CL_INVALID_VALUE;
  const cl::Buffer buffer(device(0).context(), CL_MEM_READ_WRITE, 64, nullptr, &code);
  ASSERT_EQ(code, CL_SUCCESS);
  {
    const cl::Buffer copy = buffer;  // NOLINT(performance-unnecessary-copy-initialization)
    EXPECT_EQ(copy.getInfo<CL_MEM_REFERENCE_COUNT>(), 2u);
    const View<cl::Buffer> view(buffer());
    EXPECT_EQ(view->getInfo<CL_MEM_REFERENCE_COUNT>(), 2u);
  }
  EXPECT_EQ(buffer.getInfo<CL_MEM_REFERENCE_COUNT>(), 1u);
}

TEST(Forward, NamesWhatTheLibraryLacks) {
  EXPECT_THAT([] { (void)detail::look_up("clNoSuch"); },
              ThrowsMessage<Error>(HasSubstr("lacks clNoSuch")));
}

}  // namespace
}  // namespace ocltensor::opencl
