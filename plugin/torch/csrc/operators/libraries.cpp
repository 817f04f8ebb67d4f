// Operators of other libraries than ATen: each row of the operator table with a namespace in its
// name, `torchvision::nms.out`, becomes a kernel of the library's operator `torchvision::nms`. The
// kernels read their arguments as the library's schema says when they are called, so that neither
// building nor importing this package needs the library, which may be imported before or after.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <list>
#include <map>

#include "base/operators.h"
#include "operator.h"

namespace torch_ocl {
namespace {

// The lists of one call, which its arguments refer to.
struct CallLists {
  std::list<std::vector<int64_t>> ints;
  std::list<std::vector<double>> reals;
  std::list<std::vector<at::Tensor>> tensors;
};

// Adds an argument of an operator that is called through the stack.
void add(Arguments& in, const c10::IValue& value, CallLists& lists) {
  if (value.isNone()) return in.none();
  if (value.isTensor()) return in.add(value.toTensor());
  if (value.isBool()) return in.add(value.toBool());
  if (value.isInt() || value.isSymInt()) return in.add(value.toSymInt());
  if (value.isDouble()) return in.add(value.toDouble());
  if (value.isString()) return in.add(c10::string_view(value.toStringRef()));
  if (value.isScalar()) return in.add(value.toScalar());
  if (value.isIntList() || value.isSymIntList())
    return in.add(at::IntArrayRef(lists.ints.emplace_back(value.toIntVector())));
  if (value.isDoubleList())
    return in.add(at::ArrayRef<double>(lists.reals.emplace_back(value.toDoubleVector())));
  if (value.isTensorList())
    return in.add(at::TensorList(lists.tensors.emplace_back(value.toTensorVector())));
  throw Declined("it has an argument of type " + value.tagKind());
}

// The kernel of one operator of the table.
class LibraryKernel : public c10::OperatorKernel {
 public:
  explicit LibraryKernel(const ocltensor::Operator& row)
      : op_(row.name.c_str()), outputs_(row.schema.outputs.size()) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const size_t count = op.schema().arguments().size();
    std::array<at::Tensor, ocltensor::kMostOutputs> outs;
    const std::span<at::Tensor> results = std::span(outs).first(outputs_);
    try {
      Arguments in;
      CallLists lists;
      for (const c10::IValue& value : torch::jit::last(*stack, count)) add(in, value, lists);
      op_.run_functional(in, results);
    } catch (const Declined& declined) {
      return fall_back(op, *stack, declined.what());
    }
    torch::jit::drop(*stack, count);
    for (at::Tensor& out : results) torch::jit::push(*stack, std::move(out));
  }

 private:
  PluginOperator op_;
  size_t outputs_;
};

// The library's name of an operator: without the namespace, and without the `out` that makes the
// overload's name that of the out-variant.
std::string name_in_library(const ocltensor::Operator& row, size_t end_of_namespace) {
  const std::string name = row.schema.name.substr(end_of_namespace + 2);
  std::string overload = row.schema.overload;
  overload.resize(overload.size() - std::min(overload.size(), std::string_view("out").size()));
  if (overload.ends_with('_')) overload.pop_back();
  return overload.empty() ? name : name + "." + overload;
}

// Libraries whose operators have kernels, with their registrations, which last as long as the
// process.
using Registrations = std::map<std::string, torch::Library>;

Registrations& register_all() {
  static auto& libraries = *new Registrations;  // leaked
  for (const ocltensor::Operator& row : ocltensor::operators()) {
    const size_t end = row.schema.name.find("::");
    if (end == std::string::npos) continue;
    const std::string library = row.schema.name.substr(0, end);
    const auto [place, is_new] = libraries.try_emplace(
        library, torch::Library::IMPL, library, c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
    place->second.impl(
        name_in_library(row, end).c_str(),
        torch::CppFunction::makeFromBoxedFunctor(std::make_unique<LibraryKernel>(row)));
  }
  return libraries;
}

[[maybe_unused]] const Registrations& registered = register_all();

}  // namespace
}  // namespace torch_ocl
