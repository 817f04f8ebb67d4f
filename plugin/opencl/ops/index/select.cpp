// nonzero and masked_select: the results' shapes depend on data, so that the host waits for the
// counts. nonzero_static, whose result has a size that is given, waits for nothing.
#include <algorithm>
#include <optional>

#include "call/divide_up.h"
#include "call/division.h"
#include "index.h"
#include "kernels/index.h"
#include "ops/copy/copy.h"
#include "shape_params.h"

namespace ocltensor::opencl::index {
namespace {

// A row-major mask in chunks, with the number of true elements before each of them.
struct Chosen {
  int64_t elements = 0;
  int64_t chunk = 1;
  int64_t chunks = 0;
  int64_t total = 0;
  Division division;
  Scratch starts;  // int64 per chunk
};

Defines select_defines(DType mask, DType values) {
  Defines d;
  d.type(define::M, mask).type(define::A, copy::carrier_type(values));
  return d;
}

// Which values a row-major mask selects, and their type.
struct Selection {
  TensorView mask;
  DType values;
  std::optional<Chosen>& result;
};

Chosen in_chunks(const OpCall& call, int64_t elements, int64_t chunk) {
  const int64_t chunks = divide_up(elements, chunk);
  return {elements,
          chunk,
          chunks,
          0,
          divide(call.caps(), chunks),
          call.scratch(static_cast<uint64_t>(chunks + 1) * 8)};
}

// The number of chosen elements in each chunk, int32.
Scratch count_each(const OpCall& call, const Chosen& c, TensorView mask, DType values) {
  Scratch counts = call.scratch(static_cast<uint64_t>(c.chunks) * 4);
  call.launch(kernels::index::select::count_chosen, select_defines(mask.dtype(), values),
              {.count = counts,
               .mask = mask,
               .elements = c.elements,
               .chunk = c.chunk,
               .chunks = c.chunks,
               .per_item = c.division.per_item})
      .run(c.division.global, c.division.local);
  return counts;
}

Chosen count_in_chunks(const OpCall& call, TensorView mask, DType values) {
  const int64_t elements = mask.numel();
  Chosen c =
      in_chunks(call, elements,
                by_style<int64_t>(call, std::max<int64_t>(1024, divide_up(elements, 64)), 256));
  if (elements == 0) return c;
  const Scratch counts = count_each(call, c, mask, values);
  std::vector<int32_t> found(static_cast<size_t>(c.chunks));
  const Place from = resolve(counts.address(), 0, c.chunks * 4);
  call.stream().read(found.data(), from.buffer, from.offset, found.size() * 4, false);
  std::vector<int64_t> starts;
  for (const int32_t n : found) {
    starts.push_back(c.total);
    c.total += n;
  }
  starts.push_back(c.total);
  const Place to = resolve(c.starts.address(), 0, (c.chunks + 1) * 8);
  call.stream().write(to.buffer, to.offset, starts.data(), starts.size() * 8, false);
  return c;
}

void run_chunks(const OpCall& call, const Selection& what) {
  what.result.emplace(count_in_chunks(call, what.mask, what.values));
}

constinit const AlgorithmFor<Selection> kChunks(
    {.id = "selection.chunks",
     .description = "counts what is chosen in each chunk; the host adds up the counts",
     .last_resort = true},
    Steps<takes_all<Selection>, run_chunks>());

struct Traits {
  static std::string describe(const OpCall& call, const Selection& what) {
    return fmt::format("{} among {} elements", call.name(), what.mask.numel());
  }
};
using Algorithms = AlgorithmList<Selection, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("selection", select_operators(), {&kChunks});  // leaked
  return list;
}

Chosen count_chosen(const OpCall& call, TensorView mask, DType values) {
  std::optional<Chosen> chosen;
  algorithms().run(call, {mask, values, chosen});
  return std::move(*chosen);
}

// `fill`: what rows get that no element is left for.
void write_coordinates(const OpCall& call, const Chosen& c, TensorView mask, TensorView out,
                       TensorView shape, std::optional<int64_t> fill = std::nullopt) {
  if (out.numel() == 0) return;
  constexpr int64_t kRows = 16;  // that an item may have to fill
  const int64_t items = fill ? std::max(c.chunks, divide_up(out.size(0), kRows)) : c.chunks;
  const Division division = divide(call.caps(), items);
  ShapeParams sizes{};
  std::copy(shape.sizes().begin(), shape.sizes().end(), sizes.sizes);
  call.launch(kernels::index::select::write_coordinates, select_defines(mask.dtype(), DType::UInt8),
              {.out = out,
               .start = c.starts,
               .mask = mask,
               .elements = c.elements,
               .chunk = c.chunk,
               .chunks = c.chunks,
               .items = items,
               .per_item = division.per_item,
               .rank = static_cast<int32_t>(shape.ndim()),
               .rows = out.size(0),
               .fill = fill.value_or(0),
               .row = out.strides()[0],
               .column = out.strides()[1],
               .shape = sizes})
      .run(division.global, division.local);
}

// What is chosen in a tensor of any type: the tensor itself, or whether its elements are 0 where
// kernels do not know the type; row-major.
class Truth {
 public:
  Truth(const OpCall& call, TensorView self)
      : memory_(call.scratch(is_converted(call, self) ? static_cast<uint64_t>(self.numel()) : 0)),
        flags_(memory_.address(), DType::Bool, Dims(self.sizes())),
        mask_(call, is_converted(call, self) ? converted(call, self) : self) {}
  TensorView view() const { return mask_.view(); }

