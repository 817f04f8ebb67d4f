// PyTorch's threads that run backward passes, one for each device.
#pragma once

namespace torch_ocl {

// Waits until every device's thread has let go of the passes that it ran. Called without the GIL.
void await_backward_threads();

}  // namespace torch_ocl
