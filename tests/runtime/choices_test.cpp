// Every family of operators chooses by a list: what ran is one of it, and the printed line says of
// each of the others why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <set>

namespace ot = ocltensor;
namespace switches = ocltensor::backends;
using testing::HasSubstr;

namespace {

ot::Tensor ramp(std::initializer_list<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7919) % 101) / 101);
  return ot::tensor(values, sizes).to(ot::Device("ocl"));
}
ot::Tensor rows() { return ramp({6, 5000}); }
auto layer_norm() {
  return ot::native_layer_norm(rows(), {5000}, std::nullopt, std::nullopt, 1e-5);
}
auto batch_norm(const ot::Tensor& x) {
  return ot::native_batch_norm(x, std::nullopt, std::nullopt, std::nullopt, std::nullopt, true, 0.1,
                               1e-5);
}
ot::Tensor numbers(const std::vector<int64_t>& values) {
  const auto count = static_cast<int64_t>(values.size());
  return ot::tensor(values, {count}).to(ot::Device("ocl"));
}

struct Row {
  const char* family;
  void (*run)();
  const char* cpu;                   // what runs on devices of CPU style
  const char* gpu;                   // and of GPU style
  const char* cpu_reason = nullptr;  // why another one did not, as it is printed there
  const char* gpu_reason = nullptr;
};

constexpr const char* kManyItems = "the device wants many small work-items";
constexpr const char* kFewItems = "the device wants few large work-items";

