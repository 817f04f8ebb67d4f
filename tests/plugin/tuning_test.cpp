// Tuning: what is faster and right is taken and kept; what is wrong, or not clearly faster, is not.
// With a family of operators whose algorithms sleep for as long as the test wants.
#include "call/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "any_call.h"
#include "base/config.h"
#include "call/measurement_file.h"
#include "call/shipped_measurements.h"

namespace ocltensor::opencl {
namespace {

using testing::HasSubstr;

// What the test's algorithms write: numbers that the problem determines.
struct ToyProblem {
  int64_t number;  // the class
  tb_address out = 0;
  bool constant = false;
};
constexpr int64_t kCount = 64;

enum Fault : int64_t { None, WrongNumber, Missing, Refusal };
struct ToyPlan {
  int64_t milliseconds;
  int64_t fault;
};

int stop_after = 0;  // runs until stop_tuning(); 0: never
int runs = 0;

void run_toy(const OpCall& call, const ToyProblem& p, const ToyPlan& plan) {
  if (++runs == stop_after) stop_tuning();
  if (plan.fault == Refusal) fail(TB_E_STATE, "the toy is broken");
  std::this_thread::sleep_for(std::chrono::milliseconds(plan.milliseconds));
  std::vector<float> numbers;
  for (int64_t i = 0; i < kCount; ++i)
    numbers.push_back(p.constant ? 1 : static_cast<float>(i + p.number));
  if (plan.fault == WrongNumber) numbers[kCount - 3] += 1;
  const int64_t written = plan.fault == Missing ? kCount / 2 : kCount;
  const Place place = resolve(p.out, 0, kCount * 4);
  call.stream().write(place.buffer, place.offset, numbers.data(),
                      static_cast<uint64_t>(written) * 4, false);
}

Planned<ToyPlan> plan_rule(const OpCall&, const ToyProblem&) { return ToyPlan{12, None}; }
Planned<ToyPlan> plan_sizes(const OpCall&, const ToyProblem&, const Configuration& c) {
  if (c.empty()) return "its sizes come from measuring";
  if (c.size() != 2 || c[0] < 0 || c[0] > 20 || c[1] < 0 || c[1] > Refusal) return "no such sizes";
  return ToyPlan{c[0], c[1]};
}
Configurations sizes;  // what is worth measuring, as the test has it
Configurations space(const OpCall&, const ToyProblem&) { return sizes; }

constinit const AlgorithmFor<ToyProblem> kRule({.id = "toy.rule", .description = "the rule's"},
                                               Steps<plan_rule, run_toy>());
constinit const AlgorithmFor<ToyProblem> kSizes({.id = "toy.sizes",
                                                 .description = "with sizes",
                                                 .parameters = {"milliseconds", "fault"}},
                                                Steps<plan_sizes, run_toy, space>());

struct ToyTraits {
  static std::string describe(const OpCall&, const ToyProblem& p) {
    return fmt::format("toy {}", p.number);
  }
  static std::string notes(const OpCall&, const ToyProblem&) { return {}; }
  static ShapeClass shape_class(const OpCall&, const ToyProblem& p) { return {p.number}; }
  static std::string shape_text(const ShapeClass& s) { return fmt::format("class {}", s[0]); }
  static Scratch redirect(const OpCall& call, ToyProblem& p) {
    Scratch memory = call.scratch(kCount * 4);
    p.out = memory.address();
    return memory;
  }
  static std::vector<ResultPart> results(const OpCall&, const ToyProblem&) {
    return {{0, kCount, DType::Float32, 1}};
  }
};
using Toys = AlgorithmList<ToyProblem, ToyTraits>;
Toys& toys() {
  static Toys& list = *new Toys("toy", {}, {&kRule, &kSizes});  // leaked, as all lists are
  return list;
}

Choice with(int64_t milliseconds, int64_t fault = None) { return {&kSizes, {milliseconds, fault}}; }

class Tune : public testing::Test {
 protected:
  // A process of its own under ctest; the cache folder is asked for once in each.
  static void SetUpTestSuite() {
    setenv("OCLTENSOR_CACHE_DIR",
           (testing::TempDir() + "tuning-" + std::to_string(getpid())).c_str(), 1);
  }
  void SetUp() override {
    config::set(config::Knob::Tune, "full");
    start_tuning();
    stop_after = runs = 0;
  }
  void TearDown() override {
    config::reset();
    start_tuning();
  }
  // Meets a problem; returns what is known of its class then.
  std::optional<Measurement> meet(int64_t number, bool constant = false) {
    const AnyCall call;
    const Scratch out((*call).stream(), kCount * 4);
    toys().run(*call, {number, out.address(), constant});
    return measurement_of(device(0), toys().family(), {number}, true);
  }
  static double time_of(const Measurement& m, const Choice& choice) {
    for (const Timed& t : m.times)
      if (t.choice == choice) return t.microseconds;
    return 0;
  }
};

TEST_F(Tune, TheFastestConfigurationIsTakenAndKept) {
  sizes = {{4, None}, {1, None}, {9, None}};
  const auto known = meet(1);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->best, with(1));
  EXPECT_EQ(known->times.size(), 4u);
  EXPECT_EQ(toys().family().last(), &kSizes);  // and ran
  const auto classes = tuned_classes();
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].rule, "toy.rule");
  EXPECT_EQ(classes[0].best, "toy.sizes/milliseconds:1/fault:0");
  EXPECT_TRUE(classes[0].complete);
  EXPECT_LT(classes[0].best_time, classes[0].rule_time);
  // Later calls choose by it, without measuring; not where they must be deterministic.
  config::set(config::Knob::Tune, "");
  runs = 0;
  (void)meet(1);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(toys().family().last(), &kSizes);
  config::set(config::Knob::Deterministic, "1");
  (void)meet(1);
  EXPECT_EQ(toys().family().last(), &kRule);
}

