// What a program is made from, as it is kept in memory, on disk, and handed to builder processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace ocltensor::opencl {

// Where a text comes from.
enum class TextOrigin : uint8_t {
  Plugin,    // a kernel source of the plugin, with its headers and defines
  Given,     // a user or a generator wrote it
  WithFiles  // the same, and it includes files: neither kept on disk nor built by others
};

struct ProgramText {
  std::string name;     // for messages: "matmul/sgemm.cl", "the kernel source"
  std::string about;    // its defines on one line, for logs
  std::string source;   // what the compiler is given
  std::string options;  // of clBuildProgram
  TextOrigin origin = TextOrigin::Plugin;
};

}  // namespace ocltensor::opencl
