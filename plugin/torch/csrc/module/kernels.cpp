// Compiles and launches custom kernels.
#include "kernels.h"

#include <torch/csrc/Exceptions.h>

#include <list>
#include <string>
#include <variant>
#include <vector>

#include "operators/arguments.h"
#include "runtime/stream.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

// The types that a Python argument may have; bytes are passed by value.
using Argument = std::variant<at::Tensor, bool, int64_t, double, std::vector<int64_t>,
                              std::vector<double>, py::bytes>;

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

  void launch(const std::string& name, const std::vector<Argument>& arguments,
              const std::vector<uint64_t>& threads, const std::vector<uint64_t>& group) const {
    const tb_kernel kernel = find(name, nullptr);
    std::vector<tb_value> values;
    std::list<tb_tensor> tensors;
    std::list<std::string> bytes;
    for (const Argument& argument : arguments) values.push_back(pack(argument, tensors, bytes));
    const tb_stream stream = current_handle(index_);
    const py::gil_scoped_release release;
    call_api(name.c_str(), api().kernel->launch, stream, kernel, values.data(),
             static_cast<uint32_t>(values.size()), static_cast<uint32_t>(threads.size()),
             threads.data(), group.empty() ? nullptr : group.data());
  }

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

  // A kernel may write through any of its pointers, so every tensor is passed as an output.
  tb_value pack(const Argument& argument, std::list<tb_tensor>& tensors,
                std::list<std::string>& bytes) const {
    tb_value v{};
    const auto point = [&](uint32_t tag, const void* data, size_t count) {
      v.tag = tag;
      v.as.p = data;
      v.count = static_cast<uint32_t>(count);
    };
    if (const auto* tensor = std::get_if<at::Tensor>(&argument)) {
      TORCH_CHECK(tensor->device() == c10::Device(kOcl, index_),
                  "a kernel compiled for ocl:", static_cast<int>(index_), " was given a tensor on ",
                  tensor->device());
      tensors.push_back(describe_output(*tensor));
      point(TB_TENSOR, &tensors.back(), 0);
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&argument)) {
      point(TB_INT_LIST, list->data(), list->size());
    } else if (const auto* reals = std::get_if<std::vector<double>>(&argument)) {
      point(TB_FLOAT_LIST, reals->data(), reals->size());
    } else if (const auto* raw = std::get_if<py::bytes>(&argument)) {
      bytes.emplace_back(*raw);
      point(TB_STRING, bytes.back().data(), bytes.back().size());
    } else if (const auto* real = std::get_if<double>(&argument)) {
      v.tag = TB_FLOAT;
      v.as.f = *real;
    } else if (const auto* integer = std::get_if<int64_t>(&argument)) {
      v.tag = TB_INT;
      v.as.i = *integer;
    } else {
      v.tag = TB_BOOL;
      v.as.i = std::get<bool>(argument);
    }
    return v;
  }

  c10::DeviceIndex index_;
  tb_library handle_ = nullptr;
};

}  // namespace

void bind_kernels(py::module_& module) {
  py::class_<KernelLibrary>(module, "KernelLibrary")
      .def("names", torch::wrap_pybind_function(&KernelLibrary::names))
      .def("info", torch::wrap_pybind_function(&KernelLibrary::info))
      .def("launch", torch::wrap_pybind_function(&KernelLibrary::launch));
  module.def("compile_kernels",
             [](int64_t index, const std::string& source, const std::string& options) {
               HANDLE_TH_ERRORS
               return std::make_unique<KernelLibrary>(
                   checked_index(static_cast<c10::DeviceIndex>(index)), source, options);
               END_HANDLE_TH_ERRORS_PYBIND
             });
}

}  // namespace torch_ocl
