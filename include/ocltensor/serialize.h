// Tensors in files: safetensors for named ones, NumPy's .npy for one.
//
// Files are written under another name and renamed, so that one that exists is whole. Reading
// checks all that a file says of itself against its size. Errors: TB_E_INVALID with the path and
// what is wrong with the file, or the system's message.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ocltensor/creation.h"

namespace ocltensor {

// https://huggingface.co/docs/safetensors: what PyTorch's users share weights in. Tensors of any
// device and strides; a tensor is read onto `device`. The order is that of the file's data. Types
// that ocltensor does not have (float8, complex128) are TB_E_INVALID, unless `names` leaves them
// out.
OCLTENSOR_API void save_safetensors(const std::string& path,
                                    const std::vector<std::pair<std::string, Tensor>>& tensors);
// All tensors of the file, or those with these names (TB_E_INVALID for one that is not there).
OCLTENSOR_API std::vector<std::pair<std::string, Tensor>> load_safetensors(
    const std::string& path, Device device = default_device(),
    const std::vector<std::string>& names = {});

// NumPy's format, versions 1 to 3, little-endian, in C or Fortran order. NumPy has no bfloat16:
// TB_E_INVALID.
OCLTENSOR_API void save_npy(const std::string& path, const Tensor& tensor);
OCLTENSOR_API Tensor load_npy(const std::string& path, Device device = default_device());

}  // namespace ocltensor
