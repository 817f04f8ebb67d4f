// The reports of a backend (tb_switch_api.report): texts, and rows as JSON.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/core/backend.h"

namespace ocltensor {

// Empty if the backend has no such report.
std::string report_text(const Backend& backend, const std::string& subject);
// Empty if the backend has no such report, or is so old that it has no JSON. Error TB_E_ABI if
// the text is not an array of objects.
nlohmann::json report_rows(const Backend& backend, const std::string& subject);

// A time, which is null where a choice failed: infinite then.
inline double time_of(const nlohmann::json& value) {
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

// The rows as structures, made by `row(const nlohmann::json&)`. Error TB_E_ABI if a member is
// missing or of another type.
template <typename Row>
auto rows_of(const Backend& backend, const std::string& subject, Row row) {
  std::vector<decltype(row(nlohmann::json()))> list;
  for (const nlohmann::json& entry : report_rows(backend, subject)) {
    try {
      list.push_back(row(entry));
    } catch (const nlohmann::json::exception& e) {
      fail(TB_E_ABI, "the report '{}' of {} is not as plugin.h describes it: {}", subject,
           backend.type, e.what());
    }
  }
  return list;
}

}  // namespace ocltensor
