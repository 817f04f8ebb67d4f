// Waits for PyTorch's threads, and for devices, before a process ends.
#include "process_end.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "plugin.h"
#include "stream.h"

namespace torch_ocl {

// A device's thread starts an empty backward pass only after it has left the pass before.
// backward() returns as soon as the gradients exist; the thread that computed them frees the pass
// after that, and with it a Python object. If the interpreter ends meanwhile, the process is
// aborted ("terminate called without an active exception", pytorch/pytorch#190489).
void await_backward_threads() {
  if (is_in_bad_fork()) return;  // the threads are the parent's
  const c10::InferenceMode no_inference(false);
  const c10::AutoGradMode with_gradients(true);
  for (c10::DeviceIndex i = 0; i < kMaxDevices; ++i) {
    if (!is_initialized(i)) continue;  // unused; this must not load the plugin either
    const auto on_device = at::TensorOptions().device(c10::kPrivateUse1, i);
    const at::Tensor nothing = at::empty({0}, on_device).requires_grad_();
    (void)torch::autograd::grad({nothing.view({0})}, {nothing}, {at::empty({0}, on_device)});
  }
}

// Drivers compile a kernel at its first launch, in threads; exit() destroys statics of the compiler
// that are younger than the plugin's exit handler before it calls that.
void await_devices() {
  if (is_in_bad_fork()) return;
  for (c10::DeviceIndex i = 0; i < kMaxDevices; ++i) {
    if (!is_initialized(i)) continue;
    tb_error error{};
    (void)api().device->synchronize(i, &error);
  }
}

}  // namespace torch_ocl
