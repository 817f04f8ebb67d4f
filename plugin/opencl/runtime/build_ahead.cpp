// Starting builders, and what they build.
#include "build_ahead.h"

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "builder_process.h"
#include "kernel_sources.h"
#include "program.h"

namespace ocltensor::opencl::build_ahead {
namespace {

constexpr Recipe kRecipes[] = {
#define OCLTENSOR_RECIPE(kind, source, defines) {kind, source, defines},
#include "recipes.def"
#undef OCLTENSOR_RECIPE
};

// The sources that give a kind of model away, by the begin of their path.
struct Sign {
  std::string_view path;
  std::string_view kind;
};
constexpr Sign kSigns[] = {
    {"conv/", "convolution"}, {"attention/", "transformer"}, {"norm/layer", "transformer"}};

constexpr int kMostBuilders = 4;  // each takes some 200 MB while it compiles

}  // namespace

std::span<const Recipe> recipes() { return kRecipes; }

std::string define_lines(const Recipe& recipe) {
  std::vector<std::string> lines;
  const std::string_view defines = recipe.defines;
  for (size_t begin = 0; begin < defines.size();) {
    const size_t end = std::min(defines.find("; ", begin), defines.size());
    lines.push_back("#define " + std::string(defines.substr(begin, end - begin)) + "\n");
    begin = end + 2;
  }
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

void program_missing(const Capabilities& caps, int index, std::string_view source) noexcept try {
  if (!caps.slow_compiler || !config::get_bool(config::Knob::BuildAhead)) return;
  const auto sign = std::ranges::find_if(
      kSigns, [&](const Sign& candidate) { return source.starts_with(candidate.path); });
  if (sign == std::end(kSigns)) return;
  static std::mutex& mutex = *new std::mutex;
  static auto& started = *new std::vector<std::pair<std::string_view, int>>;
  {
    std::lock_guard lock(mutex);
    if (std::ranges::find(started, std::pair(sign->kind, index)) != started.end()) return;
    started.emplace_back(sign->kind, index);
  }
  const int count = std::min(kMostBuilders, usable_processors() - 1);
  for (int i = 0; i < count; ++i) start_builder(sign->kind, index);
  logging::debug("program", "{} builder(s) compile ahead for models of the kind {}", count,
                 sign->kind);
} catch (const std::exception& why) {
  logging::debug("program", "nothing is compiled ahead: {}", why.what());
}

void build(ProgramCache& programs, std::string_view kind, bool (*wanted)()) {
  // The last one first.
  for (auto place = std::rbegin(kRecipes); place != std::rend(kRecipes); ++place) {
    const Recipe& recipe = *place;
    if (recipe.kind != kind) continue;
    if (!wanted()) return;
    const auto& all = kernel_sources::all();
    const auto source = std::ranges::find_if(
        all, [&](const Source* s) { return std::string_view(s->path) == recipe.source; });
    check(source != all.end(), "recipes.def: there is no kernel source {}", recipe.source);
    programs.build_ahead(**source, define_lines(recipe));
  }
}

}  // namespace ocltensor::opencl::build_ahead
