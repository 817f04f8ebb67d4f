// The reports of a backend: lines of fields that tabs separate (tb_switch_api.report).
#pragma once

#include <string>
#include <vector>

#include "host/core/backend.h"

namespace ocltensor {

using Fields = std::vector<std::string>;

// Empty if the backend has no such report.
std::string report_text(const Backend& backend, const std::string& subject);
// Without lines of fewer than `least` fields.
std::vector<Fields> report_lines(const Backend& backend, const std::string& subject, size_t least);

}  // namespace ocltensor
