// How attention's kernels for Hopper are specialised by what a problem is: a table for each
// direction, whose first row that takes the problem decides. What rows say is measured
// (bench/history.md).
#pragma once

#include <array>

#include "kernels/defines.h"
#include "ops/attention/kind.h"

namespace ocltensor::opencl::nvidia_hopper {

// What scores go through beside products, as a set of which a row takes all. Masks and the numbers
// of dropout take registers.
enum Scores : uint8_t { kPlain = 1, kDropped = 2, kMasked = 4, kAnyScores = 7 };
constexpr Scores operator|(Scores a, Scores b) {
  return static_cast<Scores>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr Scores scores_of(const attention::Kind& kind) {
  if (kind.mask != attention::MaskKind::None) return kMasked;  // with dropout or without
  return kind.dropout ? kDropped : kPlain;
}
enum class Causal : uint8_t { No, Yes, Either };
constexpr bool holds(Causal column, bool causal) {
  return column == Causal::Either || (column == Causal::Yes) == causal;
}

// Of an item of the warpgroup that loads, and of those that multiply. 40 and 232 are faster where a
// row has them, though hardly anything is spilled either way.
struct Registers {
  int64_t loader, multiplier;

  Defines& set(Defines& d) const {
    return d.set(define::LOADER_REGISTERS, loader).set(define::MULTIPLIER_REGISTERS, multiplier);
  }
};

// A row of forward. Keys come in blocks of 128, two of them at once.
struct ForwardForm {
  int64_t depth;  // of rows in local memory: heads of up to so many numbers
  Scores scores;
  Causal causal;
  int64_t least_queries;
  int64_t warpgroups;  // that multiply, with 64 queries each
  Registers registers;

  int64_t tile_rows() const { return 64 * warpgroups; }
  int64_t items() const { return 128 * (warpgroups + 1); }
};
// Three warpgroups read keys less often; two take turns at the matrix unit, which is better for few
// rows, and have registers for masks and random numbers.
inline constexpr std::array<ForwardForm, 4> kForwardForms = {{
    {64, kPlain, Causal::No, 1025, 3, {32, 160}},
    {64, kPlain, Causal::Yes, 2049, 3, {32, 160}},
    {64, kAnyScores, Causal::Either, 0, 2, {24, 240}},
    {128, kAnyScores, Causal::Either, 0, 2, {24, 240}},
}};

// Whose gradients a pass of kernels/nvidia_hopper/attention/backward.cl makes; its PASS.
enum class HopperPass { KeyValue = 0, Query = 1, All = 2 };

// A row of backward. Two warpgroups multiply, with 64 of the rows each that a tile keeps.
struct BackwardForm {
  HopperPass pass;
  int64_t depth;  // as in ForwardForm
  Scores scores;
  int64_t streamed_rows;  // of a block; BN
  int64_t stages;         // blocks at once
  Registers registers;
};
// Two results (keys' and values') leave few registers, and so do masks: blocks are smaller then.
// Stages are what fits local memory, of which gradients of scores and sums of a block (All) take 64
// KiB and more.
inline constexpr std::array<BackwardForm, 10> kBackwardForms = {{
    {HopperPass::KeyValue, 64, kPlain | kDropped, 128, 3, {24, 240}},
    {HopperPass::KeyValue, 64, kMasked, 64, 3, {24, 240}},
    {HopperPass::KeyValue, 128, kAnyScores, 64, 3, {24, 240}},
    {HopperPass::Query, 64, kAnyScores, 128, 3, {24, 240}},
    {HopperPass::Query, 128, kPlain, 128, 2, {24, 240}},
    {HopperPass::Query, 128, kDropped | kMasked, 64, 2, {24, 240}},
    {HopperPass::All, 64, kPlain | kDropped, 128, 2, {24, 240}},
    {HopperPass::All, 64, kMasked, 64, 3, {24, 240}},
    {HopperPass::All, 128, kPlain | kDropped, 64, 2, {40, 232}},
    {HopperPass::All, 128, kMasked, 64, 2, {24, 240}},
}};

// The row for heads of `depth` numbers, 128 at most.
constexpr size_t forward_form(const attention::Kind& kind, int64_t depth, int64_t queries) {
  size_t row = 0;
  const auto takes = [&](const ForwardForm& f) {
    return depth <= f.depth && (f.scores & scores_of(kind)) != 0 && holds(f.causal, kind.causal) &&
           queries >= f.least_queries;
  };
  while (!takes(kForwardForms.at(row))) ++row;
  return row;
}
constexpr const BackwardForm& backward_form(const attention::Kind& kind, int64_t depth,
                                            HopperPass pass) {
  size_t row = 0;
  const auto takes = [&](const BackwardForm& f) {
    return pass == f.pass && depth <= f.depth && (f.scores & scores_of(kind)) != 0;
  };
  while (!takes(kBackwardForms.at(row))) ++row;
  return kBackwardForms.at(row);
}

}  // namespace ocltensor::opencl::nvidia_hopper
