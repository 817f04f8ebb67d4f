// Panels of matrices: the kernels that factor them or solve with them, in the device's style.
#include "call/algorithms.h"
#include "call/divide_up.h"
#include "kernels/defines.h"
#include "linalg.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::linalg {
namespace {

using PanelAlgorithm = AlgorithmFor<PanelProblem>;

const char* takes_real(const OpCall&, const PanelProblem& p) {
  return is_complex(p.work.panel.dtype) ? "its vectors hold real numbers" : nullptr;
}

// Runs `items` work-items for each piece of work: a matrix, or `together` of the columns.
void run(Launch launch, const PanelWork& work, int64_t items, int64_t together) {
  const int64_t pieces = work.columns == 0 ? work.pieces : divide_up(work.columns, together);
  launch.run({work.panel.count * pieces * items, 1, 1}, {items, 1, 1});
}

void run_cpu(const OpCall& call, const PanelProblem& p) {
  constexpr int64_t kColumns = 16;
  const DType type = p.work.panel.dtype;
  Defines d = p.defines;
  d.type(define::TYPE, type)
      .type(define::MASK, type == DType::Float64 ? DType::Int64 : DType::Int32);
  run(p.launch(call, DeviceStyle::Cpu, d), p.work, 1, kColumns);
}

void run_groups(const OpCall& call, const PanelProblem& p, int64_t group) {
  Defines d = with_numbers(p.defines, p.work.panel.dtype);
  d.set(define::GROUP, group);
  run(p.launch(call, DeviceStyle::Gpu, d), p.work, group, group);
}
void run_gpu(const OpCall& call, const PanelProblem& p) {
  run_groups(call, p, reduce::group_size(call.caps()));
}
// Work-items of a group are lanes of vectors on CPU drivers: as many as a row has columns.
void run_complex(const OpCall& call, const PanelProblem& p) { run_groups(call, p, kPanel); }

constinit const PanelAlgorithm kCpu({.id = "linalg.cpu",
                                     .description = "panels of real numbers: a work-item a matrix",
                                     .style = DeviceStyle::Cpu},
                                    Steps<takes_real, run_cpu>());
constinit const PanelAlgorithm kComplex({.id = "linalg.cpu_complex",
                                         .description = "panels: a group of 32 a matrix",
                                         .style = DeviceStyle::Cpu,
                                         .last_resort = true},
                                        Steps<takes_all<PanelProblem>, run_complex>());
constinit const PanelAlgorithm kGpu({.id = "linalg.gpu",
                                     .description = "panels: a work-group a matrix",
                                     .style = DeviceStyle::Gpu,
                                     .last_resort = true},
                                    Steps<takes_all<PanelProblem>, run_gpu>());

struct PanelTraits {
  static std::string describe(const OpCall& call, const PanelProblem& p) {
    const Stack& panel = p.work.panel;
    return fmt::format("{} {} {} {}x{}x{}", call.name(), p.function, name(panel.dtype), panel.count,
                       panel.rows, panel.columns);
  }
};
using Algorithms = AlgorithmList<PanelProblem, PanelTraits>;

std::span<const OpEntry> operators() {
  static const auto& entries = *new auto([] {
    std::vector<OpEntry> list;
    for (const auto& part : {cholesky_operators(), lu_operators(), qr_operators(), svd_operators()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }());
  return entries;
}

Algorithms& algorithms() {
  static Algorithms& list =  // leaked: threads may run while the process ends
      *new Algorithms("linalg", operators(), {&kCpu, &kComplex, &kGpu});
  return list;
}

}  // namespace

void run_panels(const OpCall& call, const PanelProblem& problem) {
  algorithms().run(call, problem);
}

const AlgorithmFamily& linalg_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::linalg
