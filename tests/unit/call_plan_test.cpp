// The rules of a call that both hosts share, over descriptions of tensors and a host without
// memory.
#include "base/call_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace ocltensor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tensor at an address that holds nothing.
struct Described {
  Dims sizes, strides;
  tb_tensor tensor{};
  Described(tb_address address, Dims the_sizes, DType type = DType::Float32, Dims the_strides = {})
      : sizes(the_sizes), strides(the_strides.empty() ? contiguous_strides(sizes) : the_strides) {
    tensor.struct_size = sizeof tensor;
    tensor.address = address;
    tensor.base = 4096;  // all lie in one storage
    tensor.base_bytes = uint64_t{1} << 31;
    tensor.dtype = to_abi(type);
    tensor.ndim = static_cast<uint32_t>(sizes.size());
    tensor.sizes = sizes.data();
    tensor.strides = strides.data();
  }
  Described(const Described&) = delete;
};

tb_value value_of(const Described& t) {
  tb_value v{};
  v.tag = TB_TENSOR;
  v.as.p = &t.tensor;
  return v;
}

const Operator& named(std::string_view name) {
  const Operator* op = find_operator(name);
  if (op == nullptr) throw std::runtime_error("no such operator");
  return *op;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(ScalarTensors, BelongToPointwiseOperators) {
  EXPECT_TRUE(takes_scalar_tensors(named("add.out")));
  EXPECT_TRUE(takes_scalar_tensors(named("where.self_out")));
  EXPECT_FALSE(takes_scalar_tensors(named("mm.out")));
  EXPECT_FALSE(takes_scalar_tensors(named("fill.Scalar_out")));
}

TEST(ScalarTensors, AreNumbersWherePromotionCannotTell) {
  ScalarTensorRule floats;
  floats.add(2, DType::Float32);
  for (const DType type :
       {DType::Bool, DType::Int64, DType::Float32, DType::Float64, DType::Complex64})
    EXPECT_TRUE(floats.is_number(type)) << name(type);
  // A Python number would promote as int64 and float32.
  for (const DType type : {DType::Int8, DType::Int32, DType::Float16, DType::BFloat16})
    EXPECT_FALSE(floats.is_number(type)) << name(type);
  ScalarTensorRule integers;
  integers.add(1, DType::Int32);
  EXPECT_TRUE(integers.is_number(DType::Float32));
  EXPECT_FALSE(integers.is_number(DType::Float64));  // int32 and float64 give float64
  ScalarTensorRule mixed;
  mixed.add(1, DType::Float32);
  mixed.add(0, DType::Float32);  // of its class: float32 beside int64 without dimensions
  EXPECT_FALSE(mixed.is_number(DType::Int64));
}

TEST(Devices, AreNamed) {
  EXPECT_EQ(error_of([] { refuse_devices("add.out", "ocl:0", "cpu"); }),
            "add.out: Expected all tensors to be on the same device, but found at least two "
            "devices, ocl:0 and cpu");
  EXPECT_THAT(error_of([] { refuse_output_device("add.out", "cpu", "ocl:1"); }),
              HasSubstr("the output is on cpu and the arguments are on ocl:1"));
}

TEST(Memory, OverlapByAddressesAndStrides) {
  const Described all(4096, {4, 4});
  const auto with_all = [&](const Described& other) { return overlap(all.tensor, other.tensor); };
  EXPECT_EQ(with_all(all), Overlap::Same);
  EXPECT_EQ(with_all(Described(4096 + 64, {4, 4})), Overlap::None);
  EXPECT_EQ(with_all(Described(4096 + 60, {4, 4})), Overlap::Partial);
  EXPECT_EQ(with_all(Described(4096, {16})), Overlap::Partial);
  EXPECT_EQ(with_all(Described(4096, {4, 4}, DType::Float32, {1, 4})), Overlap::Partial);
  EXPECT_EQ(with_all(Described(4096, {4, 4}, DType::Int32)), Overlap::Maybe);
  EXPECT_EQ(with_all(Described(4096, {4, 2}, DType::Float32, {4, 2})), Overlap::Maybe);
  EXPECT_EQ(with_all(Described(4096, {0, 4})), Overlap::None);
  Described elsewhere(4096, {4, 4});  // what the description says of storages goes first
  elsewhere.tensor.base = uint64_t{1} << 40;
  EXPECT_EQ(with_all(elsewhere), Overlap::None);
  // The stride of a dimension of one element does not matter.
  const Described row(4096, {1, 4}, DType::Float32, {4, 1});
  EXPECT_EQ(overlap(row.tensor, Described(4096, {1, 4}, DType::Float32, {9, 1}).tensor),
            Overlap::Same);
  // Both sides of an address that strides leave out.
  const Described even(4096, {2}, DType::Float32, {2});
  EXPECT_EQ(overlap(even.tensor, Described(4100, {2}, DType::Float32, {2}).tensor), Overlap::Maybe);
}

TEST(Outputs, TypesAreExactConvertedOrTaken) {
  TensorSpec spec{DType::Float32, {2}, {}};
  const Described wide(4096, {2}, DType::Float64), whole(4096, {2}, DType::Int64);
  check_output_type(named("add.out"), wide.tensor, spec);
  EXPECT_EQ(spec.dtype, DType::Float32);
  EXPECT_EQ(error_of([&] { check_output_type(named("add.out"), whole.tensor, spec); }),
            "add.out: result type float32 can't be cast to the desired output type int64");
  for (const char* op : {"mm.out", "convolution.out", "gather.out", "topk.values", "_softmax.out",
                         "upsample_nearest2d.out", "grid_sampler_2d.out", "multinomial.out",
                         "max_pool2d_with_indices.out"})
    EXPECT_THAT(error_of([&] { check_output_type(named(op), wide.tensor, spec); }),
                HasSubstr("Expected out tensor to have dtype float32, but got float64 instead"))
        << op;
  for (const char* op :
       {"arange.start_out", "linspace.out", "eye.m_out", "randperm.generator_out"}) {
    TensorSpec made{DType::Float32, {2}, {}};
    check_output_type(named(op), whole.tensor, made);
    EXPECT_EQ(made.dtype, DType::Int64) << op;
  }
}

// May `op` write to `out` beside these arguments?
bool writes(const char* op, const Described& out, std::initializer_list<const Described*> inputs,
            OutputMode mode = OutputMode::Resize, DType result = DType::Float32) {
  std::vector<tb_value> args;
  for (const Described* t : inputs) args.push_back(value_of(*t));
  return may_write(named(op), out.tensor, TensorSpec{result, out.sizes, {}}, args, mode);
}

TEST(Outputs, AreWrittenDirectlyWhereNothingIsRead) {
  const Described a(4096, {4, 4}), b(8192, {4, 4}), out(12288, {4, 4});
  EXPECT_TRUE(writes("add.out", out, {&a, &b}));
  EXPECT_TRUE(writes("mm.out", out, {&a, &b}));
  EXPECT_FALSE(writes("mm.out", out, {&a, &b}, OutputMode::Resize, DType::Float16));
  // Pointwise operators convert on the way, and read an element before they write it.
  EXPECT_TRUE(writes("add.out", out, {&a, &b}, OutputMode::Resize, DType::Float16));
  EXPECT_TRUE(writes("add.out", a, {&a, &b}));
  EXPECT_FALSE(writes("mm.out", a, {&a, &b}));
  EXPECT_FALSE(writes("cumsum.out", a, {&a}));
}

TEST(Outputs, MayBeSelfWhereOnlyAPartChanges) {
  const Described self(4096, {4, 4}), index(8192, {4, 4}, DType::Int64), source(16384, {4, 4});
  for (const char* op : {"scatter.src_out", "scatter_add.out", "index_add.out", "index_put.out",
                         "_index_put_impl.out"}) {
    EXPECT_TRUE(writes(op, self, {&self, &index, &source})) << op;
    EXPECT_FALSE(writes(op, source, {&self, &index, &source})) << op;
  }
  EXPECT_FALSE(writes("bernoulli.Tensor_out", self, {&self, &source}));
  EXPECT_TRUE(writes("bernoulli.Tensor_out", self, {&self, &source}, OutputMode::Keep));
  EXPECT_FALSE(writes("bernoulli.Tensor_out", self, {&self, &self}, OutputMode::Keep));
}

TEST(Outputs, OverlapIsRefusedWhereATenRefusesIt) {
  const Described all(4096, {4, 4}), shifted(4100, {4, 4}),
      crossing(4096, {4, 2}, DType::Float32, {4, 2});
  const auto error = [&](const char* op, const Described& out, const Described& input) {
    return error_of([&] { (void)writes(op, out, {&input}); });
  };
  EXPECT_EQ(error("exp.out", shifted, all),
            "exp.out: unsupported operation: some elements of argument 'self' and the written-to "
            "tensor refer to a single memory location; clone() one of them first");
  EXPECT_EQ(error("cumsum.out", shifted, all), "no error");
  EXPECT_FALSE(writes("cumsum.out", shifted, {&all}));
  for (const char* op :
       {"gather.out", "index_select.out", "masked_select.out", "kthvalue.values"}) {
    EXPECT_THAT(error(op, all, all), HasSubstr("unsupported operation")) << op;
    EXPECT_THAT(error(op, shifted, all), HasSubstr("unsupported operation")) << op;
  }
  EXPECT_FALSE(writes("exp.out", crossing, {&all}));     // not worked out: through a temporary
  EXPECT_FALSE(writes("gather.out", crossing, {&all}));  // the same
  const Described repeated(4096, {4, 4}, DType::Float32, {0, 1});
  EXPECT_THAT(error("exp.out", repeated, Described(8192, {4, 4})),
              HasSubstr("more than one element of the written-to tensor"));
  const tb_tensor* twice[] = {&all.tensor, nullptr, &shifted.tensor};
  EXPECT_THAT(error_of([&] { check_disjoint(named("aminmax.out"), twice); }),
              HasSubstr("outputs 0 and 2 share memory"));
}

// Notes what it is asked to do; every tensor has an address of its own.
struct FakeHost {
  std::vector<const Described*> outs;
  std::vector<std::string> done;
  std::deque<Described> made;
  Dims grown;  // the size that the operator gives a data-dependent output
  bool writable = true;

  const tb_tensor* given(size_t i) { return outs[i] == nullptr ? nullptr : &outs[i]->tensor; }
  bool is_writable(size_t) const { return writable; }
  void resize(size_t i, const TensorSpec& spec) {
    note("resize", i);
    outs[i] = &made.emplace_back(tb_address{1} << 20, spec.sizes, from_abi(outs[i]->tensor.dtype));
  }
  void use(size_t i) { note("use", i); }
  void make(size_t i, const TensorSpec& spec) {
    note("make", i);
    made.emplace_back((tb_address{1} << 30) + i * 4096, spec.sizes, spec.dtype);
  }
  void run() { done.push_back("run"); }
  std::span<const int64_t> target_sizes(size_t) const { return grown; }
  void store(size_t i) { note("store", i); }
  void take(size_t i) { note("take", i); }

 private:
  void note(const char* what, size_t i) { done.push_back(fmt::format("{} {}", what, i)); }
};

void run(FakeHost& host, const char* op, std::vector<TensorSpec> specs,
         std::initializer_list<const Described*> inputs, OutputMode mode) {
  std::vector<tb_value> args;
  for (const Described* t : inputs) args.push_back(value_of(*t));
  run_with_outputs(named(op), mode, args, specs, host);
}

TEST(Plan, MakesWhatIsNotGiven) {
  const Described a(4096, {2}), b(8192, {2});
  FakeHost host{{nullptr}};
  run(host, "add.out", {{DType::Float32, {2}, {}}}, {&a, &b}, OutputMode::Allocate);
  EXPECT_THAT(host.done, ElementsAre("make 0", "run", "take 0"));
}

TEST(Plan, ResizesThenWritesDirectly) {
  const Described a(4096, {2}), b(8192, {2}), empty(0, {0});
  FakeHost host{{&empty}};
  run(host, "add.out", {{DType::Float32, {2}, {}}}, {&a, &b}, OutputMode::Resize);
  EXPECT_THAT(host.done, ElementsAre("resize 0", "use 0", "run"));
  FakeHost fixed{{&empty}};
  EXPECT_EQ(error_of([&] {
              run(fixed, "add.out", {{DType::Float32, {2}, {}}}, {&a, &b}, OutputMode::Keep);
            }),
            "add.out: output with shape [0] doesn't match the broadcast shape [2]");
  EXPECT_TRUE(fixed.done.empty());
}

TEST(Plan, StoresThroughATemporary) {
  const Described a(4096, {2, 2});
  FakeHost host{{&a}};
  run(host, "mm.out", {{DType::Float32, {2, 2}, {}}}, {&a, &a}, OutputMode::Resize);
  EXPECT_THAT(host.done, ElementsAre("make 0", "run", "store 0"));
  const Described out(8192, {2, 2});
  FakeHost lazy{{&out}};
  lazy.writable = false;
  run(lazy, "add.out", {{DType::Float32, {2, 2}, {}}}, {&a, &a}, OutputMode::Resize);
  EXPECT_THAT(lazy.done, ElementsAre("make 0", "run", "store 0"));
}

TEST(Plan, DataDependentOutputsAreResizedAfterwards) {
  const Described a(4096, {2}), out(8192, {9, 9}, DType::Int64);
  FakeHost host{{&out}};
  host.grown = {1, 1};
  run(host, "nonzero.out", {{DType::Int64, {2, 1}, {}}}, {&a}, OutputMode::Resize);
  EXPECT_THAT(host.done, ElementsAre("make 0", "run", "resize 0", "store 0"));
  EXPECT_EQ(host.made.front().sizes, (Dims{0, 1}));
}

TEST(Fallback, IsRefusedWhereArgumentsChangeUnseen) {
  EXPECT_STREQ(fallback_obstacle(named("native_batch_norm.out")), "it changes its arguments");
  EXPECT_EQ(fallback_obstacle(named("native_layer_norm.out")), nullptr);
  EXPECT_EQ(fallback_obstacle(named("add.out")), nullptr);
}

TEST(Fallback, CopiesBackWhatTheSchemaMarks) {
  const Operator& adam = named("_fused_adam_.tensor_lr");
  EXPECT_TRUE(changes_argument(adam, 0));
  EXPECT_FALSE(changes_argument(adam, static_cast<size_t>(adam.schema.input("lr"))));
  EXPECT_FALSE(changes_argument(named("add.out"), 0));
}

TEST(Table, FlagsStayOnTheirSideOfTheAbi) {
  for (const Operator& op : operators()) {
    EXPECT_EQ(op.flags & ~uint32_t{kAbiFlags}, 0u) << op.name;
    EXPECT_EQ(op.traits & kAbiFlags, 0u) << op.name;
    EXPECT_EQ(op.is(kPointwise), std::string_view(op.family) == "pointwise") << op.name;
    EXPECT_FALSE(op.is(kExactType) && op.is(kAnyType)) << op.name;
    EXPECT_FALSE(op.is(kStartsFromSelf) && op.is(kNoOverlap)) << op.name;
    EXPECT_TRUE(!op.is(kStartsFromSelf) || op.schema.inputs[0].name == "self") << op.name;
  }
}

}  // namespace
}  // namespace ocltensor
