// Compiles custom kernels, and finds them in their libraries.
#include "kernels.h"

#include <torch/csrc/Exceptions.h>

#include <memory>
#include <string>
#include <vector>

#include "kernel_launch.h"
#include "runtime/stream.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

class KernelLibrary {
 public:
  KernelLibrary(c10::DeviceIndex index, const std::string& source, const std::string& options)
      : index_(index) {
    ocltensor::ErrorBuffer error;
    tb_status status = TB_OK;
    {
      const py::gil_scoped_release release;
      status = api().kernel->compile(index, source.c_str(), options.c_str(), &handle_, error.get());
    }
    if (status == TB_E_COMPILE) {
      PyErr_SetString(PyExc_SyntaxError, error.text());
      throw py::error_already_set();
    }
    if (status != TB_OK) raise(status, "compile_kernel", error.text());
  }
  KernelLibrary(const KernelLibrary&) = delete;
  ~KernelLibrary() { call_api_noexcept("kernel library", api().kernel->destroy, handle_); }

  std::vector<std::string> names() const {
    uint32_t count = 0;
    call_api("kernels", api().kernel->count, handle_, &count);
    std::vector<std::string> names;
    for (uint32_t i = 0; i < count; ++i) {
      tb_kernel kernel = nullptr;
      tb_kernel_info info = empty_info();
      call_api("kernels", api().kernel->at, handle_, i, &kernel, &info);
      names.emplace_back(info.name);
    }
    return names;
  }

  py::dict info(const std::string& name) const {
    tb_kernel_info info = empty_info();
    (void)find(name, &info);
    py::dict d;
    d["parameter_count"] = info.argument_count;
    d["max_work_group_size"] = info.max_work_group_size;
    d["preferred_work_group_multiple"] = info.preferred_multiple;
    d["local_memory"] = info.local_memory;
    d["private_memory"] = info.private_memory;
    return d;
  }

  tb_kernel find(const std::string& name) const { return find(name, nullptr); }
  c10::DeviceIndex device() const { return index_; }

 private:
  static tb_kernel_info empty_info() {
    tb_kernel_info info{};
    info.struct_size = sizeof info;
    return info;
  }
  tb_kernel find(const std::string& name, tb_kernel_info* info) const {
    tb_kernel kernel = nullptr;
    call_api("kernel", api().kernel->find, handle_, name.c_str(), &kernel, info);
    return kernel;
  }

  c10::DeviceIndex index_;
  tb_library handle_ = nullptr;
};

}  // namespace

void bind_kernels(py::module_& module) {
  bind_prepared_kernels(module);
  py::class_<KernelLibrary, std::shared_ptr<KernelLibrary>>(module, "KernelLibrary")
      .def("names", torch::wrap_pybind_function(&KernelLibrary::names))
      .def("info", torch::wrap_pybind_function(&KernelLibrary::info))
      .def("prepare", [](const std::shared_ptr<KernelLibrary>& library, const std::string& name,
                         const py::object& threads, const py::object& group) {
        HANDLE_TH_ERRORS
        return prepare_kernel({library, library->find(name), name, library->device()}, threads,
                              group);
        END_HANDLE_TH_ERRORS_PYBIND
      });
  module.def("request_kernels", [](int64_t index, const std::vector<std::string>& sources,
                                   const std::string& options) {
    HANDLE_TH_ERRORS
    std::vector<const char*> texts;
    for (const std::string& source : sources) texts.push_back(source.c_str());
    uint32_t asked = 0;
    call_api("request_kernels", api().kernel->request,
             checked_index(static_cast<c10::DeviceIndex>(index)), texts.data(),
             static_cast<uint32_t>(texts.size()), options.c_str(), &asked);
    return asked;
    END_HANDLE_TH_ERRORS_PYBIND
  });
  module.def("compile_kernels",
             [](int64_t index, const std::string& source, const std::string& options) {
               HANDLE_TH_ERRORS
               return std::make_shared<KernelLibrary>(
                   checked_index(static_cast<c10::DeviceIndex>(index)), source, options);
               END_HANDLE_TH_ERRORS_PYBIND
             });
}

}  // namespace torch_ocl
