// Inference functions of operators.def, one file per family.
#pragma once

#include "../operators.h"

namespace ocltensor::infer {

using Specs = std::vector<TensorSpec>;

// attention.cpp
Specs scaled_dot_product_attention(const Args& args);
Specs fused_attention(const Args& args);
Specs fused_attention_backward(const Args& args);

// conv.cpp
Specs convolution(const Args& args);
Specs convolution_backward(const Args& args);

// copy.cpp
Specs arange(const Args& args);
Specs cat(const Args& args);
Specs copy(const Args& args);
Specs eye(const Args& args);
Specs fill(const Args& args);
Specs flip(const Args& args);
Specs linspace(const Args& args);
Specs pad(const Args& args);
Specs pad_backward(const Args& args);
Specs roll(const Args& args);
Specs triangle(const Args& args);

// distance.cpp
Specs pdist_backward(const Args& args);
Specs pdist_forward(const Args& args);

// fft.cpp
Specs fft_c2c(const Args& args);
Specs fft_c2r(const Args& args);
Specs fft_r2c(const Args& args);

// index.cpp
Specs embedding(const Args& args);
Specs embedding_dense_backward(const Args& args);
Specs gather(const Args& args);
Specs index(const Args& args);
Specs index_add(const Args& args);
Specs index_put(const Args& args);
Specs index_select(const Args& args);
Specs masked_select(const Args& args);
Specs nonzero(const Args& args);
Specs nonzero_static(const Args& args);
Specs scatter(const Args& args);

// general.cpp
Specs linalg_eig(const Args& args);
Specs linalg_eigvals(const Args& args);
Specs linalg_ldl_factor_ex(const Args& args);
Specs linalg_ldl_solve(const Args& args);

// linalg.cpp
Specs geqrf(const Args& args);
Specs linalg_cholesky_ex(const Args& args);
Specs linalg_eigh(const Args& args);
Specs linalg_householder_product(const Args& args);
Specs linalg_inv_ex(const Args& args);
Specs linalg_lu_factor_ex(const Args& args);
Specs linalg_lu_solve(const Args& args);
Specs linalg_solve_ex(const Args& args);
Specs linalg_qr(const Args& args);
Specs linalg_solve_triangular(const Args& args);
Specs linalg_svd(const Args& args);
Specs lu_unpack(const Args& args);

// loss.cpp
Specs binary_cross_entropy(const Args& args);
Specs binary_cross_entropy_backward(const Args& args);
Specs ctc_loss(const Args& args);
Specs ctc_loss_backward(const Args& args);
Specs huber_loss(const Args& args);
Specs huber_loss_backward(const Args& args);
Specs mse_loss(const Args& args);
Specs mse_loss_backward(const Args& args);
Specs multilabel_margin_loss_forward(const Args& args);
Specs nll_loss2d_backward(const Args& args);
Specs nll_loss2d_forward(const Args& args);
Specs nll_loss_backward(const Args& args);
Specs nll_loss_forward(const Args& args);
Specs smooth_l1_loss(const Args& args);
Specs smooth_l1_loss_backward(const Args& args);

// matmul.cpp
Specs addmm(const Args& args);
Specs addmv(const Args& args);
Specs baddbmm(const Args& args);
Specs bmm(const Args& args);
Specs dot(const Args& args);
Specs grouped_mm(const Args& args);
Specs int_mm(const Args& args);
Specs mm(const Args& args);
Specs mv(const Args& args);

// multi_tensor.cpp
Specs amp_unscale(const Args& args);
Specs amp_update_scale(const Args& args);
// The arguments of a foreach operator alone; the list that its outputs are like.
TensorViews check_foreach(const Args& args);
Specs foreach (const Args& args);
Specs foreach_copy(const Args& args);
Specs foreach_norm(const Args& args);
Specs fused_adagrad(const Args& args);
Specs fused_adam(const Args& args);
Specs fused_sgd(const Args& args);

// norm.cpp
Specs fused_rms_norm(const Args& args);
Specs fused_rms_norm_backward(const Args& args);
Specs native_batch_norm(const Args& args);
Specs native_batch_norm_backward(const Args& args);
Specs native_group_norm(const Args& args);
Specs native_group_norm_backward(const Args& args);
Specs native_layer_norm(const Args& args);
Specs native_layer_norm_backward(const Args& args);

// pool.cpp
Specs adaptive_avg_pool2d(const Args& args);
Specs adaptive_avg_pool2d_backward(const Args& args);
Specs adaptive_max_pool2d(const Args& args);
Specs avg_pool2d(const Args& args);
Specs avg_pool2d_backward(const Args& args);
Specs max_pool2d_with_indices(const Args& args);
Specs max_pool2d_with_indices_backward(const Args& args);
Specs fractional_max_pool2d(const Args& args);
Specs fractional_max_pool3d(const Args& args);

// random.cpp
Specs binomial(const Args& args);
Specs multinomial(const Args& args);
Specs native_dropout(const Args& args);
Specs native_dropout_backward(const Args& args);
Specs random_floating(const Args& args);
Specs random_like(const Args& args);
Specs randperm(const Args& args);

// reduce.cpp
Specs amax(const Args& args);
Specs aminmax(const Args& args);
Specs any_all(const Args& args);
Specs any_dim(const Args& args);
Specs any_dims(const Args& args);
Specs argmax(const Args& args);
Specs count_nonzero(const Args& args);
Specs hash_tensor(const Args& args);
Specs linalg_vector_norm(const Args& args);
Specs logsumexp(const Args& args);
Specs max_dim(const Args& args);
Specs mean(const Args& args);
Specs min_dim(const Args& args);
Specs nansum(const Args& args);
Specs prod(const Args& args);
Specs prod_dim(const Args& args);
Specs reduce_all_same(const Args& args);
Specs sum(const Args& args);
Specs var(const Args& args);
Specs var_mean(const Args& args);

// sampling.cpp
Specs grid_sampler_2d(const Args& args);
Specs grid_sampler_2d_backward(const Args& args);
Specs grid_sampler_3d(const Args& args);
Specs grid_sampler_3d_backward(const Args& args);

// scan.cpp
Specs cummax(const Args& args);
Specs cumprod(const Args& args);
Specs cumsum(const Args& args);
Specs logcumsumexp(const Args& args);

// rnn.cpp
Specs gru_cell(const Args& args);
Specs gru_cell_backward(const Args& args);
Specs lstm_cell(const Args& args);
Specs lstm_cell_backward(const Args& args);

// softmax.cpp
Specs log_softmax(const Args& args);
Specs log_softmax_backward_data(const Args& args);
Specs softmax(const Args& args);
Specs softmax_backward_data(const Args& args);

// sort.cpp
Specs histogramdd(const Args& args);
Specs kthvalue(const Args& args);
Specs mode(const Args& args);
Specs median(const Args& args);
Specs searchsorted(const Args& args);
Specs rows_of(const Args& args);
Specs sort(const Args& args);
Specs topk(const Args& args);

// sparse.cpp
Specs csr_mm(const Args& args);

// upsample.cpp
Specs upsample(const Args& args);
Specs upsample_backward(const Args& args);

// vision.cpp
Specs deform_conv2d(const Args& args);
Specs deform_conv2d_backward(const Args& args);
Specs nms(const Args& args);
Specs ps_roi(const Args& args);
Specs ps_roi_backward(const Args& args);
Specs roi_align(const Args& args);
Specs roi_backward(const Args& args);
Specs roi_pool(const Args& args);

}  // namespace ocltensor::infer
