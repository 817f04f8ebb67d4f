// Choices as text, as files of measurements and reports have them.
#include "configuration.h"

#include <fmt/format.h>

#include <charconv>

#include "algorithm.h"

namespace ocltensor::opencl {
namespace {

// The next part of `rest` up to a slash, which is taken from it.
std::string_view next_part(std::string_view& rest) {
  const size_t slash = rest.find('/');
  const std::string_view part = rest.substr(0, slash);
  rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  return part;
}

std::optional<int64_t> number_of(std::string_view part, std::string_view parameter) {
  if (!part.starts_with(parameter) || part.substr(parameter.size(), 1) != ":") return std::nullopt;
  part.remove_prefix(parameter.size() + 1);
  int16_t number = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string text_of(const Choice& choice) {
  std::string text = choice.algorithm->id;
  for (size_t i = 0; i < choice.configuration.size(); ++i)
    text += fmt::format("/{}:{}", choice.algorithm->parameters[i], choice.configuration[i]);
  return text;
}

std::optional<Choice> choice_of(std::span<const Algorithm* const> algorithms,
                                std::string_view text) {
  const std::string_view id = next_part(text);
  const auto found = std::ranges::find_if(algorithms, [&](const auto* a) { return a->id == id; });
  if (found == algorithms.end()) return std::nullopt;
  if (text.empty()) return Choice{*found, {}};
  std::vector<int64_t> numbers;
  for (const char* parameter : (*found)->parameters) {
    if (parameter == nullptr) break;
    const std::optional<int64_t> number = number_of(next_part(text), parameter);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  if (!text.empty() || numbers.empty()) return std::nullopt;
  return Choice{*found, Configuration(numbers)};
}

}  // namespace ocltensor::opencl
