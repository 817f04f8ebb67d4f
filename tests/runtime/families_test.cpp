// Every family's list of algorithms: what ran, and the printed reasons against the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <functional>

namespace ot = ocltensor;
namespace switches = ocltensor::backends;
using testing::HasSubstr;

namespace {

ot::Tensor ramp(std::initializer_list<int64_t> sizes, float step) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(step * static_cast<float>((i * 7919) % 101 - 50));
  return ot::tensor(values, sizes).to(ot::Device("ocl"));
}

std::string printed(const std::function<void()>& body) {
  testing::internal::CaptureStderr();
  const auto scope = switches::verbose(1);
  body();
  return testing::internal::GetCapturedStderr();
}

// Every family that was given a list: what ran is of it, and the printed line says of each of the
// others why not.
TEST(Families, SayWhatRanAndWhyNotTheOthers) {
  const ot::Tensor x = ramp({2, 3, 40, 8}, 0.1f), rows = ramp({6, 5000}, 0.01f);
  const ot::Tensor eye = ot::add(ot::zeros({3, 3}, ot::DType::Float32, "ocl"), 1);
  const auto layer = [&] {
    return ot::native_layer_norm(rows, {5000}, std::nullopt, std::nullopt, 1e-5);
  };
  const auto batch = [&] {
    return ot::native_batch_norm(x, std::nullopt, std::nullopt, std::nullopt, std::nullopt, true,
                                 0.1, 1e-5);
  };
  const std::pair<const char*, std::function<void()>> kFamilies[] = {
      {"softmax", [&] { (void)ot::_softmax(rows, 1, false); }},
      {"layer_norm", [&] { (void)layer(); }},
      {"layer_norm_backward",
       [&] {
         const auto [out, mean, scale] = layer();
         (void)ot::native_layer_norm_backward(out, rows, {5000}, mean, scale, std::nullopt,
                                              std::nullopt, {true, false, false});
       }},
      {"plane_norm", [&] { (void)batch(); }},
      {"plane_norm_backward",
       [&] {
         const auto [out, mean, scale] = batch();
         (void)ot::native_batch_norm_backward(out, x, std::nullopt, std::nullopt, std::nullopt,
                                              mean, scale, true, 1e-5, {true, false, false});
       }},
      {"reduce", [&] { (void)ot::sum(rows, {1}); }},
      {"arg", [&] { (void)ot::argmax(rows, 1); }},
      {"variance", [&] { (void)ot::var(rows, {0}, 1); }},
      {"scan", [&] { (void)ot::cumsum(rows, 1); }},
      {"scan_products", [&] { (void)ot::cumprod(rows, 1); }},
      {"scan_extremes", [&] { (void)ot::cummax(rows, 1); }},
      {"sort", [&] { (void)ot::topk(rows, 3); }},
      {"order_statistic", [&] { (void)ot::kthvalue(rows, 3); }},
      {"search", [&] { (void)ot::searchsorted(rows, rows); }},
      {"linalg", [&] { (void)ot::linalg_cholesky_ex(eye); }}};
  for (const auto& [family, run] : kFamilies) {
    const std::string text = printed(run);
    const std::string chosen = switches::last_choice(family);
    int ids = 0;
    for (const switches::Algorithm& each : switches::algorithms()) {
      if (each.family != family) continue;
      ++ids;
      EXPECT_EQ(each.last, each.id == chosen) << each.id;
      EXPECT_THAT(text, HasSubstr(each.last ? each.id + " (by rule)" : "not " + each.id + ": "));
    }
    EXPECT_GT(ids, 0) << family;
  }
}

}  // namespace
