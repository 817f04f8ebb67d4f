// Matching names against patterns, and distances between names.
#include "name_patterns.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ocltensor {
namespace {

// The number of single characters to insert, delete or replace (Levenshtein distance).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t replaced = diagonal + (a[i - 1] != b[k - 1]);
      diagonal = row[k];
      row[k] = std::min({replaced, row[k] + 1, row[k - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string_view without_overload(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
    const size_t first = part.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    names.emplace_back(part.substr(first, part.find_last_not_of(" \t") - first + 1));
  }
  return names;
}

bool matches_pattern(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool matches_operator(std::string_view pattern, std::string_view name) {
  return matches_pattern(pattern, name) || matches_pattern(pattern, without_overload(name));
}

const std::string* NamePatterns::find(std::string_view name) const {
  for (const std::string& pattern : patterns_)
    if (matches_pattern(pattern, name)) return &pattern;
  return nullptr;
}

const std::string* NamePatterns::find_operator(std::string_view name) const {
  for (const std::string& pattern : patterns_)
    if (matches_operator(pattern, name)) return &pattern;
  return nullptr;
}

std::vector<std::string> near_names(std::string_view name, std::span<const std::string> names,
                                    size_t most) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& candidate : names) {
    const size_t d =
        std::min(distance(name, candidate), distance(name, without_overload(candidate)));
    if (d <= 1 + name.size() / 3) ranked.emplace_back(d, candidate);
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<size_t, std::string>::first);
  std::vector<std::string> result;
  for (size_t i = 0; i < std::min(most, ranked.size()); ++i) result.push_back(ranked[i].second);
  return result;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> names) {
  std::string text;
  for (const std::string& near : near_names(name, names))
    text += (text.empty() ? "; did you mean " : " or ") + near;
  return text.empty() ? text : text + "?";
}

const std::string* misspelt(std::string_view name, std::span<const std::string> names) {
  const std::string* nearest = nullptr;
  size_t least = 3;
  for (const std::string& candidate : names) {
    const size_t d = distance(name, candidate);
    if (d == 0) return nullptr;
    if (d >= least || (d == 2 && candidate.size() < 6)) continue;
    least = d;
    nearest = &candidate;
  }
  return nearest;
}

}  // namespace ocltensor
