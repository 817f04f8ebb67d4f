// Writes cases with their results to a file that an oracle can replay. The format is documented in
// tests/oracle/replay.py: per case one line of JSON, followed by `bytes` raw bytes.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "reference.h"

namespace ocltensor::testing {

// Of a sum of weights times results.
struct RecordedGradients {
  struct Leaf {
    size_t argument;
    int position;             // in a list, or -1
    std::string preparation;  // what was done to the argument before the call
    HostTensor gradient;
  };
  std::vector<Leaf> leaves;
  std::vector<HostTensor> weights;  // by result
  std::vector<bool> weighted;       // false: the result takes no part
  std::string result_form;          // what was done to the results
};

class Recorder {
 public:
  // Begins the file, or continues it. Throws where it cannot be written.
  Recorder(const std::string& path, bool append);
  Recorder(const Recorder&) = delete;
  ~Recorder();
  void write(const Case& c, const std::vector<HostTensor>& outs,
             const std::vector<Expected>& expected);
  // For tests/oracle/gradients.py, where the fields are explained.
  void write(const Case& c, const RecordedGradients& gradients);

 private:
  void write(const std::string& line, const std::string& bytes);
  std::FILE* file_;
};

}  // namespace ocltensor::testing
