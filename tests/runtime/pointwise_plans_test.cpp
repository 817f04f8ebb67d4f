// Pointwise calls that come again: with the same types, but other sizes, strides, offsets and
// numbers in between, each is computed as its own layout asks. In the default style and (see
// CMakeLists.txt) in that of GPUs.
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <algorithm>
#include <random>

namespace ot = ocltensor;

namespace {

constexpr int64_t kElements = 2048;

struct Layout {
  ot::Dims sizes, strides;
  int64_t offset = 0;
};

ot::Dims dense(const ot::Dims& sizes) { return ot::contiguous_strides(sizes); }
Layout plain(const ot::Dims& sizes, int64_t offset = 0) { return {sizes, dense(sizes), offset}; }

// Memory on the device, and what should be in it.
struct Storage {
  std::vector<float> host;
  ot::Tensor device;

  Storage(int seed, ot::DType type) {
    for (int64_t i = 0; i < kElements; ++i)
      host.push_back(static_cast<float>((i * 7919 + seed) % 31 - 15));
    device = ot::tensor(host, {kElements}).to(type).to(ot::Device("ocl"));
  }
  ot::Tensor operator()(const Layout& l) const {
    return device.as_strided(l.sizes, l.strides, l.offset);
  }
  std::vector<float> now() const { return device.to(ot::DType::Float32).to_vector<float>(); }
};

// Calls visit(place in out, in a, in b) for each element of `out`, to which a and b broadcast.
template <typename Visit>
void for_each_element(const Layout& out, const Layout& a, const Layout& b, Visit visit) {
  const ot::Dims sa = ot::broadcast_strides(a.sizes, a.strides, out.sizes);
  const ot::Dims sb = ot::broadcast_strides(b.sizes, b.strides, out.sizes);
  for (int64_t i = 0; i < ot::numel(out.sizes); ++i) {
    int64_t rest = i, at = out.offset, at_a = a.offset, at_b = b.offset;
    for (size_t d = out.sizes.size(); d-- > 0; rest /= out.sizes[d]) {
      const int64_t index = rest % out.sizes[d];
      at += index * out.strides[d], at_a += index * sa[d], at_b += index * sb[d];
    }
    visit(static_cast<size_t>(at), static_cast<size_t>(at_a), static_cast<size_t>(at_b));
  }
}

struct Operands {
  const char* name;
  Layout out, a, b;
};

// Of nine dimensions, one more than a launch has, none of which merge.
const ot::Dims kNine{2, 3, 2, 2, 2, 2, 2, 2, 3}, kEverySecond{2, 1, 2, 1, 2, 1, 2, 1, 3};
ot::Dims reversed(const ot::Dims& sizes) {
  ot::Dims strides = sizes;
  int64_t step = 1;
  for (size_t d = 0; d < sizes.size(); step *= sizes[d++]) strides[d] = step;
  return strides;
}

const Operands kOperands[] = {
    {"flat", plain({64}), plain({64}), plain({64})},
    {"flat, longer", plain({1000}), plain({1000}), plain({1000})},
    {"flat, two dimensions", plain({8, 8}), plain({8, 8}), plain({8, 8})},
    {"flat, from element 1 on", plain({64}, 1), plain({64}, 1), plain({64}, 1)},
    {"flat, one operand from element 4 on", plain({64}), plain({64}, 4), plain({64})},
    {"flat, output from element 2 on", plain({64}, 2), plain({64}), plain({64})},
    {"one element", plain({1}), plain({1}), plain({1})},
    {"one element, two dimensions", plain({1, 1}), {{1, 1}, {5, 7}, 3}, plain({1, 1})},
    {"no dimensions", plain({}), plain({}, 9), plain({}, 2)},
    {"no elements", plain({0, 8}), plain({0, 8}), plain({0, 8})},
    {"no elements, other order", plain({8, 0}), {{8, 0}, {1, 8}}, plain({8, 0})},
    {"first transposed", plain({8, 8}), {{8, 8}, {1, 8}}, plain({8, 8})},
    {"second transposed", plain({8, 8}), plain({8, 8}), {{8, 8}, {1, 8}}},
    {"all transposed", {{8, 8}, {1, 8}}, {{8, 8}, {1, 8}}, {{8, 8}, {1, 8}}},
    {"rows with gaps", plain({8, 8}), {{8, 8}, {16, 1}}, plain({8, 8})},
    {"wider gaps", plain({8, 8}), {{8, 8}, {18, 1}}, plain({8, 8})},
    {"every second element", plain({8, 8}), {{8, 8}, {16, 2}}, plain({8, 8})},
    {"output with gaps", {{8, 8}, {24, 1}}, plain({8, 8}), plain({8, 8})},
    {"output transposed", {{8, 8}, {1, 8}}, plain({8, 8}), plain({8, 8})},
    {"a row", plain({8, 8}), plain({8, 8}), plain({8})},
    {"a row, from element 2 on", plain({8, 8}), plain({8, 8}), plain({8}, 2)},
    {"a column", plain({8, 8}), plain({8, 8}), plain({8, 1})},
    {"a row and a column", plain({8, 8}), plain({1, 8}), plain({8, 1})},
    {"other sizes", plain({4, 16}), plain({4, 16}), plain({16})},
    {"long lines", plain({3, 300}), plain({3, 300}), plain({300})},
    {"long lines of other sizes", plain({2, 515}), plain({2, 515}), plain({2, 1})},
    {"one number", plain({8, 8}), plain({8, 8}), plain({})},
    {"size 1 in between", plain({4, 1, 16}), plain({4, 1, 16}), plain({1, 16})},
    {"three dimensions", plain({3, 4, 5}), {{3, 4, 5}, {1, 3, 12}}, plain({4, 1})},
    {"three dimensions, permuted", plain({3, 4, 5}), {{3, 4, 5}, {4, 1, 12}}, plain({4, 1})},
    {"nine dimensions", plain(kNine), {kNine, reversed(kNine)}, plain(kEverySecond)},
};

class PointwisePlans : public testing::TestWithParam<ot::DType> {
 protected:
  // Whatever was computed before: all operands in a new order, several times.
  template <typename Run>
  void in_many_orders(Run run) {
    std::mt19937 random(3);
    std::vector<const Operands*> list;
    for (const Operands& o : kOperands) list.push_back(&o);
    for (int round = 0; round < 5; ++round) {
      std::ranges::shuffle(list, random);
      for (const Operands* o : list) {
        run(*o, round);
        if (HasFatalFailure()) return;
      }
    }
  }
  void expect_memory(const Operands& o) {
    ASSERT_EQ(out_.now(), out_.host) << o.name;  // what no element is in stays
  }
  Storage out_{1, GetParam()}, a_{5, GetParam()}, b_{11, GetParam()};
};

TEST_P(PointwisePlans, OutputsFollowEachLayout) {
  in_many_orders([&](const Operands& o, int round) {
    const auto factor = static_cast<float>(2 + round % 2);
    ot::Tensor out = out_(o.out);
    ot::add_out(out, a_(o.a), b_(o.b), static_cast<int64_t>(factor));
    for_each_element(o.out, o.a, o.b, [&](size_t at, size_t i, size_t k) {
      out_.host[at] = a_.host[i] + factor * b_.host[k];
    });
    expect_memory(o);
  });
}

TEST_P(PointwisePlans, ResultsInPlaceFollowEachLayout) {
  in_many_orders([&](const Operands& o, int) {
    ot::Tensor out = out_(o.out);
    ot::minimum_out(out, out, b_(o.b));
    for_each_element(o.out, o.out, o.b, [&](size_t at, size_t, size_t k) {
      out_.host[at] = std::min(out_.host[at], b_.host[k]);
    });
    expect_memory(o);
    ot::add_out(out, out, 3);
    for_each_element(o.out, o.out, o.out, [&](size_t at, size_t, size_t) { out_.host[at] += 3; });
    expect_memory(o);
  });
}

TEST_P(PointwisePlans, TypesDoNotMeet) {
  Storage wide{5, ot::DType::Float64};
  in_many_orders([&](const Operands& o, int round) {
    ot::Tensor out = out_(o.out);
    if (round % 2 == 0 || GetParam() == ot::DType::Int32)
      ot::mul_out(out, a_(o.a), b_(o.b));
    else
      ot::mul_out(out, wide(o.a), b_(o.b));
    for_each_element(o.out, o.a, o.b, [&](size_t at, size_t i, size_t k) {
      out_.host[at] = a_.host[i] * b_.host[k];
    });
    expect_memory(o);
  });
}

TEST_P(PointwisePlans, GraphsKeepTheLayoutsThatTheyRecorded) {
  in_many_orders([&](const Operands& o, int round) {
    if (round > 0 || ot::numel(o.out.sizes) == 0) return;
    ot::Tensor out = out_(o.out);
    const ot::Tensor a = a_(o.a), b = b_(o.b);
    const auto work = [&] { ot::sub_out(out, a, b); };
    work();
    work();  // a plan is kept from the second time on
    const ot::Graph graph = ot::Graph::record("ocl", work);
    for (const Operands& other : kOperands) {
      ot::Tensor elsewhere = ot::empty(other.out.sizes, {GetParam(), "ocl"});
      ot::sub_out(elsewhere, a_(other.a), b_(other.b));
    }
    out_.device.fill_(7);
    std::ranges::fill(out_.host, 7.0f);
    graph.replay();
    for_each_element(o.out, o.a, o.b, [&](size_t at, size_t i, size_t k) {
      out_.host[at] = a_.host[i] - b_.host[k];
    });
    expect_memory(o);
  });
}

INSTANTIATE_TEST_SUITE_P(Types, PointwisePlans,
                         testing::Values(ot::DType::Float32, ot::DType::Float16, ot::DType::Int32),
                         [](const auto& info) { return ot::info(info.param).name; });

}  // namespace
