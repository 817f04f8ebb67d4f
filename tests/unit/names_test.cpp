// Names, patterns, and scopes of settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "base/name_patterns.h"
#include "base/setting_scopes.h"

namespace ocltensor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NamePatterns, ListsAreSplitAtCommas) {
  EXPECT_THAT(split_names(" add, mul ,,\tsin"), ElementsAre("add", "mul", "sin"));
  EXPECT_THAT(split_names(" , "), IsEmpty());
  EXPECT_TRUE(NamePatterns(",").empty());
}

TEST(NamePatterns, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("linalg_*", "linalg_inv"));
  EXPECT_TRUE(matches_pattern("*a*b*c", "aabbabc"));
  EXPECT_TRUE(matches_pattern("a?c", "abc"));
  EXPECT_FALSE(matches_pattern("a?c", "ac"));
  EXPECT_FALSE(matches_pattern("linalg_*", "_linalg_inv"));
  EXPECT_FALSE(matches_pattern("", "a"));
  EXPECT_FALSE(matches_pattern("*ab", "abc"));
  EXPECT_TRUE(matches_operator("add", "add.out"));
  EXPECT_TRUE(matches_operator("add.out", "add.out"));
  EXPECT_FALSE(matches_operator("add", "addmm.out"));
  const NamePatterns list("mul, add*");
  ASSERT_NE(list.find("addmm"), nullptr);
  EXPECT_EQ(*list.find("addmm"), "add*");
  EXPECT_EQ(list.find("sub"), nullptr);
}

TEST(NamePatterns, NearNamesComeFirst) {
  const std::vector<std::string> names{"add.out", "addmm.out", "softmax.out", "sub.out"};
  EXPECT_THAT(near_names("sofmax", names), ElementsAre("softmax.out"));
  EXPECT_THAT(near_names("ad", names), testing::Contains("add.out"));
  EXPECT_THAT(near_names("convolution", names), IsEmpty());
}

TEST(Names, ErrorsSuggestThem) {
  const std::vector<std::string> names{"float16", "float32", "int8"};
  EXPECT_EQ(did_you_mean("flaot32", names), "; did you mean float32?");
  EXPECT_EQ(did_you_mean("quaternion", names), "");
}

TEST(Names, MisspeltOnesAreFewCharactersAway) {
  const std::vector<std::string> names{"ENABLE_FALLBACK", "DEVICES", "MODE"};
  EXPECT_EQ(*misspelt("ENABLE_FALBACK", names), "ENABLE_FALLBACK");
  EXPECT_EQ(*misspelt("DEVICE", names), "DEVICES");
  EXPECT_EQ(misspelt("DEVICES", names), nullptr);
  EXPECT_EQ(misspelt("MOOD", names), nullptr);  // two of few characters
  EXPECT_EQ(misspelt("SOMETHING_ELSE", names), nullptr);
}

class Scopes : public testing::Test {
 protected:
  std::map<std::string, std::string> values{{"A", "1"}, {"OCLTENSOR_DISABLED_X", "p"}};
  SettingScopes scopes{[this](const std::string& name) { return values.at(name); },
                       [this](const std::string& name, const std::string& value) {
                         if (value == "bad") throw std::runtime_error(value);
                         values[name] = value;
                       }};
};

TEST_F(Scopes, EndInAnyOrder) {
  const uint64_t first = scopes.enter({{"A", "2"}});
  const uint64_t second = scopes.enter({{"A", "3"}});
  scopes.leave(first);
  EXPECT_EQ(values["A"], "3");
  scopes.assign("A", "4");
  EXPECT_EQ(values["A"], "4");
  scopes.leave(second);
  scopes.leave(second);
  EXPECT_EQ(values["A"], "1");
  scopes.assign("A", "5");
  EXPECT_EQ(values["A"], "5");
}

TEST_F(Scopes, ABadValueChangesNothing) {
  EXPECT_THROW(scopes.enter({{"OCLTENSOR_DISABLED_X", "q"}, {"A", "bad"}}), std::runtime_error);
  EXPECT_EQ(values["A"], "1");
  EXPECT_EQ(values["OCLTENSOR_DISABLED_X"], "p");
  const uint64_t scope = scopes.enter({{"A", "2"}});
  EXPECT_THROW(scopes.assign("A", "bad"), std::runtime_error);
  EXPECT_EQ(values["A"], "2");
  scopes.leave(scope);
  EXPECT_EQ(values["A"], "1");
}

TEST_F(Scopes, ListsAddUp) {
  const std::string list = "OCLTENSOR_DISABLED_X";
  const uint64_t first = scopes.enter({{list, "q,p"}});
  const uint64_t second = scopes.enter({{list, "r"}});
  EXPECT_EQ(values[list], "p,q,r");
  scopes.add(list, {"s"});
  scopes.remove(list, [](const std::string& name) { return name == "r" || name == "p"; });
  EXPECT_EQ(values[list], "s,q");
  scopes.leave(first);
  EXPECT_EQ(values[list], "s");
  scopes.leave(second);
  EXPECT_EQ(values[list], "s");
  scopes.assign(list, "");
  EXPECT_EQ(values[list], "");
}

}  // namespace
}  // namespace ocltensor