TEST_F(Tune, ALaterProcessReadsIt) {
  sizes = {{1, None}};
  (void)meet(2);
  const std::string path = measurement_path(device(0));
  if (!path.starts_with(testing::TempDir())) GTEST_SKIP() << "the cache folder was in use before";
  const measurement_file::Lines lines = measurement_file::read(path);
  ASSERT_TRUE(lines.contains({"toy", "2"}));
  EXPECT_EQ(lines.at({"toy", "2"}).best, "toy.sizes/milliseconds:1/fault:0");
  forget_measurements();
  measurement_file::write(path, lines);
  config::set(config::Knob::Tune, "");
  runs = 0;
  EXPECT_EQ(meet(2)->best, with(1));
  EXPECT_EQ(runs, 1);
}

TEST_F(Tune, WhatIsWrongIsNeverTaken) {
  sizes = {{0, WrongNumber}, {0, Missing}, {0, Refusal}, {3, None}};
  const auto known = meet(3);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->best, with(3));
  for (const int64_t fault : {WrongNumber, Missing, Refusal})
    EXPECT_TRUE(std::isinf(time_of(*known, with(0, fault)))) << fault;
  EXPECT_EQ(tuned_classes().at(0).wrong, 3u);
}

TEST_F(Tune, TheRulesChoiceStaysUnlessAnotherIsClearlyFaster) {
  sizes = {{12, None}, {14, None}};
  const auto known = meet(4);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->best, (Choice{&kRule, {}}));
}

TEST_F(Tune, ResultsThatAreAllTheSameShowNothing) {
  sizes = {{0, WrongNumber}, {1, None}};
  EXPECT_FALSE(meet(5, true));
  EXPECT_TRUE(tuned_classes().empty());
}

TEST_F(Tune, WhatIsStoppedGoesOnLater) {
  sizes = {{8, None}, {7, None}, {1, None}};
  stop_after = 12;
  const auto first = meet(6);
  ASSERT_TRUE(first);
  EXPECT_LT(first->times.size(), 4u);
  EXPECT_EQ(first->best, (Choice{&kRule, {}}));
  EXPECT_FALSE(tuned_classes().at(0).complete);
  start_tuning();
  stop_after = 0;
  const auto second = meet(6);
  EXPECT_EQ(second->best, with(1));
  for (const Timed& before : first->times) {  // not measured again, but for the rule's
    if (before.choice.algorithm == &kRule) continue;
    EXPECT_EQ(time_of(*second, before.choice), before.microseconds);
  }
  EXPECT_TRUE(tuned_classes().at(0).complete);
  runs = 0;
  (void)meet(6);  // nothing is missing
  EXPECT_EQ(runs, 1);
}

