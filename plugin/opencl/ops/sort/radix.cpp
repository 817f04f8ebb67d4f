// Sorts rows by digits on GPUs: rows that fit a tile in one launch, longer ones in three launches
// for each digit of 8 bits; where few of a row's entries are wanted, those are selected first.
#include <algorithm>
#include <optional>

#include "call/divide_up.h"
#include "kernels/sort.h"
#include "keys.h"
#include "ops/reduce/reduction.h"
#include "radix_params.h"
#include "sort.h"

namespace ocltensor::opencl::sort {
namespace {

constexpr int64_t kDigits = 256;

// How many entries a work-item holds: as many as registers and local memory allow (sort_tile.h:
// keys, origins, counters, sums).
int64_t items_of(const Capabilities& caps, int64_t key_bytes) {
  const int64_t group = reduce::group_size(caps);
  int64_t items = key_bytes == 8 ? 8 : 16;
  const auto needed = [&] {
    return group * items * (key_bytes + 2) * 17 / 16 + group * (32 + 8) * 33 / 32 + 2048;
  };
  while (items > 1 && needed() > static_cast<int64_t>(caps.local_memory)) items /= 2;
  return items;
}

// The tile that a work-group holds at a time.
struct Tile {
  int64_t key_bytes, group, entries;
};
Tile tile_for(const OpCall& call, const Problem& p) {
  Tile t{size_of(p.in.dtype()) == 8 ? 8 : 4, reduce::group_size(call.caps()), 0};
  t.entries = t.group * items_of(call.caps(), t.key_bytes);
  return t;
}
// Whether selecting first pays: of rows longer than a tile at most a quarter of a tile is wanted;
// of shorter rows, which must fill a quarter of a tile to have enough to select from, an eighth.
bool is_worth_selecting(const Tile& t, int64_t length, int64_t kept) {
  return length > t.entries ? kept * 4 <= t.entries : length * 4 >= t.entries && kept * 8 <= length;
}

// Selected entries: keys and positions, `length` of each row.
struct Entries {
  Scratch keys, positions;
  int64_t length;
};

class DigitSorter {
 public:
  DigitSorter(const OpCall& call, const Problem& problem, const Tile& tile)
      : call_(call),
        in_(problem.in),
        values_(problem.values),
        indices_(problem.indices),
        rows_(problem.rows()),
        length_(problem.length()),
        kept_(problem.kept()),
        key_bytes_(tile.key_bytes),
        group_(tile.group),
        tile_(tile.entries),
        defines_(key_defines(in_.dtype(), problem.order)) {
    passes_ = divide_up(std::min(problem.order.low_bits, 8 * size_of(in_.dtype())), 8);
    some_ = is_integral(in_.dtype(), false) && size_of(in_.dtype()) >= 4;
    defines_.set(define::GROUP, group_);
  }

  // Selects until rows are short enough, which then fit tiles.
  void sort_selected(const Tile& tile) {
    while (is_worth_selecting(tile, length_of_entries(), kept_)) select();
    sort_tiles();
  }

  // Where rows are few and short, a tile has fewer of them: enough work-groups then share the work.
  void sort_tiles() {
    RadixParams p = params();
    int64_t tile = tile_;
    while (tile > 2 * group_ && tile >= 2 * p.length &&
           divide_up(rows_, tile / p.length) < call_.caps().compute_units)
      tile /= 2;
    p.tile_rows = std::min(rows_, tile / p.length);
    Defines d = defines_;
    d.set(define::ITEMS, tile / group_)
        .set(define::VALUES, values_ != nullptr)
        .set(define::ENTRIES, entries_.has_value())
        .set(define::SOME, some_);
    run(call_.launch(kernels::sort::radix_tile::sort_tiles, d,
                     {.value = values_,
                      .index = indices_,
                      .in = in_,
                      .key = entry_keys(),
                      .position = entry_positions(),
                      .p = p}),
        divide_up(rows_, p.tile_rows));
  }

  // Here entries are whole rows: selected ones fit tiles and need no such sort.
  void sort_long() {
    RadixParams p = params();
    p.tiles = divide_up(length_, tile_);
    uint64_t bytes = 0;
    const auto take = [&](int64_t size) {
      const uint64_t at = bytes;
      bytes += static_cast<uint64_t>(divide_up(size, 256) * 256);
      return at;
    };
    p.varying = take(8);
    for (uint64_t& keys : p.keys) keys = take(rows_ * length_ * key_bytes_);
    for (uint64_t& positions : p.positions) positions = take(rows_ * length_ * 4);
    p.counts = take(rows_ * p.tiles * kDigits * 4);
    p.totals = take(rows_ * kDigits * 4);
    const Scratch memory = call_.scratch(bytes);
    p.lanes = 1;
    while (p.lanes < 32 && p.lanes * 16 <= group_ && p.lanes * 8 < p.tiles) p.lanes *= 2;
    const bool some = some_ && passes_ > 2;  // finding out takes longer than two passes
    Defines d = defines_;
    d.set(define::ITEMS, tile_ / group_)
        .set(define::VALUES, values_ != nullptr)
        .set(define::SOME, some)
        .set(define::RETURNS, (call_.caps().type & CL_DEVICE_TYPE_CPU) == 0);
    if (some) find_varying(p, memory, d);
    for (p.pass = 0; p.pass < p.passes; ++p.pass) {
      namespace kernel = kernels::sort::radix;
      run(call_.launch(kernel::count_digits, d, {.memory = memory, .in = in_, .p = p}),
          rows_ * p.tiles);
      run(call_.launch(kernel::sum_counts, d, {.memory = memory, .p = p}),
          rows_ * kDigits * p.lanes / group_);
      run(call_.launch(kernel::move, d,
                       {.value = values_, .index = indices_, .memory = memory, .in = in_, .p = p}),
          rows_ * p.tiles);
    }
  }

