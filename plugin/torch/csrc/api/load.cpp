// Registration: the name of the device type when the library is loaded, and the function that makes
// sure of it.
#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>

#include <cstdlib>

#include "runtime/graphs.h"
#include "torch_ocl/torch_ocl.h"

namespace torch_ocl {
namespace {

constexpr const char* kName = "ocl";

// Operators, guard, hooks and allocator are registered by objects of their own files. PyTorch has
// one name for out-of-tree devices: one that another library has taken stays, and initialize() says
// so. An exception from here would end the process before main().
bool register_name() noexcept {
  try {
    // PoCL up to 5 compiles a kernel again for each local and global size. The plugin's kernels
    // gain nothing from that, as they fix their local sizes. A value that the user has set is kept.
    setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
    c10::register_privateuse1_backend(kName);
    register_accelerator_graphs();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

[[maybe_unused]] const bool registered = register_name();

}  // namespace

void initialize() {
  const std::string name = c10::get_privateuse1_backend();
  TORCH_CHECK(name == kName, "PyTorch has room for one out-of-tree device, and '", name,
              "' has taken it: ocl and ", name, " do not fit into one process");
}

}  // namespace torch_ocl
