// Statistics, limits and verification of the pool.
#include <algorithm>
#include <cmath>

#include "runtime/pool/pool_state.h"

namespace ocltensor::runtime {

namespace {

constexpr double kHighestRatio = 2.0;

// The counters that all parts of tb_memory_stats have in common.
constexpr tb_memory_stat tb_memory_stats::*kCounters[] = {
    &tb_memory_stats::requested_bytes, &tb_memory_stats::allocated_bytes,
    &tb_memory_stats::active_bytes,    &tb_memory_stats::reserved_bytes,
    &tb_memory_stats::allocations,     &tb_memory_stats::segments,
    &tb_memory_stats::pinned_bytes,
};

void check_ratio(const char* name, double ratio) {
  check(ratio >= 0.0 && ratio <= kHighestRatio,
        "{} {} is out of range: it must lie in 0..2, where 0 means no limit", name, ratio);
}

uint64_t scaled(uint64_t bytes, double ratio) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(bytes) * ratio));
}

[[noreturn]] void broken(const char* what, tb_address where) {
  fail(TB_E_INTERNAL, "the memory pool is inconsistent: {} at {:#x}", what, where);
}

void expect(bool holds, const char* what, tb_address where = 0) {
  if (!holds) broken(what, where);
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return fmt::format("{:.2f} {}", value, units[unit]);
}

void PoolState::fill_stats(tb_memory_stats& out) const {
  for (const auto counter : kCounters) out.*counter = stats_.*counter;
  out.allocation_retries = stats_.allocation_retries;
  out.out_of_memory_errors = stats_.out_of_memory_errors;
  out.driver_bytes = static_cast<uint64_t>(stats_.reserved_bytes.current);
  out.recommended_bytes = options_.recommended_bytes;
  out.limit_bytes = high_limit_;
  out.low_limit_bytes = low_limit_;
}

void PoolState::reset_peaks() {
  for (const auto counter : kCounters) (stats_.*counter).peak = (stats_.*counter).current;
}

void PoolState::reset_accumulated() {
  for (const auto counter : kCounters) (stats_.*counter).allocated = (stats_.*counter).freed = 0;
  stats_.allocation_retries = 0;
  stats_.out_of_memory_errors = 0;
}

void PoolState::count_pinned(int64_t delta) {
  if (delta >= 0)
    add_to(stats_.pinned_bytes, static_cast<uint64_t>(delta));
  else
    take_from(stats_.pinned_bytes, static_cast<uint64_t>(-delta));
}

void PoolState::set_fraction(double fraction) {
  set_watermarks(fraction, options_.low_ratio);
  fraction_set_ = true;
}

void PoolState::set_watermarks(double high, double low) {
  check_ratio("the high watermark ratio", high);
  check_ratio("the low watermark ratio", low);
  fraction_set_ = false;
  options_.high_ratio = high;
  options_.low_ratio = low;
  high_limit_ = scaled(options_.recommended_bytes, high);
  if (high > 0) {
    if (options_.physical_bytes != 0) high_limit_ = std::min(high_limit_, options_.physical_bytes);
    high_limit_ = std::max<uint64_t>(high_limit_, 1);  // 0 would mean none
  }
  low_limit_ = scaled(options_.recommended_bytes, low);
  if (high > 0) low_limit_ = std::min(low_limit_, high_limit_);
  publish_slack();
  if ((options_.debug & kDebugProfiling) != 0)
    lines.push_back(fmt::format("limits: recommended {}, high {}, low {}",
                                format_bytes(options_.recommended_bytes),
                                high_limit_ == 0 ? "none" : format_bytes(high_limit_),
                                low_limit_ == 0 ? "none" : format_bytes(low_limit_)));
}

void PoolState::publish_slack() {
  const auto reserved = static_cast<uint64_t>(stats_.reserved_bytes.current);
  const uint64_t left = low_limit_ > reserved ? low_limit_ - reserved : 0;
  slack_.store(low_limit_ == 0 ? UINT64_MAX : left, std::memory_order_relaxed);
}

void PoolState::verify() const {
  uint64_t reserved = 0, allocated = 0, requested = 0, pending = 0, cached = 0, kept = 0;
  size_t live = 0, imports = 0, free_blocks = 0, shelved = 0, pending_blocks = 0;
  for (const auto& [base, segment] : store_.segments()) {
    const Location location = space_.resolve(base + segment.bytes);
    expect(location && location.base == base && location.pool == pool_ &&
               location.segment == segment.handle,
           "a segment's addresses lead elsewhere", base);
    if (segment.kind == kImported) {
      const auto found = live_.find(base);
      expect(found != live_.end() && found->second == segment.first &&
                 segment.first->fills_segment() && segment.first->next == nullptr,
             "imported memory that is not one live block", base);
      ++imports;
      continue;
    }
    reserved += segment.bytes;
    uint64_t offset = 0;
    const Block* previous = nullptr;
    for (const Block* block = segment.first; block != nullptr; block = block->next) {
      const tb_address address = base + block->offset;
      expect(block->segment == &segment && block->previous == previous && block->bytes > 0 &&
                 block->offset == offset,
             "a broken chain of blocks", address);
      if (block->state == BlockState::kLive) {
        const auto found = live_.find(address);
        expect(found != live_.end() && found->second == block, "a live block that is lost",
               address);
        expect(block->requested < block->bytes || block->fills_segment(), "no padding", address);
        allocated += block->bytes;
        requested += block->requested;
        ++live;
      } else if (block->state == BlockState::kPending) {
        pending += block->bytes;
        ++pending_blocks;
      } else {
        expect(previous == nullptr || previous->state != BlockState::kFree ||
                   previous->owner != block->owner,
               "free neighbours that did not coalesce", address);
        if (is_private(block->owner))
          kept += block->bytes;
        else if (block->fills_segment())
          cached += block->bytes;
        ++free_blocks;
      }
      offset += block->bytes;
      previous = block;
    }
    expect(offset == segment.bytes, "blocks that do not fill their segment", base);
  }
  for (const PoolKind kind : kAllPools)
    for (const auto& [stream, shelf] : store_.shelves(kind))
      for (const Block* block : shelf) {
        expect(block->state == BlockState::kFree && block->owner == stream &&
                   block->segment->kind == kind,
               "a block on the wrong shelf", block->address());
        ++shelved;
      }
  expect(shelved == free_blocks, "free blocks on no shelf");
  expect(live + imports == live_.size() && pending_blocks == pending_.size(),
         "a wrong count of blocks");
  const auto is = [](const tb_memory_stat& stat, uint64_t value) {
    return stat.current == static_cast<int64_t>(value) && stat.peak >= stat.current;
  };
  expect(cached == store_.cached_bytes() && kept == store_.private_bytes() &&
             is(stats_.reserved_bytes, reserved) && is(stats_.allocated_bytes, allocated) &&
             is(stats_.requested_bytes, requested) &&
             is(stats_.active_bytes, allocated + pending) && is(stats_.allocations, live) &&
             is(stats_.segments, store_.segments().size() - imports),
         "statistics that differ from the blocks");
}

}  // namespace ocltensor::runtime
