// What c10d's calls must be given, checked before anything is sent.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch_ocl::distributed {

using TensorList = std::vector<at::Tensor>;

// Dense tensors without gaps, all on one ocl device or all on the CPU. `what` is the call's name.
void check_tensors(const char* what, const std::vector<TensorList>& lists);
// All have the form of the first.
void check_alike(const char* what, const TensorList& tensors);
// Lists of this length, each of `inner` tensors.
void check_lists(const char* what, const std::vector<TensorList>& lists, size_t outer,
                 size_t inner);
void check_rank(const char* what, int64_t rank, int size);
void check_tag(const char* what, int tag);
// `whole` has `size` times the elements of `part`, of the same type.
void check_whole(const char* what, const at::Tensor& whole, const at::Tensor& part, int size);

}  // namespace torch_ocl::distributed
