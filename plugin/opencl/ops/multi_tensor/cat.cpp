// cat: on GPUs a launch for eight row-major tensors of one type; many small runs of memory in one
// launch; else a copy of each.
#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>

#include "call/division.h"
#include "cat_params.h"
#include "kernel_sources.h"
#include "multi_tensor.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl {
namespace {

// What can be moved at once everywhere: a power of two that divides `bytes`.
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

// `sources` side by side along `dim` of `out`; all row-major, of one type, without empty ones.
// False, and nothing is done, for `runs` of memory that could only be moved by a byte or two.
bool concatenate(const OpCall& call, TensorView out, std::span<const TensorView> sources,
                 int64_t dim, bool runs) {
  const auto outer_sizes = out.sizes().first(static_cast<size_t>(dim));
  const int64_t outer =
      std::accumulate(outer_sizes.begin(), outer_sizes.end(), int64_t{1}, std::multiplies<>());
  std::vector<int64_t> starts{0};  // bytes
  uint64_t bits = out.address();
  for (const TensorView& source : sources) {
    starts.push_back(starts.back() + source.numel() / outer * source.itemsize());
    bits |= source.address() | static_cast<uint64_t>(starts.back());
  }
  const auto unit = static_cast<int64_t>(common_unit(bits));
  if (runs && unit < 4) return false;
  CatParams p{};
  p.outer = outer;
  p.line = starts.back() / unit;
  for (size_t first = 0; first < sources.size(); first += CAT_SOURCES) {
    const size_t count = std::min<size_t>(CAT_SOURCES, sources.size() - first);
    for (size_t k = 0; k <= CAT_SOURCES; ++k)
      p.starts[k] = starts[first + std::min(k, count)] / unit;
    const int64_t elements = outer * (p.starts[CAT_SOURCES] - p.starts[0]);
    Defines d;
    d.set("A", type_of(static_cast<uint64_t>(unit)));
    d.set("INDEX", elements < INT32_MAX ? "uint" : "ulong");
    Launch launch = call.launch(kernel_sources::multi_tensor_cat, "cat", d);
    bind(launch, out);
    for (size_t k = 0; k < CAT_SOURCES; ++k) bind(launch, sources[first + std::min(k, count - 1)]);
    const Division division = divide(call.caps(), elements);
    launch.value(p).run(division.global, division.local);
  }
  return true;
}

void cat_op(OpCall& call) {
  const TensorView out = call.out(0);
  const auto tensors = call.args().tensors(0);
  const int64_t dim = wrap_dim(call.args().integer(1), out.ndim());
  call.accept();
  int64_t start = 0;
  std::deque<LocalTensor> slices;
  std::vector<TensorView> to, from;
  bool plain = out.is_contiguous();  // row-major all, of one type
  bool runs = true;                  // every slice is one run of memory
  for (const auto& tensor : tensors) {
    if (tensor->ndim() == 1 && tensor->numel() == 0 && out.ndim() != 1)
      continue;  // ATen's legacy: skipped
    const int64_t length = tensor->size(dim);
    if (tensor->numel() > 0) {
      to.push_back(slices.emplace_back(narrow(out, dim, start, length)).view());
      from.push_back(*tensor);
      const bool is_run = tensor->is_contiguous() && tensor->dtype() == out.dtype();
      plain = plain && is_run;
      runs = runs && is_run && to.back().is_contiguous();
    }
    start += length;
  }
  // Large pieces are copied well one by one.
  const bool small = out.numel() * out.itemsize() < static_cast<int64_t>(to.size() << 20);
  const bool parts = runs && small && !is_complex(out.dtype());
  const bool eights = !is_cpu_style(call) && plain && to.size() > 1;
  if (eights && !(parts && to.size() > CAT_SOURCES) && concatenate(call, out, from, dim, runs))
    return;
  constexpr size_t kMany = 4;
  if (parts && to.size() >= kMany) return copy_parts(call, to, from);
  for (size_t i = 0; i < to.size(); ++i) copy_tensor(call, to[i], from[i]);
}

constexpr OpEntry kOperators[] = {{"cat.out", cat_op, true, true}};

}  // namespace

std::span<const OpEntry> cat_operators() { return kOperators; }

}  // namespace ocltensor::opencl