 private:
  int64_t length_of_entries() const { return entries_ ? entries_->length : length_; }
  RadixParams params() const {
    RadixParams p{};
    p.rows = rows_;
    p.length = length_of_entries();
    p.kept = kept_;
    p.raw_length = length_;
    p.passes = static_cast<int32_t>(passes_);
    return p;
  }
  void run(Launch launch, int64_t groups) const {
    launch.run({groups * group_, 1, 1}, {group_, 1, 1});
  }
  MemoryRange entry_keys() const { return entries_ ? MemoryRange(entries_->keys) : nullptr; }
  MemoryRange entry_positions() const {
    return entries_ ? MemoryRange(entries_->positions) : nullptr;
  }

  void select() {
    RadixParams p = params();
    p.tiles = divide_up(p.length, tile_);
    const int64_t count = rows_ * p.tiles * kept_;
    Entries found{call_.scratch(static_cast<uint64_t>(count * key_bytes_)),
                  call_.scratch(static_cast<uint64_t>(count * 4)), p.tiles * kept_};
    Defines d = defines_;
    d.set(define::ITEMS, tile_ / group_).set(define::ENTRIES, entries_.has_value());
    run(call_.launch(kernels::sort::radix_select::select_tiles, d,
                     {.to_key = found.keys,
                      .to_position = found.positions,
                      .in = in_,
                      .key = entry_keys(),
                      .position = entry_positions(),
                      .p = p}),
        rows_ * p.tiles);
    entries_.reset();
    entries_.emplace(std::move(found));
  }

  void find_varying(const RadixParams& p, const Scratch& memory, const Defines& d) const {
    const Place place = resolve(memory.address() + p.varying, 0, 8);
    const int32_t zero = 0;
    call_.stream().fill(place.buffer, place.offset, &zero, sizeof zero, 8);
    run(call_.launch(kernels::sort::radix::vary, d, {.memory = memory, .in = in_, .p = p}),
        divide_up(rows_ * length_, tile_));
  }

  const OpCall& call_;
  TensorView in_;
  const TensorView* values_;
  TensorView indices_;
  int64_t rows_, length_, kept_, key_bytes_, group_, tile_;
  int64_t passes_;  // over digits of 8 bits
  Defines defines_;
  bool some_ = false;
  std::optional<Entries> entries_;
};

Planned<Tile> plan_selection(const OpCall& call, const Problem& p) {
  const Tile tile = tile_for(call, p);
  if (!is_worth_selecting(tile, p.length(), p.kept()))
    return "too many entries are wanted, or rows are too short";
  return tile;
}
void run_selection(const OpCall& call, const Problem& p, const Tile& tile) {
  DigitSorter(call, p, tile).sort_selected(tile);
}

Planned<Tile> plan_tiles(const OpCall& call, const Problem& p) {
  const Tile tile = tile_for(call, p);
  if (p.length() > tile.entries) return "rows are longer than a work-group holds";
  return tile;
}
void run_tiles(const OpCall& call, const Problem& p, const Tile& tile) {
  DigitSorter(call, p, tile).sort_tiles();
}

void run_long(const OpCall& call, const Problem& p) {
  DigitSorter(call, p, tile_for(call, p)).sort_long();
}

}  // namespace

constinit const AlgorithmFor<Problem> kRadixSelect({.id = "sort.radix_select",
                                                    .description = "each tile's first, then those",
                                                    .style = DeviceStyle::Gpu},
                                                   Steps<plan_selection, run_selection>());
constinit const AlgorithmFor<Problem> kRadixTile({.id = "sort.radix_tile",
                                                  .description = "by digits, rows that fit a tile",
                                                  .style = DeviceStyle::Gpu},
                                                 Steps<plan_tiles, run_tiles>());
constinit const AlgorithmFor<Problem> kRadix({.id = "sort.radix",
                                              .description = "by digits, three launches for each",
                                              .style = DeviceStyle::Gpu,
                                              .last_resort = true},
                                             Steps<takes_all<Problem>, run_long>());

}  // namespace ocltensor::opencl::sort
