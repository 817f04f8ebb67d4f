// Operators whose ATen kernels for sparse tensors of the CPU run on any device, because they only
// call other operators: the same kernels are registered for ocl.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace torch_ocl::sparse {
namespace {

template <c10::DispatchKey key>
void as_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::OptionalDeviceGuard guard;
  for (const c10::IValue& value : torch::jit::last(*stack, op.schema().arguments().size()))
    if (value.isTensor() && value.toTensor().defined() &&
        value.toTensor().device().is_privateuseone()) {
      guard.reset_device(value.toTensor().device());
      break;
    }
  op.redispatchBoxed(c10::DispatchKeySet(key), stack);
}

// Pointwise operators that leave zeros zero, for both kinds of sparse tensors: X, X_ and X.out.
constexpr const char* kUnary[] = {"abs",     "asin", "asinh",   "atan",  "atanh", "ceil",
                                  "deg2rad", "erf",  "erfinv",  "expm1", "floor", "frac",
                                  "log1p",   "neg",  "rad2deg", "round", "sgn",   "sign",
                                  "sin",     "sinh", "sqrt",    "tan",   "tanh",  "trunc"};
constexpr const char* kForms[] = {"", "_", ".out"};

constexpr const char* kBoth[] = {"_nnz",
                                 "_to_dense",
                                 "_to_sparse.sparse_dim",
                                 "add.Tensor",
                                 "add_.Tensor",
                                 "clone",
                                 "conj_physical.out",
                                 "copy_",
                                 "dense_dim",
                                 "empty.memory_format",
                                 "empty_like",
                                 "isinf",
                                 "isnan",
                                 "isneginf",
                                 "isneginf.out",
                                 "isposinf",
                                 "isposinf.out",
                                 "mm.out",
                                 "mul.Tensor",
                                 "mul_.Tensor",
                                 "relu",
                                 "relu_",
                                 "resize_as_sparse_",
                                 "signbit",
                                 "signbit.out",
                                 "sparse_dim",
                                 "sum",
                                 "sum.dim_IntList",
                                 "threshold_backward",
                                 "threshold_backward.grad_input",
                                 "values",
                                 "zero_"};

constexpr const char* kCoo[] = {"_coalesced_",
                                "_to_sparse",
                                "_to_sparse_bsc",
                                "_to_sparse_bsr",
                                "_to_sparse_csc",
                                "_to_sparse_csr",
                                "_dimI",
                                "_dimV",
                                "_indices",
                                "_sparse_broadcast_to",
                                "_sparse_coo_tensor_with_dims",
                                "_sparse_coo_tensor_with_dims_and_tensors",
                                "_values",
                                "any",
                                "cat",
                                "copy_sparse_to_sparse_",
                                "div.Tensor",
                                "div.Tensor_mode",
                                "div.out",
                                "div.out_mode",
                                "div_.Tensor",
                                "div_.Tensor_mode",
                                "floor_divide",
                                "floor_divide.out",
                                "floor_divide_.Tensor",
                                "indices",
                                "is_coalesced",
                                "mm",
                                "mv",
                                "nan_to_num",
                                "nan_to_num.out",
                                "nan_to_num_",
                                "narrow_copy",
                                "native_norm",
                                "native_norm.ScalarOpt_dim_dtype",
                                "norm.ScalarOpt_dim",
                                "norm.ScalarOpt_dim_dtype",
                                "permute",
                                "pow.Tensor_Scalar",
                                "pow.Tensor_Scalar_out",
                                "sparse_resize_",
                                "sparse_resize_and_clear_",
                                "sub.Tensor",
                                "sub.out",
                                "sub_.Tensor",
                                "unsqueeze",
                                "view_as_complex",
                                "view_as_real",
                                "zeros.out"};

constexpr const char* kCompressed[] = {
    "_conj_physical", "addmm",          "angle",           "angle.out",  "ccol_indices",
    "col_indices",    "conj_physical_", "crow_indices",    "mm",         "fill_.Scalar",
    "mul.Scalar",     "mul.out",        "mul_.Scalar",     "normal_",    "resize_",
    "row_indices",    "select.int",     "select_copy.int", "sparse_mask"};

// Dense tensors become sparse ones.
constexpr const char* kDense[] = {"_to_sparse",     "_to_sparse.sparse_dim", "_to_sparse_bsc",
                                  "_to_sparse_bsr", "_to_sparse_csc",        "_to_sparse_csr"};

template <c10::DispatchKey key>
void register_same(torch::Library& library, at::ArrayRef<const char*> names) {
  for (const char* name : names)
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&as_on_cpu<key>>());
}

template <c10::DispatchKey key>
void register_unary(torch::Library& library) {
  for (const char* name : kUnary)
    for (const char* form : kForms)
      library.impl((std::string(name) + form).c_str(),
                   torch::CppFunction::makeFromBoxedFunction<&as_on_cpu<key>>());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  constexpr auto kKey = c10::DispatchKey::SparseCPU;
  register_unary<kKey>(m);
  register_same<kKey>(m, kBoth);
  register_same<kKey>(m, kCoo);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  constexpr auto kKey = c10::DispatchKey::SparseCsrCPU;
  register_unary<kKey>(m);
  register_same<kKey>(m, kBoth);
  register_same<kKey>(m, kCompressed);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { register_same<c10::DispatchKey::CPU>(m, kDense); }

}  // namespace torch_ocl::sparse
