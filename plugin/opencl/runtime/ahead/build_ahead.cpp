// Starts builder processes, and compiles the programs of their lists.
#include "build_ahead.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <mutex>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/ahead/builder_process.h"

namespace ocltensor::opencl::build_ahead {
namespace {

constexpr Recipe kRecipes[] = {
#define OCLTENSOR_RECIPE(kind, source, defines) {kind, source, defines},
#include "runtime/ahead/recipes.def"
#undef OCLTENSOR_RECIPE
};

// Sources, by the beginning of their path, from which a kind of model is recognised.
struct Sign {
  std::string_view path;
  std::string_view kind;
};
constexpr Sign kSigns[] = {
    {"conv/", "convolution"}, {"attention/", "transformer"}, {"norm/layer", "transformer"}};

constexpr int kMostBuilders = 4;  // each takes about 200 MB while it compiles

bool has_builders(const Capabilities& caps) {
  return caps.slow_compiler && config::get_bool(config::Knob::BuildAhead);
}

thread_local bool is_listed = false;

// As many as there are processors: the process that needs the programs often waits for one of them.
int start_all(std::string_view work, const Capabilities& caps, int index) {
  const int processors = usable_processors();
  const int count = processors == 1 ? 0 : std::min(kMostBuilders, processors);
  for (int i = 0; i < count; ++i) start_builder(work, caps, index);
  return count;
}

}  // namespace

std::span<const Recipe> recipes() { return kRecipes; }

std::string define_lines(std::string_view one_line) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < one_line.size();) {
    const size_t end = std::min(one_line.find("; ", begin), one_line.size());
    lines.push_back("#define " + std::string(one_line.substr(begin, end - begin)) + "\n");
    begin = end + 2;
  }
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

std::string on_one_line(std::string_view define_lines) {
  constexpr std::string_view kDefine = "#define ";
  std::string out;
  for (size_t begin = 0; begin < define_lines.size();) {
    const size_t end = std::min(define_lines.find('\n', begin), define_lines.size());
    if (end > begin + kDefine.size()) {
      if (!out.empty()) out += "; ";
      out += define_lines.substr(begin + kDefine.size(), end - begin - kDefine.size());
    }
    begin = end + 1;
  }
  return out;
}

void program_missing(const Capabilities& caps, int index, std::string_view source) noexcept try {
  if (is_listed || !has_builders(caps)) return;
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
  const int builders = start_all(sign->kind, caps, index);
  logging::debug("program", "{} builder(s) compile ahead for models of the kind {}", builders,
                 sign->kind);
} catch (const std::exception& why) {
  logging::debug("program", "nothing is compiled ahead: {}", why.what());
}

std::string start_builders(const Capabilities& caps, int index,
                           std::span<const Item> items) noexcept try {
  const std::string folder = config::cache_folder();
  if (!has_builders(caps) || folder.empty() || items.size() < 2) return {};
  static std::atomic<int> serial{0};
  std::string file = fmt::format("{}/wanted.{}.{}.list", folder, getpid(), serial++);
  try {
    std::ofstream list(file);
    for (const Item& item : items) list << item.source << '\t' << item.defines << '\n';
    list.close();
    check(!list.fail(), "{} cannot be written", file);
    const int builders = start_all("@" + file, caps, index);
    logging::debug("program", "{} builder(s) help with {} programs", builders, items.size());
  } catch (...) {
    remove_list(file);
    throw;
  }
  return file;
} catch (const std::exception& why) {
  logging::debug("program", "no builders: {}", why.what());
  return {};
}

Listed::Listed() { is_listed = true; }
Listed::~Listed() { is_listed = false; }

void remove_list(const std::string& file) noexcept {
  if (!file.empty()) std::remove(file.c_str());
}

std::vector<Item> items_of(std::string_view work) {
  std::vector<Item> items;
  if (work.starts_with('@')) {
    std::ifstream list{std::string(work.substr(1))};
    for (std::string source, defines;
         std::getline(list, source, '\t') && std::getline(list, defines);)
      items.push_back({source, defines});
    return items;
  }
  for (const Recipe& recipe : kRecipes)
    if (recipe.kind == work) items.push_back({recipe.source, recipe.defines});
  return items;
}

}  // namespace ocltensor::opencl::build_ahead
