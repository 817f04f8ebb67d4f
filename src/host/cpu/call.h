// One operator call as the families' functions receive it, and the tables that the families export.
#pragma once

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

// One table per family, in <family>.cpp.
std::span<const CpuOperator> attention_operators();
std::span<const CpuOperator> conv_operators();
std::span<const CpuOperator> copy_operators();
std::span<const CpuOperator> ctc_operators();
std::span<const CpuOperator> deform_operators();
std::span<const CpuOperator> distance_operators();
std::span<const CpuOperator> index_operators();
std::span<const CpuOperator> eig_operators();
std::span<const CpuOperator> eigh_operators();
std::span<const CpuOperator> fft_operators();
std::span<const CpuOperator> ldl_operators();
std::span<const CpuOperator> linalg_operators();
std::span<const CpuOperator> loss_operators();
std::span<const CpuOperator> matmul_operators();
std::span<const CpuOperator> multi_tensor_operators();
std::span<const CpuOperator> norm_operators();
std::span<const CpuOperator> pool_operators();
std::span<const CpuOperator> random_operators();
std::span<const CpuOperator> reduce_operators();
std::span<const CpuOperator> rejection_operators();
std::span<const CpuOperator> rnn_operators();
std::span<const CpuOperator> sampling_operators();
std::span<const CpuOperator> scan_operators();
std::span<const CpuOperator> softmax_operators();
std::span<const CpuOperator> sort_operators();
std::span<const CpuOperator> sparse_operators();
std::span<const CpuOperator> svd_operators();
std::span<const CpuOperator> upsample_operators();
std::span<const CpuOperator> vision_operators();
void run_pointwise(const CpuCall& call);  // every operator of pointwise.def
void run_foreach(const CpuCall& call);    // every foreach operator of multi_tensor.def

}  // namespace ocltensor::cpu
