// A program that loads the library while it runs, as hosts of other languages do, and knows nothing
// of its header. `loaded taken`: another library has taken PyTorch's out-of-tree device before.
#include <dlfcn.h>
#include <torch/torch.h>

#include <cstdio>
#include <string>

int main(int argc, char**) {
  const bool taken = argc > 1;
  if (taken) c10::register_privateuse1_backend("other");
  void* library = dlopen(LIBRARY, RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  if (!taken) {
    const torch::Tensor x = torch::ones({3}, torch::Device("ocl")) + 1;
    std::printf("passed: %g\n", x.sum().item<double>());
    return x.sum().item<double>() == 6 ? 0 : 1;
  }
  const auto initialize =
      reinterpret_cast<void (*)()>(dlsym(library, "_ZN9torch_ocl10initializeEv"));
  try {
    initialize();
  } catch (const c10::Error& error) {
    std::printf("passed: %s\n", error.what_without_backtrace());
    return std::string(error.what()).find("'other' has taken it") == std::string::npos ? 1 : 0;
  }
  return 1;
}
