// Asks a backend for a report.
#include "reports.h"

#include <cstddef>

namespace ocltensor {
namespace {

constexpr uint16_t kFirstWithJson = 5;  // minor version of the ABI

}  // namespace

std::string report_text(const Backend& backend, const std::string& subject) {
  const tb_switch_api& api = *backend.api->switches;
  if (api.struct_size <= offsetof(tb_switch_api, report)) return {};
  ErrorBuffer error;
  uint64_t needed = 0;
  if (api.report(subject.c_str(), nullptr, 0, &needed, error.get()) != TB_OK) return {};
  std::string text;
  while (text.size() < needed) {  // again where it has grown meanwhile
    text.resize(needed + 64);
    error.raise_if_failed(
        api.report(subject.c_str(), text.data(), text.size(), &needed, error.get()));
  }
  text.resize(needed - 1);
  return text;
}

nlohmann::json report_rows(const Backend& backend, const std::string& subject) {
  const std::string text =
      backend.api->abi_minor < kFirstWithJson ? "" : report_text(backend, subject);
  if (text.empty()) return nlohmann::json::array();
  nlohmann::json rows = nlohmann::json::parse(text, nullptr, false);
  if (!rows.is_array())
    fail(TB_E_ABI, "the report '{}' of {} is no JSON array", subject, backend.type);
  return rows;
}

}  // namespace ocltensor
