// Lists of names and patterns in settings ("add, linalg_*"), and the known names most similar to a
// wrong one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ocltensor {

// The parts of a list joined by commas, without blanks and empty parts.
std::vector<std::string> split_names(std::string_view list);

// `*` stands for any text and `?` for one character.
bool matches_pattern(std::string_view pattern, std::string_view name);

// Matches an operator's name with and without its overload: "add", "add.out" and "add.*" match
// "add.out".
bool matches_operator(std::string_view pattern, std::string_view name);

class NamePatterns {
 public:
  NamePatterns() = default;
  explicit NamePatterns(std::string_view list) : patterns_(split_names(list)) {}
  bool empty() const { return patterns_.empty(); }
  // The first pattern that matches, or nullptr.
  const std::string* find(std::string_view name) const;
  const std::string* find_operator(std::string_view name) const;

 private:
  std::vector<std::string> patterns_;
};

// At most `most` of `names` that are similar to `name`, the most similar first.
std::vector<std::string> near_names(std::string_view name, std::span<const std::string> names,
                                    size_t most = 3);
// "; did you mean add.out or addmm.out?" for the end of an error; empty if no name is similar.
std::string did_you_mean(std::string_view name, std::span<const std::string> names);
// Of `names` the one that differs from `name` by at most two characters, or by one where it has
// less than six; nullptr if there is none, or if it is `name` itself.
const std::string* misspelt(std::string_view name, std::span<const std::string> names);

}  // namespace ocltensor
