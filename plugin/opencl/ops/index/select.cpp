// nonzero and masked_select: the results' shapes depend on data, so that the host waits for the
// counts.
#include <algorithm>
#include <optional>

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

Chosen count_in_chunks(const OpCall& call, TensorView mask, DType values) {
  const int64_t elements = mask.numel();
  const int64_t chunk = by_style<int64_t>(call, std::max<int64_t>(1024, (elements + 63) / 64), 256);
  const int64_t chunks = (elements + chunk - 1) / chunk;
  Chosen c{elements,
           chunk,
           chunks,
           0,
           divide(call.caps(), chunks),
           call.scratch(static_cast<uint64_t>(chunks) * 8)};
  if (elements == 0) return c;
  const Scratch counts = call.scratch(static_cast<uint64_t>(chunks) * 4);
  call.launch(kernels::index::select::count_chosen, select_defines(mask.dtype(), values),
              {.count = counts,
               .mask = mask,
               .elements = elements,
               .chunk = chunk,
               .chunks = chunks,
               .per_item = c.division.per_item})
      .run(c.division.global, c.division.local);
  std::vector<int32_t> found(static_cast<size_t>(chunks));
  const Place from = resolve(counts.address(), 0, chunks * 4);
  call.stream().read(found.data(), from.buffer, from.offset, found.size() * 4, false);
  std::vector<int64_t> starts;
  for (const int32_t n : found) {
    starts.push_back(c.total);
    c.total += n;
  }
  const Place to = resolve(c.starts.address(), 0, chunks * 8);
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

void write_coordinates(const OpCall& call, const Chosen& c, TensorView mask, TensorView out,
                       TensorView shape) {
  if (out.numel() == 0) return;
  ShapeParams sizes{};
  std::copy(shape.sizes().begin(), shape.sizes().end(), sizes.sizes);
  call.launch(kernels::index::select::write_coordinates, select_defines(mask.dtype(), DType::UInt8),
              {.out = out,
               .start = c.starts,
               .mask = mask,
               .elements = c.elements,
               .chunk = c.chunk,
               .chunks = c.chunks,
               .per_item = c.division.per_item,
               .rank = static_cast<int32_t>(shape.ndim()),
               .row = out.strides()[0],
               .column = out.strides()[1],
               .shape = sizes})
      .run(c.division.global, c.division.local);
}

void nonzero(OpCall& call) {
  const TensorView self = call.args().tensor(Arg::self);
  check(call.out(0).dtype() == DType::Int64, "nonzero: the output must be int64");
  call.accept();
  const bool converted = is_complex(self.dtype()) || call.lacks(self.dtype());
  const Scratch truth = call.scratch(converted ? static_cast<uint64_t>(self.numel()) : 0);
  const LocalTensor flags(truth.address(), DType::Bool, Dims(self.sizes()));
  if (converted) copy_tensor(call, flags, self);
  const Contiguous mask(call, converted ? flags.view() : self);
  const Chosen c = count_chosen(call, mask.view(), DType::UInt8);
  write_coordinates(call, c, mask.view(), call.resize_out(0, Dims{c.total, self.ndim()}), self);
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
