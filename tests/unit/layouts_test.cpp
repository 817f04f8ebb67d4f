// The strides that the column `layout` of operators.def gives to results.
#include "base/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace ocltensor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Tensors of shapes and strides, as the leading arguments of an operator; the others are absent.
class Call {
 public:
  Call(const char* name, const std::vector<std::pair<Dims, Dims>>& tensors)
      : op_(*find_operator(name)), values_(op_.schema.inputs.size()) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto& [sizes, strides] = kept_.emplace_back(tensors[i]);
      tb_tensor& t = described_.emplace_back();
      t.struct_size = sizeof t;
      t.dtype = to_abi(DType::Float32);
      t.ndim = static_cast<uint32_t>(sizes.size());
      t.sizes = sizes.data();
      t.strides = strides.data();
      values_[i].tag = TB_TENSOR;
      values_[i].as.p = &t;
    }
  }
  // Of results of these sizes.
  std::vector<std::vector<int64_t>> strides(const std::vector<Dims>& sizes) const {
    std::vector<TensorSpec> outs;
    for (const Dims& s : sizes) outs.push_back({.sizes = s});
    lay_out(op_, Args(op_.schema, values_), outs);
    std::vector<std::vector<int64_t>> found;
    for (const TensorSpec& out : outs) found.emplace_back(out.strides.begin(), out.strides.end());
    return found;
  }

 private:
  const Operator& op_;
  std::vector<tb_value> values_;
  std::deque<std::pair<Dims, Dims>> kept_;
  std::deque<tb_tensor> described_;
};

const std::pair<Dims, Dims> kLast{{2, 3, 4, 5}, {60, 1, 15, 3}},
    kPlain{{2, 3, 4, 5}, {60, 20, 5, 1}};
const Dims kShape{2, 3, 4, 5};

TEST(Layouts, AreContiguousWithoutARule) {
  EXPECT_THAT(Call("_softmax.out", {kLast}).strides({kShape})[0], IsEmpty());
}

TEST(Layouts, OfNormalisationFollowTheInput) {
  EXPECT_THAT(Call("native_batch_norm.out", {kLast}).strides({kShape})[0],
              ElementsAre(60, 1, 15, 3));
  const std::pair<Dims, Dims> turned{{2, 3, 4, 5}, {1, 2, 6, 24}};
  EXPECT_THAT(Call("native_batch_norm.out", {turned}).strides({kShape})[0],
              ElementsAre(1, 2, 6, 24));
  // Of another format than its gradient: the input's.
  EXPECT_THAT(Call("native_batch_norm_backward.out", {kPlain, kLast}).strides({kShape})[0],
              ElementsAre(60, 1, 15, 3));
  EXPECT_THAT(Call("native_batch_norm_backward.out", {kLast, kPlain}).strides({kShape})[0],
              IsEmpty());
  EXPECT_THAT(Call("native_group_norm_backward.out", {kPlain, kLast}).strides({kShape})[0],
              ElementsAre(60, 1, 15, 3));
}

TEST(Layouts, OfConvolutionsFollowInputOrWeight) {
  const Dims shape{2, 6, 4, 5};
  EXPECT_THAT(Call("convolution.out", {kPlain, kPlain}).strides({shape})[0], IsEmpty());
  EXPECT_THAT(Call("convolution.out", {kLast, kPlain}).strides({shape})[0],
              ElementsAre(120, 1, 30, 6));
  EXPECT_THAT(Call("convolution.out", {kPlain, kLast}).strides({shape})[0],
              ElementsAre(120, 1, 30, 6));
  const auto grads =
      Call("convolution_backward.out", {kLast, kPlain, kPlain}).strides({kShape, kShape, {6}});
  EXPECT_THAT(grads, testing::Each(IsEmpty()));
  const auto last =
      Call("convolution_backward.out", {kPlain, kPlain, kLast}).strides({kShape, kShape, {6}});
  EXPECT_THAT(last[1], ElementsAre(60, 1, 15, 3));
  EXPECT_THAT(last[2], IsEmpty());  // the bias's has one dimension
}

// One channel or one pixel, an expanded channel, and nothing at all have no format of their own.
TEST(Layouts, ThatFitBothFormatsAreContiguous) {
  for (const std::pair<Dims, Dims>& input : {std::pair<Dims, Dims>{{2, 1, 4, 5}, {20, 20, 5, 1}},
                                             {{2, 3, 1, 1}, {3, 1, 1, 1}},
                                             {{2, 3, 4, 5}, {20, 0, 5, 1}},
                                             {{2, 0, 4, 5}, {0, 1, 0, 0}}})
    EXPECT_THAT(Call("_adaptive_avg_pool2d.out", {input}).strides({kShape})[0], IsEmpty());
  EXPECT_THAT(Call("_adaptive_avg_pool2d.out", {kLast}).strides({kShape})[0],
              ElementsAre(60, 1, 15, 3));
}

// Heads of [batch, length, heads, size] memory: the result can be joined without a copy.
TEST(Layouts, OfAttentionFollowTheQuery) {
  const std::pair<Dims, Dims> heads{{2, 4, 7, 8}, {224, 8, 32, 1}};
  const auto out =
      Call("_scaled_dot_product_fused_attention_overrideable.out", {heads, heads, heads})
          .strides({{2, 4, 7, 6}, {2, 4, 7}});
  EXPECT_THAT(out[0], ElementsAre(168, 6, 24, 1));
  EXPECT_THAT(out[1], IsEmpty());
}

}  // namespace
}  // namespace ocltensor
