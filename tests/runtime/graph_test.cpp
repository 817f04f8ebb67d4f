// Graphs through the C++ host: replays, random numbers, failures, what they keep alive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <optional>

namespace ot = ocltensor;
using testing::Each;
using testing::HasSubstr;

namespace {

const ot::Options kFloats{ot::DType::Float32, "ocl"};

TEST(Graphs, ReplaysComputeWithNewValues) {
  ot::Tensor x = ot::ones({4, 5}, kFloats), w = ot::ones({5, 3}, kFloats), y;
  const auto work = [&] { y = ot::relu(ot::add(ot::mm(x, w), -1.0)); };
  work();
  const ot::Graph graph = ot::Graph::record("ocl", work);
  EXPECT_GE(graph.info().launches, 2u);
  for (const double value : {2.0, 3.0}) {
    ot::fill_out(x, x, value);
    graph.replay();
    EXPECT_THAT(y.to_vector<float>(), Each(static_cast<float>(5 * value - 1)));
  }
  const ot::Stream other = ot::Stream::create("ocl");
  ot::fill_out(x, x, 4.0);
  ot::synchronize("ocl");
  graph.replay(other);
  other.synchronize();
  EXPECT_THAT(y.to_vector<float>(), Each(19.0f));
}

TEST(Graphs, RandomNumbersContinue) {
  const ot::Generator generator("ocl", 7);
  const std::array generators{generator};
  ot::Tensor x = ot::empty({100}, kFloats), y = ot::empty({100}, kFloats);
  const auto work = [&] {
    ot::uniform_(x, 0, 1, generator);
    ot::normal_(y, 0, 1);
  };
  work();
  const ot::GraphPool pool("ocl");
  const ot::Graph graph = ot::Graph::record(pool, work, generators);
  EXPECT_EQ(graph.info().random_blocks, 50u);
  std::vector<std::vector<float>> wanted, got;
  generator.set_seed(3);
  ot::manual_seed(4);
  for (int i = 0; i < 3; ++i) {
    work();
    wanted.push_back(x.to_vector<float>());
    wanted.push_back(y.to_vector<float>());
  }
  generator.set_seed(3);
  ot::manual_seed(4);
  for (int i = 0; i < 3; ++i) {
    graph.replay();
    got.push_back(x.to_vector<float>());
    got.push_back(y.to_vector<float>());
  }
  EXPECT_EQ(got, wanted);
}

TEST(Graphs, WhatNeedsTheHostFailsTheRecording) {
  const ot::Tensor x = ot::ones({4}, kFloats);
  (void)ot::nonzero(x);
  try {
    (void)ot::Graph::record("ocl", [&] { (void)ot::nonzero(x); });
    FAIL() << "a recording that reads results succeeded";
  } catch (const ot::Error& error) {
    EXPECT_EQ(error.status(), TB_E_STATE);
    EXPECT_THAT(error.what(), HasSubstr("reading results on the host"));
  }
  EXPECT_THROW((void)ot::Graph::record("ocl",
                                       [&] {
                                         try {
                                           (void)x.to_vector<float>();
                                         } catch (const ot::Error&) {
                                         }
                                       }),
               ot::Error);
  EXPECT_EQ(ot::sum(x).item<float>(), 4.0f);
}

TEST(Graphs, AWrongValueIsThrownAfterItsReplay) {
  const ot::Tensor x = ot::ones({4, 3}, kFloats);
  ot::Tensor index = ot::tensor<int64_t>({0, 1}, "ocl"), rows;
  const auto work = [&] { rows = ot::index_select(x, 0, index); };
  work();
  const ot::Graph graph = ot::Graph::record("ocl", work);
  graph.replay();
  ot::synchronize("ocl");
  ot::fill_out(index, index, 9);
  graph.replay();
  EXPECT_THROW(ot::synchronize("ocl"), ot::Error);
  ot::synchronize("ocl");
}

TEST(Graphs, MemoryComesBack) {
  ot::synchronize("ocl");
  const uint64_t before = ot::current_allocated_memory();
  {
    const ot::Tensor x = ot::ones({256, 256}, kFloats);
    std::optional<ot::Tensor> y;
    const auto work = [&] { y = ot::add(ot::mul(x, 2.0), x); };
    work();
    std::optional<ot::Graph> graph = ot::Graph::record("ocl", work);
    graph->replay();
    graph.reset();
    EXPECT_THAT(y->to_vector<float>(), Each(3.0f));
  }
  ot::synchronize("ocl");
  EXPECT_EQ(ot::current_allocated_memory(), before);
}

TEST(Graphs, TheCpuHasNone) {
  EXPECT_THROW((void)ot::Graph::record("cpu", [] {}), ot::Error);
}

}  // namespace
