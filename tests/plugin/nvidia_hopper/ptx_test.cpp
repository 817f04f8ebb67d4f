// Hidden instructions in PTX: found in sources, uncovered in the compiler's text.
#include "nvidia_hopper/ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel_sources.h"
#include "ocltensor/error.h"
#include "runtime/program/source.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Ptx, FindsHiddenInstructionsInAsmTextOnly) {
  EXPECT_TRUE(ptx::hides_instructions("asm volatile(\"//@ wgmma.fence.sync.aligned;\\n\");"));
  EXPECT_FALSE(ptx::hides_instructions("//@ a remark\n__kernel void f() {}"));
  EXPECT_TRUE(ptx::hides_instructions(expand(kernel_sources::nvidia_hopper_matmul_product)));
  EXPECT_FALSE(ptx::hides_instructions(expand(kernel_sources::matmul_sgemm)));
}

TEST(Ptx, UncoversWhatTheCompilerLeftInComments) {
  using namespace std::string_literals;
  const std::string text = ptx::uncover(
      "// by a compiler\n.version 9.0\n.target sm_90, texmode_independent\n.address_size 64\n"
      ".entry f(.param .u64 p)\n.reqntid 288, 1, 1\n{\n\t// begin inline asm\n"
      "\t{\n//@ .reg .pred p;\n//@ setp.ne.b32 p, %r1, 0;\n}\n\t//@ a; //@ b;\n}\n\0 rest"s);
  EXPECT_THAT(text, HasSubstr(".target sm_90a, texmode_independent\n.address_size 64\n"));
  EXPECT_THAT(text, HasSubstr("\n.reqntid 288, 1, 1\n.minnctapersm 1\n{"));
  EXPECT_THAT(text, HasSubstr("{\n.reg .pred p;\nsetp.ne.b32 p, %r1, 0;\n}\n\ta; b;\n}\n"));
  EXPECT_THAT(text, Not(HasSubstr("rest")));
  EXPECT_THAT(text, HasSubstr("// by a compiler"));
}

TEST(Ptx, RefusesOtherPrograms) {
  for (const char* text : {"",
                           "\x7f"
                           "ELF",
                           ".version 8.0\n.target sm_86\n"})
    try {
      ptx::uncover(text);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("no PTX for sm_90"));
    }
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_hopper
