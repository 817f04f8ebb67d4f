// A pass over nothing: a device's thread takes it up when it has left the one before behind.
#include "backward_threads.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "plugin.h"
#include "stream.h"

namespace torch_ocl {

// backward() returns when the gradients are there; the thread that computed them frees the pass
// after that, and with it a Python object. If the interpreter ends meanwhile, the process is
// aborted ("terminate called without an active exception", pytorch/pytorch#190489).
void await_backward_threads() {
  if (is_in_bad_fork()) return;  // the threads are the parent's
  const c10::InferenceMode no_inference(false);
  const c10::AutoGradMode with_gradients(true);
  for (c10::DeviceIndex i = 0; i < kMaxDevices; ++i) {
    if (!is_initialized(i)) continue;  // nor is the plugin loaded for this
    const auto on_device = at::TensorOptions().device(c10::kPrivateUse1, i);
    const at::Tensor nothing = at::empty({0}, on_device).requires_grad_();
    (void)torch::autograd::grad({nothing.view({0})}, {nothing}, {at::empty({0}, on_device)});
  }
}

}  // namespace torch_ocl
