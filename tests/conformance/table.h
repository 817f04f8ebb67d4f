// Results per operator and dtype, printed as a table.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ocltensor/dtype.h"

namespace ocltensor::conformance {

struct Cell {
  int passed = 0, failed = 0, declined = 0, not_run = 0;
};

class Table {
 public:
  Cell& cell(const std::string& op, DType dtype) { return rows_[op][dtype]; }
  void decline(const std::string& reason) { ++reasons_[reason]; }
  void fail(const std::string& op, DType dtype, std::string line) {
    ++cell(op, dtype).failed;
    failures_.push_back({op, dtype, std::move(line)});
  }
  struct Failure {
    std::string op;
    DType dtype;
    std::string line;
  };
  const std::vector<Failure>& failures() const { return failures_; }
  const std::map<std::string, std::map<DType, Cell>>& rows() const { return rows_; }
  Cell total() const;
  // "passed/failed/declined" cells; operators in order of name.
  std::string text() const;
  const std::map<std::string, int>& reasons() const { return reasons_; }

 private:
  std::map<std::string, std::map<DType, Cell>> rows_;
  std::map<std::string, int> reasons_;
  std::vector<Failure> failures_;
};

}  // namespace ocltensor::conformance
