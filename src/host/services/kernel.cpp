// Custom kernels: handles over the backend's libraries.
#include "ocltensor/kernel.h"

#include "host/core/backend.h"
#include "host/services/owned_handle.h"

namespace ocltensor {

struct KernelLibrary::Impl : OwnedHandle<tb_library> {
  Impl(Device d, tb_library h)
      : OwnedHandle(d, h, backend(d).api->kernel->destroy, "kernel", "a library") {}
};

KernelLibrary KernelLibrary::compile(std::string_view source, Device device,
                                     std::string_view options) {
  tb_library handle = nullptr;
  invoke_api("compiling kernels", backend(device).api->kernel->compile,
             static_cast<int32_t>(device.index()), std::string(source).c_str(),
             std::string(options).c_str(), &handle);
  KernelLibrary library;
  library.impl_ = std::make_shared<const Impl>(device, handle);
  return library;
}

uint32_t KernelLibrary::request(const std::vector<std::string>& sources, Device device,
                                std::string_view options) {
  const tb_kernel_api& api = *backend(device).api->kernel;
  uint32_t asked = 0;
  if (api.struct_size <= offsetof(tb_kernel_api, request))
    return asked;  // a backend of an earlier version
  std::vector<const char*> texts;
  for (const std::string& source : sources) texts.push_back(source.c_str());
  invoke_api("requesting kernels", api.request, static_cast<int32_t>(device.index()), texts.data(),
             static_cast<uint32_t>(texts.size()), std::string(options).c_str(), &asked);
  return asked;
}

std::vector<std::string> KernelLibrary::names() const {
  const tb_kernel_api& api = *backend(impl_->device).api->kernel;
  uint32_t count = 0;
  invoke_api("kernels of a library", api.count, impl_->handle, &count);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) {
    tb_kernel kernel = nullptr;
    tb_kernel_info info{};
    info.struct_size = sizeof info;
    invoke_api("kernels of a library", api.at, impl_->handle, i, &kernel, &info);
    names.emplace_back(info.name);
  }
  return names;
}

Kernel KernelLibrary::kernel(std::string_view name) const {
  Kernel kernel;
  kernel.library_ = impl_;
  kernel.device_ = impl_->device;
  kernel.info_.struct_size = sizeof kernel.info_;
  invoke_api("kernel", backend(impl_->device).api->kernel->find, impl_->handle,
             std::string(name).c_str(), &kernel.handle_, &kernel.info_);
  return kernel;
}

namespace {

template <typename... F>
struct Visitor : F... {
  using F::operator()...;
};
template <typename... F>
Visitor(F...) -> Visitor<F...>;  // clang 14 does not deduce aggregates

tb_value value_of(const KernelArgument& argument) {
  tb_value value{};
  const auto point = [&](uint32_t tag, const void* data, size_t count) {
    value.tag = tag;
    value.as.p = data;
    value.count = static_cast<uint32_t>(count);
  };
  std::visit(Visitor{
                 [&](const Tensor& t) {
                   check(t.defined(), "an undefined tensor cannot be passed to a kernel");
                   point(TB_TENSOR, static_cast<const tb_tensor*>(t.impl().get()), 0);
                 },
                 [&](bool v) { value = Scalar(v).to_value(); },
                 [&](int64_t v) { value = Scalar(v).to_value(); },
                 [&](double v) { value = Scalar(v).to_value(); },
                 [&](const std::vector<int64_t>& v) { point(TB_INT_LIST, v.data(), v.size()); },
                 [&](const std::vector<double>& v) { point(TB_FLOAT_LIST, v.data(), v.size()); },
                 [&](const KernelBytes& v) { point(TB_STRING, v.bytes.data(), v.bytes.size()); },
             },
             argument);
  return value;
}

}  // namespace

void Kernel::launch(std::initializer_list<KernelArgument> arguments,
                    std::initializer_list<uint64_t> threads,
                    std::initializer_list<uint64_t> group) const {
  check(handle_ != nullptr, "an empty kernel cannot be launched");
  check(group.size() == 0 || group.size() == threads.size(),
        "kernel {}: the group has {} dimensions, the range {}", name(), group.size(),
        threads.size());
  std::vector<tb_value> values;
  for (const KernelArgument& argument : arguments) {
    if (const auto* t = std::get_if<Tensor>(&argument); t != nullptr && t->defined())
      check(t->device() == device_, "kernel {}, argument {}: the tensor is on {}, the kernel on {}",
            name(), values.size(), t->device().text(), device_.text());
    values.push_back(value_of(argument));
  }
  invoke_api(name(), backend(device_).api->kernel->launch, current_stream(device_).handle(),
             handle_, values.data(), static_cast<uint32_t>(values.size()),
             static_cast<uint32_t>(threads.size()), threads.begin(),
             group.size() == 0 ? nullptr : group.begin());
}

}  // namespace ocltensor
