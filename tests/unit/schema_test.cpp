// Schemas, and the operator table built from them.
#include "base/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/operators.h"
#include "ocltensor/error.h"

namespace ocltensor {
namespace {

using testing::Contains;

const Schema& schema_of(const char* name) { return find_operator(name)->schema; }

// The text that schemas.py has parsed, beside what C++ sees of it.
TEST(Schema, TypesDefaultsAndOutputs) {
  const Schema& sum = schema_of("sum.IntList_out");
  EXPECT_EQ(sum.name, "sum");
  EXPECT_EQ(sum.overload, "IntList_out");
  ASSERT_EQ(sum.inputs.size(), 4u);
  ASSERT_EQ(sum.outputs.size(), 1u);
  const Argument& dim = sum.inputs[1];  // int[1]? dim
  EXPECT_EQ(dim.type, ArgType::IntList);
  EXPECT_EQ(dim.fixed_length, 1);
  EXPECT_TRUE(dim.optional);
  EXPECT_EQ(sum.inputs[2].default_value, "False");
  EXPECT_FALSE(sum.inputs[2].keyword_only);
  EXPECT_TRUE(sum.inputs[3].keyword_only);
  EXPECT_EQ(sum.inputs[3].type, ArgType::DType);
  EXPECT_TRUE(sum.outputs[0].written);
  EXPECT_EQ(sum.input("keepdim"), 2);
  EXPECT_EQ(sum.input("out"), -1);
  const Schema& put = schema_of("index_put.out");  // Tensor?[] indices
  EXPECT_EQ(put.inputs[1].type, ArgType::TensorList);
  EXPECT_TRUE(put.inputs[1].list_of_optional);
  EXPECT_FALSE(put.inputs[1].optional);
}

TEST(Schema, NamesMayHaveTheNamespaceOfALibrary) {
  const Schema& s = schema_of("torchvision::nms.out");
  EXPECT_EQ(s.name, "torchvision::nms");
  EXPECT_EQ(s.overload, "out");
}

// Of add's numbers `alpha` is none, and a Scalar `other` is; operators that are not pointwise have
// no operands.
TEST(Schema, OperandsAreKnown) {
  const Schema& add = schema_of("add.out");
  EXPECT_TRUE(add.inputs[0].operand && add.inputs[1].operand);
  EXPECT_FALSE(add.inputs[2].operand);
  EXPECT_TRUE(schema_of("pow.Tensor_Scalar_out").inputs[1].operand);
  EXPECT_FALSE(schema_of("mm.out").inputs[0].operand);
}

TEST(Schema, RowsAreThoseOfTheTable) {
  for (const Operator& op : operators())
    EXPECT_TRUE(std::string_view(op.text).starts_with(op.name + "(")) << op.text;
}

TEST(Schema, EveryOperatorIsKnownByItsNameOnce) {
  std::set<std::string> names;
  for (const Operator& op : operators()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name << " appears twice";
    EXPECT_EQ(find_operator(op.name), &op);
    EXPECT_NE(op.infer, nullptr);
    const auto written = [](const Argument& a) { return a.written; };
    EXPECT_TRUE(!op.schema.outputs.empty() || std::ranges::any_of(op.schema.inputs, written))
        << op.name;
    for (const Argument& a : op.schema.inputs)
      EXPECT_NE(a.type, ArgType::Other) << op.name << " " << a.name;
  }
  EXPECT_GT(names.size(), 200u);
  EXPECT_EQ(find_operator("no.such"), nullptr);
}

// Names of arguments are rows of a table: none is missing, and none stands for nothing.
TEST(Schema, EveryArgumentHasItsNameInTheTable) {
  std::set<std::string> used;
  for (const Operator& op : operators())
    for (size_t i = 0; i < op.schema.inputs.size(); ++i) {
      used.insert(op.schema.inputs[i].name);
      EXPECT_THAT(op.schema.positions, Contains(i))
          << op.schema.inputs[i].name << " of " << op.name;
      ASSERT_TRUE(op.schema.inputs[i].arg.has_value())
          << op.schema.inputs[i].name << " of " << op.name;
      EXPECT_EQ(name(*op.schema.inputs[i].arg), op.schema.inputs[i].name) << op.name;
    }
  for (size_t i = 0; i < kArgNames; ++i) EXPECT_THAT(used, Contains(name(static_cast<Arg>(i))));
}

template <typename T>
concept Reads = requires(const Args& args, T argument) {
  args.tensor(argument);
};
static_assert(Reads<Arg> && !Reads<int> && !Reads<size_t>,
              "a position means another argument when a schema changes");

TEST(Schema, ArgumentsAreFoundByName) {
  const Operator& op = *find_operator("addmm.out");
  const tb_value values[] = {{}, {}, {}, {.tag = TB_FLOAT, .as = {.f = 0.5}}, {}};
  const Args args(op.schema, values);
  EXPECT_EQ(args.real(Arg::beta), 0.5);
  EXPECT_EQ(args.nth(3), Arg::beta);
  EXPECT_TRUE(args.has(Arg::mat2));
  EXPECT_FALSE(args.has(Arg::dim));
  EXPECT_THROW((void)args.integer(Arg::dim), Error);
}

}  // namespace
}  // namespace ocltensor
