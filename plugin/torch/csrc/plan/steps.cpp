// What the steps do that need neither an operator nor a kernel.
#include "steps.h"

#include <ATen/ops/empty_strided.h>
#include <torch/csrc/inductor/inductor_ops.h>

#include "runtime/stream.h"

namespace torch_ocl::plan {

void Allocate::run(Run& run) const {
  c10::DimVector sizes, strides;
  run.values[to_] = at::empty_strided(sizes_.evaluate(run.values, sizes),
                                      strides_.evaluate(run.values, strides), options_);
}

void View::run(Run& run) const {
  c10::DimVector sizes, strides;
  run.values[to_] = torch::inductor::_reinterpret_tensor(
      run.values[from_].toTensor(), sizes_.evaluate(run.values, sizes),
      strides_.evaluate(run.values, strides), offset_.evaluate(run.values));
}

void Free::run(Run& run) const {
  for (const size_t place : places_) run.values[place] = c10::IValue();
}

void Item::run(Run& run) const {
  const c10::IValue& from = run.values[from_];
  run.values[to_] = as_result(from.isTuple() ? from.toTupleRef().elements().at(index_)
                                             : c10::IValue(from.toListRef().at(index_)));
}

void CheckSizes::run(Run& run) const {
  c10::DimVector own_sizes, own_strides;
  const c10::IntArrayRef sizes = sizes_.evaluate(run.values, own_sizes);
  const c10::IntArrayRef strides = strides_.evaluate(run.values, own_strides);
  const c10::IValue& value = run.values[value_];
  if (!value.isTensor()) return refuse_->run(run);
  const at::Tensor& tensor = value.toTensor();
  if (tensor.sizes() != sizes) return refuse_->run(run);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && tensor.strides()[i] != strides[i]) return refuse_->run(run);
}

void CheckOffset::run(Run& run) const {
  const c10::IValue& value = run.values[value_];
  if (!value.isTensor()) return refuse_->run(run);
  const at::Tensor& tensor = value.toTensor();
  const int64_t bytes = tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
  if (bytes % bytes_ != 0) refuse_->run(run);
}

void EnterDevice::run(Run& run) const {
  run.devices.reserve(run.devices.size() + 1);
  run.devices.push_back(exchange_device(checked_index(device_)));
}

void LeaveDevice::run(Run& run) const {
  (void)exchange_device(run.devices.back());
  run.devices.pop_back();
}

}  // namespace torch_ocl::plan
