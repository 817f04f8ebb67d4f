// Sorting rows by digits for GPUs: rows that fit a tile in one launch, longer ones in three for
// each digit of 8 bits; where few of a row's entries are wanted, those are selected before.
#include "radix.h"

#include <algorithm>
#include <optional>

#include "call/divide_up.h"
#include "kernel_sources.h"
#include "keys.h"
#include "ops/reduce/reduction.h"
#include "radix_params.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kDigits = 256;

// Entries that a work-item holds: as many as registers and local memory allow (sort_tile.h: keys,
// origins, counters, sums).
int64_t items_of(const Capabilities& caps, int64_t key_bytes) {
  const int64_t group = group_size(caps);
  int64_t items = key_bytes == 8 ? 8 : 16;
  const auto needed = [&] {
    return group * items * (key_bytes + 2) * 17 / 16 + group * (32 + 8) * 33 / 32 + 2048;
  };
  while (items > 1 && needed() > static_cast<int64_t>(caps.local_memory)) items /= 2;
  return items;
}

// Selected entries: keys and positions, `length` of each row.
struct Entries {
  Scratch keys, positions;
  int64_t length;
};

class DigitSorter {
 public:
  DigitSorter(const OpCall& call, TensorView in, SortOrder order, const TensorView* values,
              TensorView indices)
      : call_(call),
        in_(in),
        values_(values),
        indices_(indices),
        rows_(in.sizes()[0]),
        length_(in.sizes()[1]),
        kept_(indices.sizes()[1]),
        key_bytes_(size_of(in.dtype()) == 8 ? 8 : 4),
        group_(group_size(call.caps())),
        tile_(group_ * items_of(call.caps(), key_bytes_)),
        defines_(key_defines(in.dtype(), order)) {
    passes_ = divide_up(std::min(order.low_bits, 8 * size_of(in.dtype())), 8);
    some_ = is_integral(in.dtype(), false) && size_of(in.dtype()) >= 4;
    defines_.set("GROUP", group_).set("VALUES", values != nullptr);
  }

  void sort() {
    while (worth_selecting(length_of_entries())) select();
    if (length_of_entries() <= tile_)
      sort_tiles();
    else
      sort_long();
  }

 private:
  int64_t length_of_entries() const { return entries_ ? entries_->length : length_; }
  // Every tile has half of `tile_` or more, so that it has enough to select from.
  bool worth_selecting(int64_t length) const {
    return length > tile_ ? kept_ * 4 <= tile_ : length * 4 >= tile_ && kept_ * 8 <= length;
  }
  RadixParams params() const {
    RadixParams p{};
    p.rows = rows_;
    p.length = length_of_entries();
    p.kept = kept_;
    p.raw_length = length_;
    p.passes = static_cast<int32_t>(passes_);
    return p;
  }
  void run(Launch& launch, const RadixParams& p, int64_t groups) const {
    launch.value(p).run({static_cast<size_t>(groups * group_), 1, 1},
                        {static_cast<size_t>(group_), 1, 1});
  }
  static void bind_scratch(Launch& launch, const Scratch& memory) {
    launch.memory(memory.address(), 0, static_cast<int64_t>(memory.bytes()));
  }
  void bind_entries(Launch& launch) const {
    if (!entries_) return (void)launch.memory(0, 0, 0).memory(0, 0, 0);
    bind_scratch(launch, entries_->keys);
    bind_scratch(launch, entries_->positions);
  }
  void bind_outputs(Launch& launch) const {
    if (values_ == nullptr)
      launch.memory(0, 0, 0);
    else
      bind(launch, *values_);
    bind(launch, indices_);
  }

  void select() {
    RadixParams p = params();
    p.tiles = divide_up(p.length, tile_);
    const int64_t count = rows_ * p.tiles * kept_;
    Entries found{call_.scratch(static_cast<uint64_t>(count * key_bytes_)),
                  call_.scratch(static_cast<uint64_t>(count * 4)), p.tiles * kept_};
    Defines d = defines_;
    d.set("ITEMS", tile_ / group_).set("ENTRIES", entries_.has_value());
    Launch launch = call_.launch(kernel_sources::sort_radix_select, "select_tiles", d);
    bind_scratch(launch, found.keys);
    bind_scratch(launch, found.positions);
    bind(launch, in_);
    bind_entries(launch);
    run(launch, p, rows_ * p.tiles);
    entries_.reset();
    entries_.emplace(std::move(found));
  }

  // Of few short rows, fewer to a tile: there are enough work-groups then, with less to do each.
  void sort_tiles() {
    RadixParams p = params();
    int64_t tile = tile_;
    while (tile > 2 * group_ && tile >= 2 * p.length &&
           divide_up(rows_, tile / p.length) < call_.caps().compute_units)
      tile /= 2;
    p.tile_rows = std::min(rows_, tile / p.length);
    Defines d = defines_;
    d.set("ITEMS", tile / group_).set("ENTRIES", entries_.has_value()).set("SOME", some_);
    Launch launch = call_.launch(kernel_sources::sort_radix_tile, "sort_tiles", d);
    bind_outputs(launch);
    bind(launch, in_);
    bind_entries(launch);
    run(launch, p, divide_up(rows_, p.tile_rows));
  }

  // Entries are whole rows here: what was selected fits tiles, or nothing was.
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
    const bool some = some_ && passes_ > 2;  // two passes take less time than finding those out
    Defines d = defines_;
    d.set("ITEMS", tile_ / group_)
        .set("SOME", some)
        .set("RETURNS", (call_.caps().type & CL_DEVICE_TYPE_CPU) == 0);
    if (some) find_varying(p, memory, d);
    for (p.pass = 0; p.pass < p.passes; ++p.pass) {
      Launch count = call_.launch(kernel_sources::sort_radix, "count_digits", d);
      bind_scratch(count, memory);
      bind(count, in_);
      run(count, p, rows_ * p.tiles);
      Launch sum = call_.launch(kernel_sources::sort_radix, "sum_counts", d);
      bind_scratch(sum, memory);
      run(sum, p, rows_ * kDigits * p.lanes / group_);
      Launch move = call_.launch(kernel_sources::sort_radix, "move", d);
      bind_outputs(move);
      bind_scratch(move, memory);
      bind(move, in_);
      run(move, p, rows_ * p.tiles);
    }
  }
  void find_varying(const RadixParams& p, const Scratch& memory, const Defines& d) const {
    const Place place = resolve(memory.address() + p.varying, 0, 8);
    const int32_t zero = 0;
    call_.stream().fill(place.buffer, place.offset, &zero, sizeof zero, 8);
    Launch launch = call_.launch(kernel_sources::sort_radix, "vary", d);
    bind_scratch(launch, memory);
    bind(launch, in_);
    run(launch, p, divide_up(rows_ * length_, tile_));
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

}  // namespace

void sort_by_digits(const OpCall& call, TensorView in, SortOrder order, const TensorView* values,
                    TensorView indices) {
  DigitSorter(call, in, order, values, indices).sort();
}

}  // namespace ocltensor::opencl
