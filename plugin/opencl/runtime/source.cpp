// Expanding #include lines of kernel sources.
#include "source.h"

#include <fstream>
#include <set>
#include <sstream>

#include "base/config.h"
#include "base/error.h"
#include "kernel_sources.h"

namespace ocltensor::opencl {
namespace {

std::string read(std::string_view path, const char* embedded) {
  const std::string folder = config::get_string(config::Knob::KernelDir);
  if (folder.empty()) return embedded;
  std::ifstream file(folder + "/" + std::string(path));
  if (!file)
    fail(TB_E_COMPILE, "OCLTENSOR_KERNEL_DIR={}: it has no readable file {}", folder, path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void append(const std::string& path, const char* embedded, std::set<std::string>& seen, std::string& out) {
  if (!seen.insert(path).second) return;
  std::istringstream lines(read(path, embedded));
  std::string line;
  int number = 0;
  out += "#line 1 \"" + path + "\"\n";
  while (std::getline(lines, line)) {
    ++number;
    constexpr std::string_view kInclude = "#include \"";
    if (!line.starts_with(kInclude)) {
      out += line + "\n";
      continue;
    }
    const std::string name = line.substr(kInclude.size(), line.rfind('"') - kInclude.size());
    const Source* included = nullptr;
    for (const Source* candidate : kernel_sources::all())
      if (candidate->path == "include/" + name) included = candidate;
    if (included == nullptr) fail(TB_E_COMPILE, "{}:{}: there is no kernels/include/{}", path, number, name);
    append(included->path, included->text, seen, out);
    out += "#line " + std::to_string(number + 1) + " \"" + path + "\"\n";
  }
}

}  // namespace

std::string expand(const Source& source) {
  std::string out;
  std::set<std::string> seen;
  append(source.path, source.text, seen, out);
  return out;
}

}  // namespace ocltensor::opencl
