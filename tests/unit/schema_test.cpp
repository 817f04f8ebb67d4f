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

TEST(Schema, TypesDefaultsAndOutputs) {
  const Schema s = parse_schema(
      "f.out(Tensor self, Tensor?[] indices, int[2] k=[1, 2], SymInt[]? n=None, *, str mode='a', "
      "float? p=0.5, bool[3] mask, Generator? generator=None, ScalarType? dtype=None, "
      "Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))");
  EXPECT_EQ(s.full_name(), "f.out");
  ASSERT_EQ(s.inputs.size(), 9u);
  ASSERT_EQ(s.outputs.size(), 2u);
  EXPECT_EQ(s.inputs[1].type, ArgType::TensorList);
  EXPECT_TRUE(s.inputs[1].list_of_optional);
  EXPECT_FALSE(s.inputs[1].optional);
  EXPECT_EQ(s.inputs[2].fixed_length, 2);
  EXPECT_EQ(s.inputs[2].default_value, "[1, 2]");
  EXPECT_EQ(s.inputs[3].type, ArgType::IntList);
  EXPECT_TRUE(s.inputs[3].optional);
  EXPECT_FALSE(s.inputs[3].keyword_only);
  EXPECT_EQ(s.inputs[4].default_value, "'a'");
  EXPECT_TRUE(s.inputs[4].keyword_only);
  EXPECT_EQ(s.inputs[6].type, ArgType::BoolList);
  EXPECT_EQ(s.inputs[7].type, ArgType::Generator);
  EXPECT_EQ(s.inputs[8].type, ArgType::DType);
  EXPECT_EQ(s.outputs[1].name, "y");
  EXPECT_EQ(s.input("mask"), 6);
  EXPECT_EQ(s.input("x"), -1);
  EXPECT_THROW(parse_schema("no schema"), Error);
}

TEST(Schema, NamesMayHaveTheNamespaceOfALibrary) {
  const Schema s = parse_schema("library::op.b_out(Tensor x, *, Tensor(a!) y) -> Tensor(a!)");
  EXPECT_EQ(s.name, "library::op");
  EXPECT_EQ(s.overload, "b_out");
  EXPECT_EQ(s.full_name(), "library::op.b_out");
  EXPECT_EQ(s.inputs.size(), 1u);
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