TEST_F(Tune, QuicklyFewConfigurationsAreTried) {
  sizes.assign(20, Configuration{5, None});
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = {static_cast<int64_t>(i), None};
  config::set(config::Knob::Tune, "quick");
  EXPECT_LT(meet(7)->times.size(), 10u);
}

TEST_F(Tune, ShapesAreRecordedWithoutMeasuring) {
  sizes = {{1, None}};
  config::set(config::Knob::Tune, "record");
  (void)meet(8);
  (void)meet(9);
  (void)meet(8);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(tuning_progress().untuned, 2u);
}

TEST_F(Tune, ExportedMeasurementsServeWhereNothingIsMeasured) {
  config::set(config::Knob::Tune, "");
  const Capabilities& caps = device(0).caps();
  const measurement_file::Lines lines{
      {{"toy", "10"}, {text_of(with(1)), {{"toy.rule", 6000}, {text_of(with(1)), 1000}}, "class"}}};
  const std::string path = testing::TempDir() + "tuned-" + std::to_string(getpid()) + ".tsv";
  std::ofstream(path) << shipped_measurements::export_text(caps, lines);
  config::set(config::Knob::TunedFiles, path);
  forget_measurements();                       // reads the files anew
  EXPECT_FALSE(meet(10));                      // nothing was measured here,
  EXPECT_EQ(toys().family().last(), &kSizes);  // but the file counts,
  EXPECT_EQ(find_measured(device(0), toys().family(), {10}, true, true), with(1));
  sizes = {{3, None}};
  config::set(config::Knob::Tune, "full");
  EXPECT_EQ(meet(10)->best, with(3));  // until it is measured
  std::filesystem::remove(path);
}

TEST(ShippedMeasurements, AreForDevicesOfTheSameNameWithNoLess) {
  Capabilities caps;
  caps.name = "Toy 3000";
  caps.vendor = "Toys";
  caps.max_work_group_size = 256;
  caps.local_memory = 32768;
  const std::string text = shipped_measurements::export_text(caps, {});
  EXPECT_EQ(shipped_measurements::refusal(text, caps), "");
  Capabilities newer = caps;
  newer.driver_version = "2.0";
  newer.local_memory = 65536;
  EXPECT_EQ(shipped_measurements::refusal(text, newer), "");
  Capabilities other = caps;
  other.name = "Toy 4000";
  EXPECT_THAT(shipped_measurements::refusal(text, other),
              HasSubstr("'Toy 3000'; here it is 'Toy 4000'"));
  Capabilities less = caps;
  less.local_memory = 16384;
  EXPECT_THAT(shipped_measurements::refusal(text, less), HasSubstr("local_memory"));
  EXPECT_THAT(shipped_measurements::refusal("ocltensor tuned 2\n" + text, caps),
              HasSubstr("of another version"));
  EXPECT_THAT(shipped_measurements::refusal("", caps), HasSubstr("damaged"));
}

TEST(Choices, AsTextAndBack) {
  const auto of = [](const char* text) { return choice_of(toys().family().algorithms(), text); };
  for (const Choice& choice : {with(4, 2), Choice{&kRule, {}}, with(-3, 0)})
    EXPECT_EQ(of(text_of(choice).c_str()), choice);
  for (const char* bad :
       {"", "toy", "toy.none", "toy.rule/fault:1", "toy.sizes/milliseconds:1",
        "toy.sizes/fault:1/milliseconds:1", "toy.sizes/milliseconds:1/fault:1/more:1",
        "toy.sizes/milliseconds:/fault:1", "toy.sizes/milliseconds:1x/fault:1",
        "toy.sizes/milliseconds:99999/fault:1"})
    EXPECT_FALSE(of(bad)) << bad;
}

}  // namespace
}  // namespace ocltensor::opencl
