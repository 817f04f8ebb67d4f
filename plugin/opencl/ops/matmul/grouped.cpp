// _ocl_grouped_mm: a product for each group, whose part of one dimension stands in the device's
// memory; the ordered list of its algorithms.
#include "call/division.h"
#include "matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

struct GroupedTraits {
  static std::string describe(const OpCall&, const GroupedProblem& p) {
    constexpr const char* kDimensions[] = {"", "rows", "columns", "terms"};
    const Problem& q = p.product;
    return fmt::format("matmul_grouped {} {} x {} x {}, {} in {} parts", name(q.type()), q.m, q.n,
                       q.k, kDimensions[static_cast<int>(p.parts)], q.batch);
  }
};
using Algorithms = AlgorithmList<GroupedProblem, GroupedTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "matmul_grouped", matmul_grouped_operators(), {&kGroupedTiles, &kGroupedInPlace});
  return list;
}

bool has_neighbours(TensorView t) {
  return t.strides()[t.strides().size() - 1] == 1 || t.strides()[t.strides().size() - 2] == 1;
}
// An operand whose rows or columns lie side by side: itself, or a copy.
struct Factor {
  std::optional<Contiguous> copy;
  TensorView view;
  Factor(const OpCall& call, TensorView t) : view(t) {
    if (!has_neighbours(t)) view = copy.emplace(call, t).view();
  }
  // Groups share an operand that has no matrix for each of them.
  Matrix matrix() const {
    const auto strides = view.strides();
    const size_t last = strides.size() - 1;
    return {view.address(), last == 2 ? strides[0] : 0, strides[last - 1], strides[last]};
  }
};

void grouped_mm(OpCall& call) {
  const TensorView a = call.args().tensor(Arg::self), b = call.args().tensor(Arg::mat2);
  const TensorView out = call.out(0);
  (void)check_outputs(call);
  if (compute_type(a.dtype()) != DType::Float32)
    unsupported(TB_REASON_DTYPE, "{} is not implemented for {}", call.name(), name(a.dtype()));
  call.accept();
  if (out.numel() == 0) return;
  const Factor left(call, a), right(call, b);
  const Contiguous ends(call, call.args().tensor(Arg::offs));
  const bool direct =
      out.strides().back() == 1 && !has_internal_overlap(out.sizes(), out.strides());
  std::optional<ContiguousOutput> copy;
  if (!direct) copy.emplace(call, out);
  const TensorView target = direct ? out : copy->view();
  const size_t last = target.strides().size() - 1;
  GroupedProblem p{.product = {.types = a.dtype(),
                               .batch = ends.view().numel(),
                               .m = a.size(-2),
                               .n = b.size(-1),
                               .k = a.size(-1),
                               .a = left.matrix(),
                               .b = right.matrix(),
                               .c = {target.address(), last == 2 ? target.strides()[0] : 0,
                                     target.strides()[last - 1], 1}},
                   .parts = a.ndim() == 3   ? Parts::OfN
                            : b.ndim() == 3 ? Parts::OfM
                                            : Parts::OfK,
                   .ends = ends.view().address()};
  algorithms().run(call, p);
  if (copy) copy->finish();
}

constexpr OpEntry kOperators[] = {{"_ocl_grouped_mm.out", grouped_mm}};

}  // namespace

Problem GroupedProblem::even_share() const {
  Problem p = product;
  const int64_t groups = std::max<int64_t>(p.batch, 1);
  if (parts == Parts::OfM) p.m = divide_up(p.m, groups);
  if (parts == Parts::OfN) p.n = divide_up(p.n, groups);
  if (parts == Parts::OfK) p.k = divide_up(p.k, groups);
  return p;
}

std::span<const OpEntry> matmul_grouped_operators() { return kOperators; }
const AlgorithmFamily& matmul_grouped_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::matmul
