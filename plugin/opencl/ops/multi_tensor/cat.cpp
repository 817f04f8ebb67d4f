// cat: on GPUs one launch for eight row-major tensors of one type; many small runs of memory in one
// launch; otherwise a copy of each tensor.
#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>

#include "call/division.h"
#include "cat_params.h"
#include "kernels/multi_tensor.h"
#include "multi_tensor.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::multi_tensor {
namespace {

// The largest unit, up to 16 bytes, that divides all addresses and sizes whose bits `bytes` unites.
uint64_t common_unit(uint64_t bytes) { return std::min<uint64_t>(16, bytes & ~(bytes - 1)); }

const char* type_of(uint64_t unit) {
  switch (unit) {
    case 16: return "uint4";
    case 8: return "ulong";
    case 4: return "uint";
    case 2: return "ushort";
    default: return "uchar";
  }
}

// The tensors to concatenate, without empty ones: `from`, and their slices `to` of the output.
struct Cat {
  TensorView out;
  int64_t dim;
  std::span<const TensorView> to, from;
  bool plain;  // all are row-major, of one type
  bool runs;   // every slice is one run of memory
  bool small;  // pieces are small on average; large ones are copied efficiently one by one

  bool is_parts() const { return runs && small && !is_complex(out.dtype()); }
};

struct Lines {
  int64_t outer, unit;          // unit: bytes that are moved at once
  std::vector<int64_t> starts;  // offsets of the tensors in a line, in bytes
};

// For tensors next to each other along `dim`.
Planned<Lines> plan_lines(const OpCall&, const Cat& cat) {
  if (!cat.plain) return "tensors are not row-major, or not of one type";
  if (cat.to.size() < 2) return "it is one tensor";
  if (cat.is_parts() && cat.to.size() > CAT_SOURCES) return "there are many runs of memory";
  const auto outer_sizes = cat.out.sizes().first(static_cast<size_t>(cat.dim));
  Lines lines{
      std::accumulate(outer_sizes.begin(), outer_sizes.end(), int64_t{1}, std::multiplies<>()),
      1,
      {0}};
  uint64_t bits = cat.out.address();
  for (const TensorView& source : cat.from) {
    lines.starts.push_back(lines.starts.back() + source.numel() / lines.outer * source.itemsize());
    bits |= source.address() | static_cast<uint64_t>(lines.starts.back());
  }
  lines.unit = static_cast<int64_t>(common_unit(bits));
  if (cat.runs && lines.unit < 4) return "runs could only be moved by a byte or two";
  return lines;
}

void run_lines(const OpCall& call, const Cat& cat, const Lines& lines) {
  const auto sources = cat.from;
  const int64_t unit = lines.unit;
  CatParams p{};
  p.outer = lines.outer;
  p.line = lines.starts.back() / unit;
  for (size_t first = 0; first < sources.size(); first += CAT_SOURCES) {
    const size_t count = std::min<size_t>(CAT_SOURCES, sources.size() - first);
    for (size_t k = 0; k <= CAT_SOURCES; ++k)
      p.starts[k] = lines.starts[first + std::min(k, count)] / unit;
    const int64_t elements = lines.outer * (p.starts[CAT_SOURCES] - p.starts[0]);
    Defines d;
    d.set(define::A, type_of(static_cast<uint64_t>(unit)));
    d.set(define::INDEX, elements < INT32_MAX ? "uint" : "ulong");
    const auto source = [&](size_t k) { return sources[first + std::min(k, count - 1)]; };
    const Division division = divide(call.caps(), elements);
    call.launch(kernels::multi_tensor::cat::cat, d,
                {.out = cat.out,
                 .source = {source(0), source(1), source(2), source(3), source(4), source(5),
                            source(6), source(7)},
                 .p = p})
        .run(division.global, division.local);
  }
}

const char* refuse_parts(const OpCall&, const Cat& cat) {
  constexpr size_t kMany = 4;
  if (cat.to.size() < kMany) return "tensors are fewer than 4";
  return cat.is_parts() ? nullptr : "slices are not runs of memory, or are large";
}
void run_parts(const OpCall& call, const Cat& cat) { copy_parts(call, cat.to, cat.from); }

void run_copies(const OpCall& call, const Cat& cat) {
  for (size_t i = 0; i < cat.to.size(); ++i) copy_tensor(call, cat.to[i], cat.from[i]);
}

constinit const AlgorithmFor<Cat> kLines({.id = "cat.lines",
                                          .description = "eight tensors a launch, side by side",
                                          .style = DeviceStyle::Gpu},
                                         Steps<plan_lines, run_lines>());
constinit const AlgorithmFor<Cat> kParts({.id = "cat.parts",
                                          .description = "small runs of memory in one launch"},
                                         Steps<refuse_parts, run_parts>());
constinit const AlgorithmFor<Cat> kCopies({.id = "cat.copies",
                                           .description = "a copy of each tensor",
                                           .last_resort = true},
                                          Steps<takes_all<Cat>, run_copies>());

struct Traits {
  static std::string describe(const OpCall& call, const Cat& cat) {
    return fmt::format("{} {} {} tensors to {}", call.name(), cat.to.size(), name(cat.out.dtype()),
                       to_string(cat.out.sizes()));
  }
};
using Algorithms = AlgorithmList<Cat, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("cat", cat_operators(), {&kLines, &kParts, &kCopies});  // leaked
  return list;
}

void cat_op(OpCall& call) {
  const TensorView out = call.out(0);
  const auto tensors = call.args().tensors(Arg::tensors);
  const int64_t dim = wrap_dim(call.args().integer(Arg::dim), out.ndim());
  call.accept();
  int64_t start = 0;
  std::deque<LocalTensor> slices;
  std::vector<TensorView> to, from;
  bool plain = out.is_contiguous(), runs = true;
  for (const auto& tensor : tensors) {
    if (tensor->ndim() == 1 && tensor->numel() == 0 && out.ndim() != 1)
      continue;  // ATen's legacy: skipped
    const int64_t length = tensor->size(dim);
    if (tensor->numel() > 0) {
      to.push_back(slices.emplace_back(copy::narrow(out, dim, start, length)).view());
      from.push_back(*tensor);
      const bool is_run = tensor->is_contiguous() && tensor->dtype() == out.dtype();
      plain = plain && is_run;
      runs = runs && is_run && to.back().is_contiguous();
    }
    start += length;
  }
  if (to.empty()) return;
  const bool small = out.numel() * out.itemsize() < static_cast<int64_t>(to.size() << 20);
  algorithms().run(call, {out, dim, to, from, plain, runs, small});
}

constexpr OpEntry kOperators[] = {{"cat.out", cat_op, true, true, true}};

}  // namespace

std::span<const OpEntry> cat_operators() { return kOperators; }

const AlgorithmFamily& cat_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::multi_tensor
