// Asks a backend for a report, and takes it apart.
#include "reports.h"

#include <algorithm>
#include <cstddef>

namespace ocltensor {
namespace {

std::vector<Fields> lines_of(const std::string& text) {
  std::vector<Fields> lines;
  Fields fields{""};
  for (const char c : text) {
    if (c == '\n') {
      lines.push_back(std::move(fields));
      fields = {""};
    } else if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return lines;
}

}  // namespace

std::string report_text(const Backend& backend, const std::string& subject) {
  const tb_switch_api& api = *backend.api->switches;
  if (api.struct_size <= offsetof(tb_switch_api, report)) return {};
  ErrorBuffer error;
  uint64_t needed = 0;
  if (api.report(subject.c_str(), nullptr, 0, &needed, error.get()) != TB_OK) return {};
  std::string text(needed + 4096, '\0');  // room for counts that have grown by a digit
  error.raise_if_failed(
      api.report(subject.c_str(), text.data(), text.size(), &needed, error.get()));
  text.resize(std::min<size_t>(text.size(), needed) - 1);
  return text;
}

std::vector<Fields> report_lines(const Backend& backend, const std::string& subject, size_t least) {
  std::vector<Fields> lines = lines_of(report_text(backend, subject));
  std::erase_if(lines, [&](const Fields& fields) { return fields.size() < least; });
  return lines;
}

}  // namespace ocltensor
