// The results of a run: printed as they come, and written as JSON and as JUnit's XML.
#pragma once

#include <string>
#include <vector>

#include "event.h"
#include "options.h"
#include "table.h"

namespace ocltensor::conformance {

class Report {
 public:
  explicit Report(const Options& options) : options_(options) {}

  struct Group {
    std::string title;
    int checks = 0;
    std::vector<std::string> failures, notes;
    double seconds = 0;
  };
  // A group of checks, as it has ended.
  void group(Group group);
  // What a case of an operator came to.
  void add(const Event& event);

  int failures() const;
  void print_table() const;
  // Both are written where the options name a file. They throw where they cannot be written.
  void write() const;

 private:
  void write_json() const;
  void write_junit() const;
  const Options& options_;
  std::vector<Group> groups_;
  Table table_;
};

}  // namespace ocltensor::conformance
