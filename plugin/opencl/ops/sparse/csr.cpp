// _ocl_csr_mm: a matrix in compressed rows times a dense matrix.
#include "call/divide_up.h"
#include "call/division.h"
#include "csr_params.h"
#include "kernels/sparse.h"
#include "ops/copy/copy.h"
#include "sparse.h"

namespace ocltensor::opencl::sparse {
namespace {

enum class Reduce : int64_t { Sum = 0, Mean = 1, Max = 2, Min = 3 };  // REDUCE of csr.h

// All tensors are row-major.
struct Product {
  TensorView out, values, start, index, mat;
  Reduce reduce;
};

Reduce reduce_named(std::string_view name) {
  if (name == "mean") return Reduce::Mean;
  if (name == "amax") return Reduce::Max;
  return name == "amin" ? Reduce::Min : Reduce::Sum;
}

Defines defines_of(const Product& what) {
  Defines d;
  return d.type(define::TYPE, what.out.dtype()).type(define::I, what.index.dtype());
}

CsrParams params_of(const Product& what) {
  CsrParams p{};
  p.rows = what.out.size(0);
  p.columns = what.out.size(1);
  p.inner = what.mat.size(0);
  p.entries = what.values.size(0);
  return p;
}

// Runs `kernel` over `pieces` pieces of work, divided so or as is usual.
void launch(const OpCall& call, const Product& what, const auto& kernel, const Defines& d,
            int64_t pieces, std::optional<Division> own = std::nullopt) {
  CsrParams p = params_of(what);
  const Division division = own ? *own : divide(call.caps(), pieces);
  p.pieces = pieces;
  p.per_item = division.per_item;
  call.launch(kernel, d,
              {.out = what.out,
               .values = what.values,
               .start = what.start,
               .index = what.index,
               .mat = what.mat,
               .faults = call.fault(FaultKind::Index, 0),
               .p = p})
      .run(division.global, division.local);
}

void launch_real(const OpCall& call, const Product& what, const auto& kernel, int64_t pieces,
                 std::optional<Division> own = std::nullopt) {
  const DType type = what.out.dtype();
  Defines d = defines_of(what);
  d.set(define::FLOATING, is_floating(type)).set(define::WIDE, type == DType::Int64);
  d.set(define::REDUCE, static_cast<int64_t>(what.reduce));
  launch(call, what, kernel, d, pieces, own);
}

void run_rows(const OpCall& call, const Product& what) {
  launch_real(call, what, kernels::sparse::csr_cpu::csr_mm, what.out.size(0));
}
void run_elements(const OpCall& call, const Product& what) {
  launch_real(call, what, kernels::sparse::csr_gpu::csr_mm, what.out.numel());
}

const char* refuse_quads(const OpCall&, const Product& what) {
  if (what.out.dtype() != DType::Float32) return "the numbers are not float32";
  if (what.out.size(1) % 4 != 0) return "the columns are not a multiple of 4";
  return (what.out.address() | what.mat.address()) % 16 != 0 ? "rows are not aligned" : nullptr;
}
const char* has_few_columns(const OpCall&, const Product& what) {
  return what.out.size(1) < 16 ? "few columns" : nullptr;
}
void run_quads(const OpCall& call, const Product& what) {
  launch_real(call, what, kernels::sparse::csr_quads::csr_mm, what.out.numel() / 4);
}

constexpr int64_t kTeam = 16, kGroup = 256;  // TEAM and GROUP of csr_teams.cl
constexpr int64_t kFewColumns = 4;
const char* has_many_columns(const OpCall&, const Product& what) {
  return what.out.size(1) > kFewColumns ? "many columns" : nullptr;
}
const char* refuse_teams(const OpCall& call, const Product& what) {
  if (call.caps().max_work_group_size < kGroup) return "work-groups are too small";
  return is_complex(what.out.dtype()) ? "the numbers are complex" : nullptr;
}
void run_teams(const OpCall& call, const Product& what) {
  const int64_t groups = divide_up(what.out.numel() * kTeam, kGroup);
  launch_real(call, what, kernels::sparse::csr_teams::csr_mm, what.out.numel(),
              Division{{groups * kGroup, 1, 1}, {kGroup, 1, 1}});
}

const char* refuse_real(const OpCall&, const Product& what) {
  return is_complex(what.out.dtype()) ? nullptr : "the numbers are not complex";
}
void run_complex(const OpCall& call, const Product& what) {
  const int64_t tile = by_style<int64_t>(call, 8, 1);
  Defines d = defines_of(what);
  d.type(define::PART, real_type(what.out.dtype())).set(define::TILE, tile);
  launch(call, what, kernels::sparse::csr_complex::csr_mm, d,
         what.out.size(0) * divide_up(what.out.size(1), tile));
}

constinit const AlgorithmFor<Product> kComplex(
    {.id = "sparse.csr_complex", .description = "a work-item takes columns of a row"},
    Steps<refuse_real, run_complex>());
constinit const AlgorithmFor<Product> kRows(
    {.id = "sparse.csr_rows",
     .description = "a work-item takes rows, and vectors of their columns",
     .style = DeviceStyle::Cpu,
     .last_resort = true},
    Steps<takes_all<Product>, run_rows>());
constinit const AlgorithmFor<Product> kElements(
    {.id = "sparse.csr_elements",
     .description = "a work-item takes an element of the result",
     .style = DeviceStyle::Gpu,
     .last_resort = true},
    Steps<takes_all<Product>, run_elements>());

constinit const AlgorithmFor<Product> kQuads(
    {.id = "sparse.csr_quads",
     .description = "a work-item takes four columns of a row",
     .style = DeviceStyle::Gpu},
    Steps<refuse_quads, run_quads>(), has_few_columns);
constinit const AlgorithmFor<Product> kTeams(
    {.id = "sparse.csr_teams",
     .description = "16 work-items take an element of the result",
     .style = DeviceStyle::Gpu},
    Steps<refuse_teams, run_teams>(), has_many_columns);

struct Traits {
  static std::string describe(const OpCall& call, const Product& what) {
    return fmt::format("{} {} {} x {} with {} entries, times {} columns", call.name(),
                       name(what.out.dtype()), what.out.size(0), what.mat.size(0),
                       what.values.size(0), what.out.size(1));
  }
};
using Algorithms = AlgorithmList<Product, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(
      "sparse", sparse_operators(), {&kComplex, &kRows, &kTeams, &kQuads, &kElements});  // leaked
  return list;
}

void csr_mm(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView values = args.tensor(Arg::self);
  if (values.dtype() == DType::Complex32)
    unsupported(TB_REASON_DTYPE, "{}: complex32", call.name());
  const Reduce reduce = reduce_named(args.string(Arg::reduce));
  call.accept();
  if (!call.wants(0)) return;
  if (values.numel() == 0) return copy::fill_tensor(call, call.out(0), 0);
  const Contiguous entries(call, values), start(call, args.tensor(Arg::start)),
      index(call, args.tensor(Arg::index)), mat(call, args.tensor(Arg::mat2));
  ContiguousOutput out(call, call.out(0));
  algorithms().run(call,
                   {out.view(), entries.view(), start.view(), index.view(), mat.view(), reduce});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_ocl_csr_mm.out", csr_mm, true}};

}  // namespace

std::span<const OpEntry> sparse_operators() { return kOperators; }

const AlgorithmFamily& sparse_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::sparse
