// One operator call as the families' functions receive it, and the tables that the families export.
#pragma once

#include <initializer_list>
#include <span>

#include "base/operators.h"
#include "view.h"

namespace ocltensor::cpu {

struct CpuCall {
  const Args& args;
  const tb_call& raw;
  std::span<const TensorSpec> specs;  // the inferred outputs

  View out(size_t i) const { return TensorView(*raw.outs[i]); }
  // True if the caller wants this output and it has elements.
  bool wants(size_t i) const {
    return i < raw.out_count && raw.outs[i] != nullptr && numel(specs[i].sizes) > 0;
  }
  // For data-dependent shapes: gives the output its final size and returns it.
  View resized(size_t i, std::span<const int64_t> sizes) const;
};

struct CpuOperator {
  const char* name;
  void (*run)(const CpuCall&);
  // What runs calls with complex tensors or numbers; nullptr: what complex.h has for them, if
  // anything.
  void (*run_complex)(const CpuCall&) = nullptr;
};

// The table of each family, in its file.
#define OCLTENSOR_FAMILY(name) std::span<const CpuOperator> name##_operators();
#include "base/families.def"
#undef OCLTENSOR_FAMILY
// Parts of a family's table that are files of their own.
std::span<const CpuOperator> ctc_operators();     // of loss
std::span<const CpuOperator> deform_operators();  // of vision
std::span<const CpuOperator> eig_operators();     // of linalg, as the next three
std::span<const CpuOperator> eigh_operators();
std::span<const CpuOperator> ldl_operators();
std::span<const CpuOperator> svd_operators();
std::span<const CpuOperator> rejection_operators();  // of random
// One table of several, which lives as long as the process.
std::span<const CpuOperator> joined(std::initializer_list<std::span<const CpuOperator>> parts);
void run_pointwise(const CpuCall& call);  // every operator of pointwise.def
void run_foreach(const CpuCall& call);    // every foreach operator of multi_tensor.def

}  // namespace ocltensor::cpu