const Row kRows[] = {
    {"accumulate",
     [] {
       (void)ot::index_add(ramp({4, 3}), 0, numbers({1, 1}), ramp({2, 3}));
     },
     "accumulate.sequence", "accumulate.sequence",
     "not accumulate.runs_gpu: ", "there are too few to be worth sorting"},
    {"cat",
     [] {
       (void)ot::cat({ramp({3, 5}), ramp({3, 4})}, 1);
     },
     "cat.copies", "cat.lines", "tensors are fewer than 4", "tensors are fewer than 4"},
    {"copy",
     [] {
       (void)ot::flip(ramp({5, 7}), {1});
     },
     "copy.elementwise", "copy.elementwise", "no two long dimensions are swapped",
     "memory has gaps or another order"},
    {"deform",
     [] {
       (void)ot::torchvision::deform_conv2d(ramp({1, 2, 5, 5}), ramp({3, 2, 3, 3}),
                                            ramp({1, 18, 3, 3}), ramp({1, 9, 3, 3}), ramp({3}), 1,
                                            1, 0, 0, 1, 1, 1, 1, true);
     },
     "deform.columns", "deform.columns"},
    {"deform_backward",
     [] {
       (void)ot::torchvision::_deform_conv2d_backward(
           ramp({1, 3, 3, 3}), ramp({1, 2, 5, 5}), ramp({3, 2, 3, 3}), ramp({1, 18, 3, 3}),
           ramp({1, 9, 3, 3}), ramp({3}), 1, 1, 0, 0, 1, 1, 1, 1, true);
     },
     "deform_backward.channels", "deform_backward.places", kFewItems, kManyItems},
    {"distance",
     [] {
       (void)ot::_pdist_forward(ramp({4, 3}));
     },
     "distance.pdist", "distance.pdist"},
    {"gru",
     [] {
       (void)ot::_thnn_fused_gru_cell(ramp({2, 15}), ramp({2, 15}), ramp({2, 5}));
     },
     "gru.elements", "gru.elements"},
    {"index_move",
     [] {
       (void)ot::index_select(ramp({4, 3}), 0, numbers({1, 3}));
     },
     "index_move.rows", "index_move.elements", kFewItems,
     "lines do not start and end at multiples of 16 bytes"},
    {"loss", [] { (void)ot::mse_loss(ramp({9}), ramp({9})); }, "loss.reduction", "loss.reduction",
     "losses are reduced", "losses are reduced"},
    {"lstm",
     [] {
       (void)ot::_thnn_fused_lstm_cell(ramp({2, 20}), ramp({2, 20}), ramp({2, 5}));
     },
     "lstm.elements", "lstm.elements"},
    {"nms",
     [] {
       (void)ot::torchvision::nms(ramp({9, 4}), ramp({9}), 0.5);
     },
     "nms.rows", "nms.masks", kFewItems, kManyItems},
    {"pointwise", [] { (void)ot::add(ramp({9}), 1); }, "pointwise.rows", "pointwise.elements",
     "numbers are real", "numbers are real"},
    {"pool_average",
     [] {
       (void)ot::avg_pool2d(ramp({1, 8, 8}), {2, 2});
     },
     "pool_average.windows", "pool_average.windows", "it is for gradients", kManyItems},
    {"pool_max",
     [] {
       (void)ot::max_pool2d_with_indices(ramp({1, 8, 8}), {2, 2});
     },
     "pool_max.rows", "pool_max.windows", "another was preferred", kManyItems},
    {"random", [] { (void)ot::uniform(ramp({9})); }, "random.philox", "random.philox"},
    {"resample",
     [] {
       (void)ot::upsample_linear1d(ramp({1, 2, 8}), {16}, false);
     },
     "resample.dimensions", "resample.dimensions"},
    {"roi",
     [] {
       (void)ot::torchvision::roi_align(ramp({1, 2, 5, 5}), ramp({2, 5}), 1, 2, 2, 2, false);
     },
     "roi.bins", "roi.bins"},
    {"roi_backward",
     [] {
       (void)ot::torchvision::_roi_align_backward(ramp({2, 2, 2, 2}), ramp({2, 5}), 1, 2, 2, 1, 2,
                                                  5, 5, 2, false);
     },
     "roi_backward.channels", "roi_backward.elements", kFewItems, kManyItems},
    {"sampling",
     [] {
       (void)ot::grid_sampler_2d(ramp({1, 2, 4, 4}), ramp({1, 3, 3, 2}),
                                 ot::Interpolation::Bilinear, ot::Padding::Zeros, false);
     },
     "sampling.points", "sampling.points"},
    {"selection", [] { (void)ot::nonzero(ramp({9})); }, "selection.chunks", "selection.chunks"},
    {"upsample",
     [] {
       (void)ot::upsample_nearest2d(ramp({1, 2, 4, 4}), {8, 8});
     },
     "upsample.rows", "upsample.nearest", "another was preferred", kManyItems},
    {"arg", [] { (void)ot::argmax(rows(), 1); }, "arg.cpu", "arg.gpu"},
    {"layer_norm", [] { (void)layer_norm(); }, "layer_norm.cpu", "layer_norm.gpu"},
    {"layer_norm_backward",
     [] {
       const auto [out, mean, scale] = layer_norm();
       (void)ot::native_layer_norm_backward(out, rows(), {5000}, mean, scale, std::nullopt,
                                            std::nullopt, {true, false, false});
     },
     "layer_norm_backward.cpu", "layer_norm_backward.gpu"},
    {"eig",
     [] {
       (void)ot::linalg_eigvals(ramp({3, 3}));
     },
     "eig.qr", "eig.qr", kFewItems, "one work-group is faster for so few rows"},
    {"eigh",
     [] {
       (void)ot::_linalg_eigh(ramp({3, 3}));
     },
     "eigh.jacobi", "eigh.small"},
    {"lu",
     [] {
       (void)ot::linalg_lu_factor_ex(ramp({3, 3}));
     },
     "lu.panels", "lu.panels"},
    {"linalg",
     [] {
       (void)ot::linalg_inv_ex(ramp({3, 3}));
     },
     "linalg.cpu", "linalg.gpu"},
    {"matmul_grouped",
     [] {
       (void)ot::_ocl_grouped_mm(ramp({8, 4}), ramp({2, 4, 8}),
                                 numbers({3, 8}).to(ot::DType::Int32));
     },
     "matmul_grouped.in_place", "matmul_grouped.tiles", kFewItems, kManyItems},
    {"order_statistic", [] { (void)ot::kthvalue(rows(), 3); }, "order_statistic.selected",
     "order_statistic.selected"},
    {"plane_norm",
     [] {
       (void)batch_norm(ramp({2, 1024, 8, 8}));
     },
     "plane_norm.cpu", "plane_norm.gpu"},
    {"plane_norm_backward",
     [] {
       const ot::Tensor x = ramp({2, 1024, 8, 8});
       const auto [out, mean, scale] = batch_norm(x);
       (void)ot::native_batch_norm_backward(out, x, std::nullopt, std::nullopt, std::nullopt, mean,
                                            scale, true, 1e-5, {true, false, false});
     },
     "plane_norm_backward.cpu", "plane_norm_backward.gpu"},
    {"quantised",
     [] {
       (void)ot::_ocl_quantised_mm(ramp({2, 32}), ramp({3, 32}).to(ot::DType::Int8), ramp({3, 1}),
                                   std::nullopt, std::nullopt, "int8", 3);
     },
     "quantised.decode_rows", "quantised.decode_teams"},
    {"reduce", [] { (void)ot::sum(rows(), {1}); }, "reduce.rows", "reduce.gpu"},
    {"scan", [] { (void)ot::cumsum(rows(), 1); }, "scan.blocks", "scan.tiles"},
    {"scan_extremes", [] { (void)ot::cummax(rows(), 1); }, "scan_extremes.walk",
     "scan_extremes.tiles"},
    {"scan_products", [] { (void)ot::cumprod(rows(), 1); }, "scan_products.running",
     "scan_products.tiles"},
    {"search", [] { (void)ot::searchsorted(rows(), rows()); }, "search.binary", "search.binary"},
    {"svd",
     [] {
       (void)ot::_linalg_svd(ramp({3, 3}));
     },
     "svd.jacobi", "svd.jacobi"},
    {"softmax",
     [] {
       (void)ot::_softmax(ramp({4000, 50}), 1, false);
     },
     "softmax.cpu", "softmax.gpu"},
    {"sort", [] { (void)ot::topk(rows(), 3); }, "sort.select", "sort.radix_select"},
    {"sparse",
     [] {
       (void)ot::_ocl_csr_mm(ramp({3}), numbers({0, 2, 3}), numbers({1, 0, 1}), ramp({2, 5}),
                             "sum");
     },
     "sparse.csr_rows", "sparse.csr_elements", "the numbers are not complex",
     "the numbers are not complex"},
    {"variance", [] { (void)ot::var(rows(), {0}, 1); }, "variance.two_sweeps",
     "variance.two_sweeps"},
};

