// The reports of tb_switch_api: rows as JSON, whose members plugin.h lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ocltensor::opencl {

class AlgorithmFamily;

// The text of a report. A blank and an argument may follow the subject's name. Error
// TB_UNSUPPORTED for other subjects, TB_E_INVALID for an argument that is none.
std::string report(std::string_view subject);

// All families that have a list of algorithms, those included that have not run yet.
std::vector<const AlgorithmFamily*> reported_families();

}  // namespace ocltensor::opencl
