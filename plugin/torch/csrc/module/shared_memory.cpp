// Turns DLPack's capsules of ocl into capsules of CUDA and back: one memory by either address.
#include "shared_memory.h"

#include <ATen/DLConvertor.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Storage.h>

#include <memory>
#include <utility>

#include "runtime/shared_memory.h"
#include "runtime/stream.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

// What stands behind an exported tensor: the original context, and whom to wait for.
struct Exported {
  void* context;
  void (*deleter)(void*);
  c10::DeviceIndex index;
};

// The consumer may have enqueued work that reads the memory, and the pool gives it to others.
template <typename Managed>
void free_exported(Managed* managed) {
  const std::unique_ptr<Exported> exported(static_cast<Exported*>(managed->manager_ctx));
  try {
    synchronize_cuda(exported->index);
  } catch (const std::exception& error) {
    log_failure(TB_E_INTERNAL, "wait for CUDA", error.what());
  }
  managed->manager_ctx = exported->context;
  reinterpret_cast<void (*)(Managed*)>(exported->deleter)(managed);
}

template <typename Managed>
int to_cuda(Managed* managed) {
  DLTensor& tensor = managed->dl_tensor;
  const auto index = static_cast<c10::DeviceIndex>(tensor.device.device_id);
  const int number = cuda_number(index);
  bool is_empty = false;
  for (int k = 0; k < tensor.ndim; ++k) is_empty = is_empty || tensor.shape[k] == 0;
  void* data = nullptr;
  if (!is_empty)
    data = reinterpret_cast<void*>(shared_place(tensor.data).address);  // NOLINT: of the device
  auto exported = std::make_unique<Exported>(
      Exported{managed->manager_ctx, reinterpret_cast<void (*)(void*)>(managed->deleter), index});
  tensor.data = data;
  tensor.device = {kDLCUDA, number};
  managed->manager_ctx = exported.release();
  managed->deleter = &free_exported<Managed>;
  return number;
}

// A capsule of ocl's memory becomes one of CUDA's. Returns the device's number there.
int capsule_to_cuda(const py::object& capsule) {
  for (const char* name : {"dltensor", "dltensor_versioned"}) {
    if (PyCapsule_IsValid(capsule.ptr(), name) == 0) continue;
    void* managed = PyCapsule_GetPointer(capsule.ptr(), name);
    const py::gil_scoped_release no_gil;
    return name == std::string("dltensor")
               ? to_cuda(static_cast<DLManagedTensor*>(managed))
               : to_cuda(static_cast<DLManagedTensorVersioned*>(managed));
  }
  throw py::type_error("ocl: not a capsule of DLPack");
}

