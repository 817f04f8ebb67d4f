// Graphs of ocl behind torch.accelerator.Graph, which torch has since 2.13.
#include "graphs.h"

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>
#include <c10/util/Exception.h>

namespace torch_ocl {
namespace {

// A graph is ready when its recording ends, so that there is nothing to instantiate. All modes of
// capture are one: what a recording does not permit is refused in every thread.
struct AcceleratorGraph final : at::GraphImplInterface {
  explicit AcceleratorGraph(const at::GraphImplArgs&) {}
  void capture_begin(PoolId pool, at::GraphCaptureMode) override { graph_.capture_begin(pool); }
  void capture_end() override { graph_.capture_end(); }
  void instantiate() override {}
  void replay() override { graph_.replay(); }
  void reset() override { graph_.reset(); }
  PoolId pool() const override { return graph_.pool(); }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "graphs of ocl have no debug_dump");
  }

 private:
  Graph graph_;
};

}  // namespace

void register_accelerator_graphs() {
  at::GraphImplRegistry()->Register(
      c10::DeviceTypeName(kOcl, /*lower_case=*/false),
      [](const at::GraphImplArgs& args) -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<AcceleratorGraph>(args);
      });
}

}  // namespace torch_ocl
#else
namespace torch_ocl {
void register_accelerator_graphs() {}
}  // namespace torch_ocl
#endif
