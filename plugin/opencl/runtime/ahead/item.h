// A program as builder processes are told of it.
#pragma once

#include <string>
#include <string_view>

namespace ocltensor::opencl::build_ahead {

// A program by the path of its kernels' source and its defines on one line, "NAME VALUE; NAME
// VALUE".
struct Item {
  std::string source, defines;
};

// Converts "NAME VALUE; NAME VALUE" to lines as Defines::source() makes them, and back.
std::string define_lines(std::string_view one_line);
std::string on_one_line(std::string_view define_lines);

}  // namespace ocltensor::opencl::build_ahead
