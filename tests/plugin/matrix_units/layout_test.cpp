// The layouts of AMD's units in the kernels' headers, beside what AMD's matrix instruction
// calculator prints (github.com/ROCm/amd_matrix_instruction_calculator, --register-layout): there
// an element of a matrix has a register and a lane, in the headers a lane's register an element.
// Emulated products use the headers' layout on both sides, so that they cannot show that it is
// wrong.
#include "plugin/matrix_units/layout.h"

#include <gtest/gtest.h>

#define UNIT_AMD_MFMA 2
#define UNIT_AMD_WMMA 3
#define KIND_f32 2
#define KIND_i8 3
namespace ocltensor::opencl::matrix_units {
namespace rdna3 {
#define UNIT UNIT_AMD_WMMA
#define GENERATION 11
#define FRAGMENT 16
#define KIND 0
#define HEADER "../../../kernels/matrix_units/include/amd_wmma.h"
#include "plugin/matrix_units/layout_of.inc"
}  // namespace rdna3
namespace rdna4 {
#define UNIT UNIT_AMD_WMMA
#define GENERATION 12
#define FRAGMENT 16
#define KIND 0
#define HEADER "../../../kernels/matrix_units/include/amd_wmma.h"
#include "plugin/matrix_units/layout_of.inc"
}  // namespace rdna4
namespace cdna_16 {
#define UNIT UNIT_AMD_MFMA
#define GENERATION 3
#define FRAGMENT 16
#define KIND 0
#define HEADER "../../../kernels/matrix_units/include/amd_mfma.h"
#include "plugin/matrix_units/layout_of.inc"
}  // namespace cdna_16
namespace cdna_32 {
#define UNIT UNIT_AMD_MFMA
#define GENERATION 3
#define FRAGMENT 32
#define KIND 0
#define HEADER "../../../kernels/matrix_units/include/amd_mfma.h"
#include "plugin/matrix_units/layout_of.inc"
}  // namespace cdna_32
namespace {

struct Place {
  int reg, lane;
};
// Of element (i, j) of D.
using Documented = Place (*)(int i, int j);

void expect_sums(const Layout& of, Documented place) {
  for (int i = 0; i < of.fragment; ++i)
    for (int j = 0; j < of.fragment; ++j) {
      const Place at = place(i, j);
      ASSERT_LT(at.reg, of.sums);
      ASSERT_LT(at.lane, of.lanes);
      EXPECT_EQ(of.row(at.lane, at.reg), i) << i << ", " << j;
      EXPECT_EQ(of.column(at.lane, at.reg), j) << i << ", " << j;
    }
}

TEST(UnitLayouts, OfSumsAreTheDocumentedOnes) {
  // v_wmma_f32_16x16x16_f16
  expect_sums(rdna3::kLayout, [](int i, int j) -> Place { return {i / 2, i % 2 * 16 + j}; });
  expect_sums(rdna4::kLayout, [](int i, int j) -> Place { return {i % 8, i / 8 * 16 + j}; });
  // v_mfma_f32_16x16x16_f16, v_mfma_f32_32x32x8_f16; of other types the same
  expect_sums(cdna_16::kLayout, [](int i, int j) -> Place { return {i % 4, i / 4 * 16 + j}; });
  expect_sums(cdna_32::kLayout, [](int i, int j) -> Place {
    return {i / 8 * 4 + i % 4, i / 4 % 2 * 32 + j};
  });
}

// A[i][..] and B[..][i]: which lanes have them.
TEST(UnitLayouts, OfOperandsAreTheDocumentedOnes) {
  for (const Layout* of : {&rdna3::kLayout, &rdna4::kLayout, &cdna_16::kLayout, &cdna_32::kLayout})
    for (int i = 0; i < of->fragment; ++i)
      for (int lane = i; lane < of->lanes; lane += of->fragment) EXPECT_EQ(of->line(lane), i);
  for (int lane = 0; lane < 32; ++lane)  // both halves have all of k
    EXPECT_EQ(rdna3::kLayout.holder(5, 3, lane), 5 + lane / 16 * 16);
  for (int word = 0; word < 8; ++word)  // parts of k, in the order in which lanes read them
    EXPECT_EQ(rdna4::kLayout.holder(5, word, 0), 5 + word / 4 * 16);
  for (int word = 0; word < 16; ++word)
    EXPECT_EQ(cdna_16::kLayout.holder(5, word, 0), 5 + word / 4 * 16);
  for (int word = 0; word < 8; ++word)
    EXPECT_EQ(cdna_32::kLayout.holder(5, word, 0), 5 + word / 4 * 32);
}

}  // namespace
}  // namespace ocltensor::opencl::matrix_units
