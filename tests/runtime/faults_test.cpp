// Wrong values that only the device sees, in the C++ host: the next wait throws, once.
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

namespace ot = ocltensor;

namespace {

// The error of `body`; a status of 0 where there is none.
template <typename Body>
std::pair<int, std::string> error_of(Body&& body) {
  try {
    body();
    return {TB_OK, ""};
  } catch (const ot::Error& error) {
    return {error.status(), error.what()};
  }
}

TEST(Faults, AnIndexOutOfRangeIsThrownByTheNextWait) {
  const ot::Device device("ocl");
  const ot::Tensor x = ot::ones({4, 3}, {ot::DType::Float32, device});
  const ot::Tensor index = ot::tensor<int64_t>({0, 4}, device);
  ot::Tensor rows;
  const auto [enqueued, nothing] = error_of([&] { rows = ot::index_select(x, 0, index); });
  EXPECT_EQ(enqueued, TB_OK) << nothing;
  const auto [status, text] = error_of([&] { ot::synchronize(device); });
  EXPECT_EQ(status, TB_E_INDEX) << text;
  EXPECT_NE(text.find("index_select.out: index 4 is out of range for dimension 0 of size 4"),
            std::string::npos)
      << text;
  EXPECT_EQ(error_of([&] { ot::synchronize(device); }).first, TB_OK);
  EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{1, 1, 1, 0, 0, 0}));
}

TEST(Faults, LabelsAndOffsetsOutOfRange) {
  const ot::Device device("ocl");
  const ot::Tensor probs = ot::log_softmax(ot::ones({5, 1, 4}, {ot::DType::Float32, device}), 2);
  const ot::Tensor labels = ot::tensor<int64_t>({1, 9}, device);
  const auto [status, text] = error_of([&] {
    (void)ot::_ctc_loss(probs, labels, {5}, {2});
    ot::synchronize(device);
  });
  EXPECT_EQ(status, TB_E_INDEX);
  EXPECT_NE(text.find("target 9 is out of range: there are 4 classes"), std::string::npos) << text;
  const auto offsets = error_of([&] {
    (void)ot::_ocl_rows_of(ot::tensor<int64_t>({0, 3, 2}, device), 4);
    ot::synchronize(device);
  });
  EXPECT_EQ(offsets.first, TB_E_INDEX);
  EXPECT_NE(offsets.second.find("offsets descend: 2 follows 3"), std::string::npos)
      << offsets.second;
}

TEST(Faults, ReadingAResultThrowsToo) {
  const ot::Device device("ocl");
  const ot::Tensor a = ot::tensor<int64_t>({6, 7}, device), b = ot::tensor<int64_t>({3, 0}, device);
  const ot::Tensor quotient = ot::floor_divide(a, b);
  const auto [status, text] = error_of([&] { (void)quotient.to_vector<int64_t>(); });
  EXPECT_EQ(status, TB_E_INVALID);
  EXPECT_NE(text.find("ZeroDivisionError"), std::string::npos) << text;
}

TEST(Faults, ASettingSwitchesThemOff) {
  const ot::Device device("ocl");
  const ot::Tensor x = ot::ones({4}, {ot::DType::Float32, device});
  const ot::Tensor index = ot::tensor<int64_t>({-1}, device);
  ot::set_setting("OCLTENSOR_CHECK_VALUES", "0");
  const auto off = error_of([&] { (void)ot::gather(x, 0, index).to_vector<float>(); });
  ot::set_setting("OCLTENSOR_CHECK_VALUES", "1");
  EXPECT_EQ(off.first, TB_OK) << off.second;
  EXPECT_EQ(error_of([&] { (void)ot::gather(x, 0, index).to_vector<float>(); }).first, TB_E_INDEX);
}

TEST(Faults, NumbersThatATypeDoesNotHoldAreRefused) {
  const ot::Tensor x = ot::ones({2}, {ot::DType::Float32, ot::Device("ocl")});
  EXPECT_EQ(error_of([&] { x.fill_(1e300); }).first, TB_E_INVALID);
  EXPECT_EQ(error_of([&] { x.fill_(std::numeric_limits<double>::infinity()); }).first, TB_OK);
}

}  // namespace
