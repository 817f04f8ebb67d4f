// Writes cases with their results to a file that an oracle can replay. The format is documented in
// tests/oracle/replay.py: per case one line of JSON, followed by `bytes` raw bytes.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "reference.h"

namespace ocltensor::testing {

class Recorder {
 public:
  // Begins the file, or continues it. Throws where it cannot be written.
  Recorder(const std::string& path, bool append);
  Recorder(const Recorder&) = delete;
  ~Recorder();
  void write(const Case& c, const std::vector<HostTensor>& outs,
             const std::vector<Expected>& expected);

 private:
  std::FILE* file_;
};

}  // namespace ocltensor::testing
