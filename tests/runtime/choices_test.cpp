// Every family of operators chooses by a list: what ran is one of it, and the printed line says why
// the others did not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

namespace ot = ocltensor;
namespace switches = ocltensor::backends;
using testing::HasSubstr;
using testing::Not;

namespace {

ot::Tensor ramp(std::initializer_list<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7919) % 101) / 101);
  return ot::tensor(values, sizes).to(ot::Device("ocl"));
}
ot::Tensor numbers(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return ot::tensor(values, {count}).to(ot::Device("ocl"));
}

struct Row {
  const char* family;
  void (*run)();
  const char* cpu;         // what runs on devices of CPU style
  const char* gpu;         // and of GPU style
  const char* cpu_reason;  // why another one did not, printed there
  const char* gpu_reason;
};

constexpr const char* kManyItems = "the device wants many small work-items";
constexpr const char* kFewItems = "the device wants few large work-items";
constexpr const char* kNone = "";  // the list has one algorithm

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
    {"distance",
     [] {
       (void)ot::_pdist_forward(ramp({4, 3}));
     },
     "distance.pdist", "distance.pdist", kNone, kNone},
    {"index_move",
     [] {
       (void)ot::index_select(ramp({4, 3}), 0, numbers({1, 3}));
     },
     "index_move.rows", "index_move.elements", kFewItems,
     "lines do not start and end at multiples of 16 bytes"},
    {"loss", [] { (void)ot::mse_loss(ramp({9}), ramp({9})); }, "loss.reduction", "loss.reduction",
     "losses are reduced", "losses are reduced"},
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
    {"random", [] { (void)ot::uniform(ramp({9})); }, "random.philox", "random.philox", kNone,
     kNone},
    {"resample",
     [] {
       (void)ot::upsample_linear1d(ramp({1, 2, 8}), {16}, false);
     },
     "resample.dimensions", "resample.dimensions", kNone, kNone},
    {"sampling",
     [] {
       (void)ot::grid_sampler_2d(ramp({1, 2, 4, 4}), ramp({1, 3, 3, 2}), 0, 0, false);
     },
     "sampling.points", "sampling.points", kNone, kNone},
    {"selection", [] { (void)ot::nonzero(ramp({9})); }, "selection.chunks", "selection.chunks",
     kNone, kNone},
    {"upsample",
     [] {
       (void)ot::upsample_nearest2d(ramp({1, 2, 4, 4}), {8, 8});
     },
     "upsample.rows", "upsample.planes", "another was preferred", kManyItems},
};

// By an operator of a family that is not in the table.
bool is_gpu_style() {
  const ot::Tensor image = ramp({1, 1, 4, 4});
  (void)ot::grid_sampler_2d_backward(ramp({1, 1, 3, 3}), image, ramp({1, 3, 3, 2}), 0, 0, false,
                                     {true, false});
  return switches::last_choice("sampling_backward") == "sampling_backward.places";
}

TEST(Choices, EveryFamilyHasAListAndGivesReasons) {
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
    EXPECT_THAT(text, HasSubstr(": " + chosen + " (by rule)"));
    const std::string reason = gpu ? row.gpu_reason : row.cpu_reason;
    if (reason.empty())
      EXPECT_THAT(text, Not(HasSubstr("; not " + std::string(row.family) + ".")));
    else
      EXPECT_THAT(text, HasSubstr(reason));
    bool listed = false;
    for (const switches::Algorithm& a : switches::algorithms())
      listed = listed || (a.family == row.family && a.id == chosen && a.runs > 0);
    EXPECT_TRUE(listed);
  }
}

}  // namespace
