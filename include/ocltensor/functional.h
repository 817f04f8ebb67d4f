// Functions under the names that people type, made of the operators of ops.h.
//
// Meaning, shapes, promotion and defaults are those of PyTorch's functions of the same name. Errors
// are ocltensor::Error, TB_E_INVALID for arguments that do not fit together. Every function may be
// called from any thread.
#pragma once

#include <optional>
#include <vector>

#include "ocltensor/ops.h"

namespace ocltensor {

// ---- creation
inline Tensor eye(int64_t n, const Options& options = {}) { return eye(n, n, options); }
inline Tensor arange(const Scalar& end, const Options& options = {}) {
  return arange(0, end, 1, options);
}
// Random numbers of `generator`, or of the device's default one: normal with mean 0 and variance 1,
// uniform in [0, 1), whole numbers in [low, high).
OCLTENSOR_API Tensor randn(const Dims& sizes, const Options& options = {},
                           const std::optional<Generator>& generator = {});
OCLTENSOR_API Tensor rand(const Dims& sizes, const Options& options = {},
                          const std::optional<Generator>& generator = {});
OCLTENSOR_API Tensor randint(int64_t low, int64_t high, const Dims& sizes,
                             const Options& options = DType::Int64,
                             const std::optional<Generator>& generator = {});

// ---- joining and dividing; `split`, `chunk` and `unbind` give views
OCLTENSOR_API Tensor stack(const TensorList& tensors, int64_t dim = 0);  // along a new dimension
// Ranges of `size` elements each; the last one may be shorter.
OCLTENSOR_API std::vector<Tensor> split(const Tensor& self, int64_t size, int64_t dim = 0);
OCLTENSOR_API std::vector<Tensor> split(const Tensor& self, const Dims& sizes, int64_t dim = 0);
OCLTENSOR_API std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim = 0);
OCLTENSOR_API std::vector<Tensor> unbind(const Tensor& self, int64_t dim = 0);
// Puts `value` around the last dimensions: {before, after} of the last one, of the one before it...
OCLTENSOR_API Tensor pad(const Tensor& self, const Dims& widths, const Scalar& value = 0);
// int64 of shape [..., classes]: 1 where the class is, else 0. -1: as many classes as `self` names,
// for which the host waits.
OCLTENSOR_API Tensor one_hot(const Tensor& self, int64_t classes = -1);

// ---- products
// By the number of dimensions: dot, matrix times vector, matrices, batches of matrices (broadcast).
OCLTENSOR_API Tensor matmul(const Tensor& self, const Tensor& other);
OCLTENSOR_API Tensor outer(const Tensor& self, const Tensor& other);
// self [..., in] times weight [out, in] transposed, plus bias [out].
OCLTENSOR_API Tensor linear(const Tensor& self, const Tensor& weight,
                            const OptionalTensor& bias = std::nullopt);
// self [N, in, ...], with or without N; weight [out, in / groups, ...].
OCLTENSOR_API Tensor conv1d(const Tensor& self, const Tensor& weight,
                            const OptionalTensor& bias = std::nullopt, const IntList& stride = 1,
                            const IntList& padding = 0, const IntList& dilation = 1,
                            int64_t groups = 1);
OCLTENSOR_API Tensor conv2d(const Tensor& self, const Tensor& weight,
                            const OptionalTensor& bias = std::nullopt, const IntList& stride = 1,
                            const IntList& padding = 0, const IntList& dilation = 1,
                            int64_t groups = 1);
OCLTENSOR_API Tensor conv3d(const Tensor& self, const Tensor& weight,
                            const OptionalTensor& bias = std::nullopt, const IntList& stride = 1,
                            const IntList& padding = 0, const IntList& dilation = 1,
                            int64_t groups = 1);
// weight [in, out / groups, kh, kw].
OCLTENSOR_API Tensor conv_transpose2d(const Tensor& self, const Tensor& weight,
                                      const OptionalTensor& bias = std::nullopt,
                                      const IntList& stride = 1, const IntList& padding = 0,
                                      const IntList& output_padding = 0, int64_t groups = 1,
                                      const IntList& dilation = 1);
// query [..., L, E], key [..., S, E], value [..., S, V] of three or four dimensions. `mask`: bool
// (true takes part) or added to the scores. Without `scale` the scores are divided by the root of
// E.
OCLTENSOR_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                                  const Tensor& value,
                                                  const OptionalTensor& mask = std::nullopt,
                                                  double dropout = 0, bool is_causal = false,
                                                  std::optional<double> scale = std::nullopt);

// ---- layers
// Computed, and returned, in `dtype` if one is given.
OCLTENSOR_API Tensor softmax(const Tensor& self, int64_t dim,
                             std::optional<DType> dtype = std::nullopt);
OCLTENSOR_API Tensor log_softmax(const Tensor& self, int64_t dim,
                                 std::optional<DType> dtype = std::nullopt);
OCLTENSOR_API Tensor layer_norm(const Tensor& self, const Dims& normalized_shape,
                                const OptionalTensor& weight = std::nullopt,
                                const OptionalTensor& bias = std::nullopt, double eps = 1e-5);
OCLTENSOR_API Tensor group_norm(const Tensor& self, int64_t groups,
                                const OptionalTensor& weight = std::nullopt,
                                const OptionalTensor& bias = std::nullopt, double eps = 1e-5);
// In training the running statistics are updated in place.
OCLTENSOR_API Tensor batch_norm(const Tensor& self, const OptionalTensor& running_mean,
                                const OptionalTensor& running_var,
                                const OptionalTensor& weight = std::nullopt,
                                const OptionalTensor& bias = std::nullopt, bool training = false,
                                double momentum = 0.1, double eps = 1e-5);
// In training, elements are zero with probability p, and the others are divided by 1 - p.
OCLTENSOR_API Tensor dropout(const Tensor& self, double p = 0.5, bool training = true);
// An empty stride is the kernel's size.
OCLTENSOR_API Tensor max_pool2d(const Tensor& self, const IntList& kernel_size,
                                const IntList& stride = {}, const IntList& padding = 0,
                                const IntList& dilation = 1, bool ceil_mode = false);
OCLTENSOR_API Tensor adaptive_avg_pool2d(const Tensor& self, const IntList& output_size);

// ---- losses
// self [N, C] or [N, C, ...]: log-probabilities; target [N] or [N, ...]: int64 classes. Elements of
// class `ignore_index` do not count. Mean is over the weights of the targets' classes.
OCLTENSOR_API Tensor nll_loss(const Tensor& self, const Tensor& target,
                              const OptionalTensor& weight = std::nullopt,
                              int64_t ignore_index = -100, Reduction reduction = Reduction::Mean);
// The same of log_softmax(self, 1).
OCLTENSOR_API Tensor cross_entropy(const Tensor& self, const Tensor& target,
                                   const OptionalTensor& weight = std::nullopt,
                                   int64_t ignore_index = -100,
                                   Reduction reduction = Reduction::Mean);
OCLTENSOR_API Tensor l1_loss(const Tensor& self, const Tensor& target,
                             Reduction reduction = Reduction::Mean);
OCLTENSOR_API Tensor binary_cross_entropy_with_logits(
    const Tensor& self, const Tensor& target, const OptionalTensor& weight = std::nullopt,
    const OptionalTensor& pos_weight = std::nullopt, Reduction reduction = Reduction::Mean);

}  // namespace ocltensor
