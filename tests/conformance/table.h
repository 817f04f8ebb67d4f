// Results per operator and dtype, printed as a table and written as JSON.
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
  void fail(std::string line) { failures_.push_back(std::move(line)); }
  int failures() const { return static_cast<int>(failures_.size()); }
  Cell total() const;
  // "passed/failed/declined" cells; operators in order of name.
  std::string text() const;
  void write_json(const std::string& path, const std::string& plugin) const;

 private:
  std::map<std::string, std::map<DType, Cell>> rows_;
  std::map<std::string, int> reasons_;
  std::vector<std::string> failures_;
};

}  // namespace ocltensor::conformance
