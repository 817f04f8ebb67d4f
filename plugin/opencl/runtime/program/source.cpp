// Expands #include lines of kernel sources.
#include "source.h"

#include <fmt/format.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/config.h"
#include "kernel_sources.h"
#include "ocltensor/error.h"
#include "runtime/driver/caps.h"

namespace ocltensor::opencl {
namespace {

// The header of that name, from any folder under kernels; `place` is where it is asked for.
const Source& header(std::string_view name, const std::string& place) {
  const Source* found = nullptr;
  for (const Source* candidate : kernel_sources::all())
    if (std::string_view(candidate->path).ends_with("/" + std::string(name))) found = candidate;
  if (found == nullptr) fail(TB_E_COMPILE, "{}: there is no header {} under kernels", place, name);
  return *found;
}

// The text between the quotes of an include line; empty if the line is none.
std::string_view included(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return {};
  return line.substr(kInclude.size(), line.rfind('"') - kInclude.size());
}

void append(const Source& source, std::set<std::string>& seen, std::string& out) {
  const std::string path = source.path;
  if (!seen.insert(path).second) return;
  std::istringstream lines(text_of(source));
  std::string line;
  int number = 0;
  out += "#line 1 \"" + path + "\"\n";
  while (std::getline(lines, line)) {
    ++number;
    const std::string_view name = included(line);
    if (name.empty()) {
      out += line + "\n";
      continue;
    }
    append(header(name, fmt::format("{}:{}", path, number)), seen, out);
    out += "#line " + std::to_string(number + 1) + " \"" + path + "\"\n";
  }
}

// Whether a line is an #include of any form.
bool is_include(std::string_view line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return false;
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  return word != std::string_view::npos && line.substr(word).starts_with("include");
}

}  // namespace

bool is_embedded() { return config::get_string(config::Knob::KernelDir).empty(); }

std::string text_of(const Source& source) {
  const std::string folder = config::get_string(config::Knob::KernelDir);
  if (folder.empty()) return source.text;
  std::ifstream file(folder + "/" + source.path);
  if (!file)
    fail(TB_E_COMPILE, "OCLTENSOR_KERNEL_DIR={}: it has no readable file {}", folder, source.path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string expand(const Source& source) {
  std::string out;
  std::set<std::string> seen;
  append(source, seen, out);
  return out;
}

GivenText expand_given(const std::string& source, const std::string& prefix) {
  constexpr std::string_view kOurs = "ocltensor/";
  GivenText text;
  std::set<std::string> seen;
  std::istringstream lines(source);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string_view name = included(line);
    if (name.starts_with(kOurs)) {
      append(header(name.substr(kOurs.size()), fmt::format("line {}", number)), seen, text.source);
      text.source += fmt::format("#line {} \"{}\"\n", number + 1, kGivenText);
      continue;
    }
    text.includes_files = text.includes_files || is_include(line);
    text.source += line + "\n";
  }
  // As it is, for what has nothing of ours: its lines and columns are the user's.
  text.source =
      seen.empty() ? source : fmt::format("{}#line 1 \"{}\"\n{}", prefix, kGivenText, text.source);
  return text;
}

std::string structures_in_memory(const std::string& text) {
  static const auto& kParameter =  // leaked: threads may build while the process ends
      *new std::regex(R"(const (\w+Params) (\w+))");
  std::string out;
  size_t at = 0;
  for (;;) {
    const size_t kernel = text.find("__kernel void", at);
    if (kernel == std::string::npos) return out + text.substr(at);
    const size_t open = text.find('(', kernel);
    size_t close = open;
    for (int depth = 0; close < text.size(); ++close) {
      if (text[close] == '(') ++depth;
      if (text[close] == ')' && --depth == 0) break;
    }
    const size_t body = text.find('{', close);
    if (body == std::string::npos) return out + text.substr(at);
    const std::string parameters = text.substr(open, close - open);
    out += text.substr(at, open - at) +
           std::regex_replace(parameters, kParameter,
                              "__global const char *$2_base, ulong $2_offset") +
           text.substr(close, body + 1 - close);
    // Copies word by word: Mesa 22.3's compiler crashes if a structure is copied as a whole from
    // global memory. The words may alias what the structure holds, or PoCL's drops the copy.
    for (std::sregex_iterator m(parameters.begin(), parameters.end(), kParameter), none; m != none;
         ++m)
      out += fmt::format(
          " {0} {1}; {{ typedef uint __attribute__((may_alias)) word_; "
          "__global const word_ *from_ = (__global const word_ *)({1}_base + {1}_offset); "
          "word_ *to_ = (word_ *)&{1}; "
          "for (int k_ = 0; k_ < sizeof({0}) / 4; ++k_) to_[k_] = from_[k_]; }}",
          m->str(1), m->str(2));
    at = body + 1;
  }
}

}  // namespace ocltensor::opencl
