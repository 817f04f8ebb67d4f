// The defines of attention's kernels on Hopper, for every problem that they take: a change of the
// tables in nvidia_hopper/attention/forms.h shows here, without the device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "nvidia_hopper/attention/attention.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

struct Block {
  int64_t rows, stages, loader, multiplier;  // BN, STAGES, registers
};
struct Row {
  int64_t depth;
  bool causal, dropout, mask;
  std::array<int64_t, 4> warpgroups;  // of forward, with queries as in kQueries
  Block key_value, query, all;        // of backward's passes
};
constexpr int64_t kQueries[] = {1024, 1025, 2048, 2049};
constexpr bool no = false;
constexpr bool yes = true;
constexpr Block b64x2{64, 2, 24, 240}, b64x3{64, 3, 24, 240}, b64x2r{64, 2, 40, 232},
    b128x2{128, 2, 24, 240}, b128x3{128, 3, 24, 240};

constexpr Row kRows[] = {
    // depth, causal, dropout, mask, warpgroups of forward, passes of backward
    {64, no, no, no, {2, 3, 3, 3}, b128x3, b128x3, b128x2},
    {64, no, no, yes, {2, 2, 2, 2}, b64x3, b128x3, b64x3},
    {64, no, yes, no, {2, 2, 2, 2}, b128x3, b128x3, b128x2},
    {64, no, yes, yes, {2, 2, 2, 2}, b64x3, b128x3, b64x3},
    {64, yes, no, no, {2, 2, 2, 3}, b128x3, b128x3, b128x2},
    {64, yes, no, yes, {2, 2, 2, 2}, b64x3, b128x3, b64x3},
    {64, yes, yes, no, {2, 2, 2, 2}, b128x3, b128x3, b128x2},
    {64, yes, yes, yes, {2, 2, 2, 2}, b64x3, b128x3, b64x3},
    {128, no, no, no, {2, 2, 2, 2}, b64x3, b128x2, b64x2r},
    {128, no, no, yes, {2, 2, 2, 2}, b64x3, b64x2, b64x2},
    {128, no, yes, no, {2, 2, 2, 2}, b64x3, b64x2, b64x2r},
    {128, no, yes, yes, {2, 2, 2, 2}, b64x3, b64x2, b64x2},
    {128, yes, no, no, {2, 2, 2, 2}, b64x3, b128x2, b64x2r},
    {128, yes, no, yes, {2, 2, 2, 2}, b64x3, b64x2, b64x2},
    {128, yes, yes, no, {2, 2, 2, 2}, b64x3, b64x2, b64x2r},
    {128, yes, yes, yes, {2, 2, 2, 2}, b64x3, b64x2, b64x2},
};

// M and MASK of each attention::MaskKind.
constexpr const char* kMasks[][2] = {
    {"u8", "0"}, {"bool", "1"}, {"f16", "2"}, {"bf16", "2"}, {"f32", "2"}};

template <typename F>
void each_kind(const Row& row, const F& then) {
  for (size_t mask = row.mask ? 1 : 0; mask < (row.mask ? attention::kMaskKinds : 1); ++mask)
    for (const DType type : {DType::Float16, DType::BFloat16})
      for (const bool tiles : {false, true}) {
        const auto kind = static_cast<attention::MaskKind>(mask);
        then(HopperAttention{{type, row.causal, row.dropout, kind}, tiles}, kMasks[mask][0],
             kMasks[mask][1]);
      }
}

TEST(HopperAttentionForms, Forward) {
  for (const Row& row : kRows)
    each_kind(row, [&](const HopperAttention& kind, const char* type, const char* mask) {
      for (size_t i = 0; i < 4; ++i) {
        const int64_t n = row.warpgroups[i];
        for (const int64_t depth : {row.depth, row.depth - 56}) {  // the widest and the narrowest
          const HopperForward v{kind, forward_form(kind, depth, kQueries[i])};
          EXPECT_EQ(v.defines().line(),
                    fmt::format("CAUSAL {:d}; DEPTH {}; DROPOUT {:d}; LOADER_REGISTERS {}; M {}; "
                                "MASK {}; MASK_TILES {:d}; MULTIPLIER_REGISTERS {}; TYPE {}; "
                                "WARPGROUPS {}",
                                row.causal, row.depth, row.dropout, n == 3 ? 32 : 24, type, mask,
                                kind.mask_tiles, n == 3 ? 160 : 240, info(kind.type).suffix, n));
        }
      }
    });
}

TEST(HopperAttentionForms, Backward) {
  for (const Row& row : kRows)
    each_kind(row, [&](const HopperAttention& kind, const char* type, const char* mask) {
      for (const HopperPass pass : {HopperPass::KeyValue, HopperPass::Query, HopperPass::All}) {
        const Block& block = pass == HopperPass::All     ? row.all
                             : pass == HopperPass::Query ? row.query
                                                         : row.key_value;
        const HopperBackward v{kind, row.depth, pass == HopperPass::All};
        EXPECT_EQ(v.defines(pass).line(),
                  fmt::format("BN {}; CAUSAL {:d}; DEPTH {}; DROPOUT {:d}; LOADER_REGISTERS {}; "
                              "M {}; MASK {}; MASK_TILES {:d}; MULTIPLIER_REGISTERS {}; PASS {}; "
                              "STAGES {}; TYPE {}",
                              block.rows, row.causal, row.depth, row.dropout, block.loader, type,
                              mask, kind.mask_tiles, block.multiplier, static_cast<int>(pass),
                              block.stages, info(kind.type).suffix));
      }
    });
}

// Proofs are kept by row and kind: another program would inherit the verdict.
TEST(HopperAttentionForms, EveryRowOfForwardIsOfUse) {
  std::array<int, kForwardForms.size()> taken{};
  for (const Row& row : kRows)
    each_kind(row, [&](const HopperAttention& kind, const char*, const char*) {
      for (const int64_t queries : kQueries) ++taken[forward_form(kind, row.depth, queries)];
    });
  for (const int count : taken) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_hopper
