// Descriptions of a capture, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "capture/reader.h"

namespace tools {

using nlohmann::json;
using ocltensor::capture_file::Capture;
using ocltensor::capture_file::Launch;

std::vector<const Launch*> launches_of(const Capture& capture);
std::string range_text(const Launch& launch);                         // "1024x2 / 64x1"
std::string arguments_text(const Launch& launch, size_t most_bytes);  // "buffer 3, 512, local 64"
std::string size_text(uint64_t bytes);                                // "12.5 MiB"
std::string label(const Capture& capture, const Launch& launch);      // "gemm_rows", "addmm.out"
std::string shape_text(const std::vector<int64_t>& sizes);            // "[16, 384]"

json describe(const Capture& capture);
void print_list(const Capture& capture);
void print_heading(const Capture& capture, const std::string& path);

}  // namespace tools
