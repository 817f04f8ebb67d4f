// Errors in c10d's words where it has some.
#include "checks.h"

#include <limits>

#include "runtime/plugin.h"

namespace torch_ocl::distributed {

void check_tensors(const char* what, const std::vector<TensorList>& lists) {
  const at::Tensor* first = nullptr;
  for (const TensorList& list : lists)
    for (const at::Tensor& tensor : list) {
      if (first == nullptr) first = &tensor;
      TORCH_CHECK_VALUE(tensor.device() == first->device(), "ocl: ", what, ": tensors are on ",
                        first->device(), " and ", tensor.device());
      TORCH_CHECK_TYPE(tensor.device().type() == kOcl || tensor.device().is_cpu(), "ocl: ", what,
                       ": tensors must be on ocl or the CPU, not on ", tensor.device());
      TORCH_CHECK_TYPE(tensor.layout() == at::kStrided, "ocl: ", what,
                       ": tensors must be dense, not ", tensor.layout());
      TORCH_CHECK_VALUE(tensor.is_non_overlapping_and_dense(), "ocl: ", what,
                        ": tensors must be contiguous");
      TORCH_CHECK_VALUE(!tensor.is_conj() && !tensor.is_neg(), "ocl: ", what,
                        ": call resolve_conj() and resolve_neg() first");
    }
}

void check_alike(const char* what, const TensorList& tensors) {
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK_TYPE(tensor.scalar_type() == tensors.front().scalar_type(), "ocl: ", what,
                     ": tensors must have identical type, not ", tensors.front().scalar_type(),
                     " and ", tensor.scalar_type());
    TORCH_CHECK_VALUE(tensor.sizes() == tensors.front().sizes(), "ocl: ", what,
                      ": tensors must have identical size, not ", tensors.front().sizes(), " and ",
                      tensor.sizes());
    TORCH_CHECK_VALUE(tensor.strides() == tensors.front().strides(), "ocl: ", what,
                      ": tensors must have identical strides, or be contiguous");
  }
}

void check_lists(const char* what, const std::vector<TensorList>& lists, size_t outer,
                 size_t inner) {
  TORCH_CHECK_VALUE(lists.size() == outer, "ocl: ", what, ": expected ", outer,
                    " lists of tensors, got ", lists.size());
  for (const TensorList& list : lists)
    TORCH_CHECK_VALUE(list.size() == inner, "ocl: ", what, ": expected ", inner,
                      " tensors in a list, got ", list.size());
}

void check_rank(const char* what, int64_t rank, int size) {
  TORCH_CHECK_VALUE(rank >= 0 && rank < size, "ocl: ", what, ": invalid rank ", rank,
                    " in a group of ", size);
}

void check_tag(const char* what, int tag) {
  TORCH_CHECK_VALUE(tag >= 0 && tag < std::numeric_limits<int>::max() - 1, "ocl: ", what, ": tag ",
                    tag, " is not from 0 to 2^31 - 3");
}

void check_whole(const char* what, const at::Tensor& whole, const at::Tensor& part, int size) {
  TORCH_CHECK_TYPE(whole.scalar_type() == part.scalar_type(), "ocl: ", what,
                   ": tensors must have identical type, not ", whole.scalar_type(), " and ",
                   part.scalar_type());
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * size, "ocl: ", what, ": the larger tensor has ",
                    whole.numel(), " elements instead of ", size, " times ", part.numel());
  TORCH_CHECK_VALUE(whole.is_contiguous() && part.is_contiguous(), "ocl: ", what,
                    ": tensors must be contiguous");
}

}  // namespace torch_ocl::distributed