// From the first to behind the last byte, beside the address of element 0.
std::pair<int64_t, int64_t> extent_of(const DLTensor& tensor, int64_t item) {
  int64_t low = 0, high = item, contiguous = 1;
  for (int k = tensor.ndim - 1; k >= 0; --k) {
    const int64_t stride = tensor.strides != nullptr ? tensor.strides[k] : contiguous;
    contiguous *= tensor.shape[k];
    if (tensor.shape[k] == 0) return {0, 0};
    const int64_t reach = (tensor.shape[k] - 1) * stride * item;
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

at::Tensor copied(const DLTensor& tensor, c10::DeviceIndex index, uint64_t address,
                  std::pair<int64_t, int64_t> extent) {
  std::vector<int64_t> sizes(tensor.shape, tensor.shape + tensor.ndim);
  const auto options =
      at::TensorOptions().dtype(at::toScalarType(tensor.dtype)).device(c10::Device(kOcl, index));
  TORCH_CHECK(extent.first == 0, "ocl: memory with negative strides cannot be copied from CUDA");
  at::Tensor made =
      tensor.strides == nullptr
          ? at::empty(sizes, options)
          : at::empty_strided(sizes, {tensor.strides, static_cast<size_t>(tensor.ndim)}, options);
  if (extent.second != 0)
    copy_from_cuda(index, made.mutable_data_ptr(), address, static_cast<uint64_t>(extent.second));
  return made;
}

// The tensor in a capsule of CUDA, over its memory, or copied. `copy` as DLPack has it.
at::Tensor tensor_from_cuda(const py::object& capsule, int64_t device, std::optional<bool> copy) {
  constexpr const char* kName = "dltensor";
  if (PyCapsule_IsValid(capsule.ptr(), kName) == 0)
    throw py::type_error("ocl: not a capsule of DLPack that has not been used yet");
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  const auto index = static_cast<c10::DeviceIndex>(device);
  DLTensor& tensor = managed->dl_tensor;
  TORCH_CHECK_VALUE(tensor.device.device_type == kDLCUDA, "ocl: the tensor is not on CUDA");
  (void)at::toScalarType(tensor.dtype);  // throws where there is none, before anything is taken
  const auto item = static_cast<int64_t>(tensor.dtype.bits) * tensor.dtype.lanes / 8;
  const auto extent = extent_of(tensor, item);
  const uint64_t address = reinterpret_cast<uint64_t>(tensor.data) + tensor.byte_offset;
  std::shared_ptr<CudaImport> import;
  at::Tensor made;
  {
    const py::gil_scoped_release no_gil;
    const int number = cuda_number(index);
    TORCH_CHECK_VALUE(tensor.device.device_id == number, "ocl: the tensor is on CUDA's device ",
                      tensor.device.device_id, ", ocl:", device, " is device ", number);
    synchronize_cuda(index);
    const bool is_empty = extent.second == extent.first;
    if (!copy.value_or(false) && !is_empty) {
      try {
        import = std::make_shared<CudaImport>(index, address + static_cast<uint64_t>(extent.first),
                                              static_cast<uint64_t>(extent.second - extent.first));
      } catch (const c10::Error&) {
        if (copy.has_value()) throw;
      }
    }
    if (!import) made = copied(tensor, index, address, extent);
  }
  if (!import) return made;
  tensor.data = static_cast<std::byte*>(import->data()) - extent.first;
  tensor.byte_offset = 0;
  tensor.device = {kDLExtDev, static_cast<int32_t>(device)};
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return at::fromDLPack(managed, [managed, import = std::move(import)](void*) mutable {
    import.reset();  // waits for the device
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
}

py::dict place_of(uint64_t address) {
  const tb_shared_memory place = shared_place(reinterpret_cast<void*>(address));  // NOLINT
  py::dict found;
  found["library"] = place.library;
  found["number"] = place.number;
  found["address"] = place.address;
  found["segment"] = place.segment;
  found["bytes"] = place.bytes;
  return found;
}

py::object storage_of(int64_t device, const std::string& key, int descriptor,
                      uint64_t segment_bytes, uint64_t offset, uint64_t bytes, int lifetime) {
  c10::Storage storage;
  {
    const py::gil_scoped_release no_gil;
    storage = import_storage(static_cast<c10::DeviceIndex>(device),
                             {key, descriptor, segment_bytes, offset, bytes, lifetime});
  }
  return py::reinterpret_steal<py::object>(torch::createPyObject(storage));
}

}  // namespace

void bind_shared_memory(py::module_& module) {
  module.def("capsule_to_cuda", torch::wrap_pybind_function(&capsule_to_cuda));
  module.def("tensor_from_cuda", torch::wrap_pybind_function(&tensor_from_cuda));
  module.def("shared_place", torch::wrap_pybind_function(&place_of));
  module.def("lifetime_of", torch::wrap_pybind_function(+[](const py::object& storage) {
               return lifetime_of(torch::createStorage(storage.ptr()));
             }));
  module.def("import_storage", torch::wrap_pybind_function(&storage_of));
  module.def("export_memory", torch::wrap_pybind_function_no_gil(+[](uint64_t address) {
               return export_memory(reinterpret_cast<void*>(address));  // NOLINT
             }));
  module.def("cuda_number", torch::wrap_pybind_function_no_gil(+[](int64_t index) {
               return cuda_number(checked_index(static_cast<c10::DeviceIndex>(index)));
             }));
  module.def("synchronize_cuda", torch::wrap_pybind_function_no_gil(+[](int64_t index) {
               synchronize_cuda(static_cast<c10::DeviceIndex>(index));
             }));
}

}  // namespace torch_ocl