// Families whose operators have tests of their choices beside their other tests.
const std::set<std::string> kElsewhere = {"attention_backward",
                                          "attention_forward",
                                          "attention_weights",
                                          "conv",
                                          "ctc_loss",
                                          "fft",
                                          "histogram",
                                          "index_put",
                                          "matmul",
                                          "multi_tensor",
                                          "multilabel_margin_loss",
                                          "nll_loss",
                                          "pool_fractional",
                                          "pool_max_backward",
                                          "sampling_backward"};

// By an operator of a family that is not in the table.
bool is_gpu_style() {
  const ot::Tensor image = ramp({1, 1, 4, 4});
  (void)ot::grid_sampler_2d_backward(ramp({1, 1, 3, 3}), image, ramp({1, 3, 3, 2}),
                                     ot::Interpolation::Bilinear, ot::Padding::Zeros, false,
                                     {true, false});
  return switches::last_choice("sampling_backward") == "sampling_backward.places";
}

TEST(Choices, SayWhatRanAndWhyNotTheOthers) {
  const bool gpu = is_gpu_style();
  const switches::SettingScope by_rule{{"OCLTENSOR_KEEP_MEASUREMENTS", "0"}};
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.family);
    testing::internal::CaptureStderr();
    {
      const auto scope = switches::verbose(1);
      row.run();
    }
    const std::string text = testing::internal::GetCapturedStderr();
    const std::string chosen = gpu ? row.gpu : row.cpu;
    EXPECT_EQ(switches::last_choice(row.family), chosen);
    const char* reason = gpu ? row.gpu_reason : row.cpu_reason;
    if (reason != nullptr) {
      EXPECT_THAT(text, HasSubstr(reason));
    }
    for (const switches::Algorithm& a : switches::algorithms()) {
      if (a.family != row.family) continue;
      const bool ran = a.id == chosen;
      EXPECT_EQ(a.last, ran) << a.id;
      EXPECT_THAT(text, HasSubstr(ran ? a.id + " (by rule)" : "not " + a.id + ": "));
      EXPECT_TRUE(!ran || a.runs > 0) << a.id;
    }
  }
}

TEST(Choices, OfEveryFamilyAreTested) {
  (void)ramp({1});  // loads the plugin, whose families these are
  std::set<std::string> tested = kElsewhere;
  for (const Row& row : kRows) EXPECT_TRUE(tested.insert(row.family).second) << row.family;
  std::set<std::string> families;
  for (const switches::Algorithm& a : switches::algorithms()) families.insert(a.family);
  EXPECT_EQ(families, tested);
}

}  // namespace