 private:
  static bool is_converted(const OpCall& call, TensorView self) {
    return is_complex(self.dtype()) || call.lacks(self.dtype());
  }
  TensorView converted(const OpCall& call, TensorView self) const {
    copy_tensor(call, flags_, self);
    return flags_.view();
  }

  Scratch memory_;
  LocalTensor flags_;
  Contiguous mask_;
};

void nonzero(OpCall& call) {
  const TensorView self = call.args().tensor(Arg::self);
  check(call.out(0).dtype() == DType::Int64, "nonzero: the output must be int64");
  call.accept();
  const Truth mask(call, self);
  const Chosen c = count_chosen(call, mask.view(), DType::UInt8);
  write_coordinates(call, c, mask.view(), call.resize_out(0, Dims{c.total, self.ndim()}), self);
}

// Chunks are so many that a GPU is busy, and so few that a work-group adds up their counts soon.
int64_t static_chunk(const OpCall& call, int64_t elements) {
  const int64_t many = std::max<int64_t>(256, divide_up(elements, int64_t{1} << 16));
  return by_style(call, std::max<int64_t>(1024, divide_up(elements, 64)),
                  std::clamp<int64_t>(divide_up(elements, int64_t{1} << 13), 16, many));
}

void nonzero_static(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  const int64_t fill = call.args().integer(Arg::fill_value);
  call.accept();
  if (!call.wants(0)) return;
  if (self.numel() == 0) return copy::fill_tensor(call, call.out(0), fill);
  const Truth mask(call, self);
  const Chosen c = in_chunks(call, self.numel(), static_chunk(call, self.numel()));
  const Scratch counts = count_each(call, c, mask.view(), DType::UInt8);
  const auto most = static_cast<int64_t>(call.caps().max_work_group_size);
  const int64_t items = by_style<int64_t>(call, 1, std::min<int64_t>(256, most));
  Defines d;
  d.set(define::ITEMS, items);
  call.launch(kernels::index::select_starts::add_counts, d,
              {.start = c.starts, .count = counts, .chunks = c.chunks})
      .run({items, 1, 1}, {items, 1, 1});
  write_coordinates(call, c, mask.view(), call.out(0), self, fill);
}

void masked_select(OpCall& call) {
  const TensorView self = call.args().tensor(Arg::self);
  const TensorView mask = call.args().tensor(Arg::mask);
  check(mask.dtype() == DType::Bool, "masked_select: mask must be bool, got {}",
        name(mask.dtype()));
  check(call.out(0).dtype() == self.dtype(), "masked_select: the output must be {}",
        name(self.dtype()));
  const Dims common = broadcast(self.sizes(), mask.sizes());
  call.accept();
  const LocalTensor wide_mask(mask.address(), mask.dtype(), common,
                              broadcast_strides(mask.sizes(), mask.strides(), common));
  const LocalTensor wide_self(self.address(), self.dtype(), common,
                              broadcast_strides(self.sizes(), self.strides(), common));
  const Contiguous chosen(call, wide_mask);
  const Contiguous values(call, wide_self);
  const Chosen c = count_chosen(call, chosen.view(), self.dtype());
  const TensorView target = call.resize_out(0, Dims{c.total});
  if (c.total == 0) return;
  ContiguousOutput out(call, target);
  call.launch(kernels::index::select::write_values, select_defines(DType::Bool, self.dtype()),
              {.out = out.view(),
               .start = c.starts,
               .mask = chosen.view(),
               .in = values.view(),
               .elements = c.elements,
               .chunk = c.chunk,
               .chunks = c.chunks,
               .per_item = c.division.per_item})
      .run(c.division.global, c.division.local);
  out.finish();
}

constexpr OpEntry kOperators[] = {{"nonzero.out", nonzero, true, true, true},
                                  {"nonzero_static.out", nonzero_static, true, true, true},
                                  {"masked_select.out", masked_select, true, true, true}};

}  // namespace

Coordinates coordinates_of(const OpCall& call, TensorView mask) {
  const Contiguous dense(call, mask);
  const Chosen c = count_chosen(call, dense.view(), DType::UInt8);
  Coordinates found;
  found.count = c.total;
  if (c.total == 0) return found;
  found.memory.push_back(call.scratch(static_cast<uint64_t>(c.total * mask.ndim()) * 8));
  const LocalTensor out(found.memory[0].address(), DType::Int64, Dims{c.total, mask.ndim()});
  write_coordinates(call, c, dense.view(), out, mask);
  return found;
}

std::span<const OpEntry> select_operators() { return kOperators; }

const AlgorithmFamily& selection_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::index
