// The result table.
#include "table.h"

#include <fmt/format.h>

#include <set>

namespace ocltensor::conformance {
namespace {

std::string cell_text(const Cell& c) {
  if (c.failed > 0) return fmt::format("{} FAIL", c.failed);
  if (c.passed > 0) return fmt::format("{}{}", c.passed, c.declined > 0 ? "+" : "");
  if (c.declined > 0) return "declined";
  return c.not_run > 0 ? "not run" : "-";
}

}  // namespace

Cell Table::total() const {
  Cell sum;
  for (const auto& [op, cells] : rows_)
    for (const auto& [dtype, c] : cells) {
      sum.passed += c.passed;
      sum.failed += c.failed;
      sum.declined += c.declined;
      sum.not_run += c.not_run;
    }
  return sum;
}

std::string Table::text() const {
  std::string text = fmt::format("{:<46}", "operator");
  std::set<DType> columns;  // of the types that cases have
  for (const auto& [op, cells] : rows_)
    for (const auto& [dtype, cell] : cells) columns.insert(dtype);
  for (const DType t : columns) text += fmt::format("{:>9}", info(t).suffix);
  text += "\n";
  for (const auto& [op, cells] : rows_) {
    text += fmt::format("{:<46}", op);
    for (const DType t : columns) {
      const auto it = cells.find(t);
      text += fmt::format("{:>9}", it == cells.end() ? "" : cell_text(it->second));
    }
    text += "\n";
  }
  if (!reasons_.empty()) text += "declined (\"9+\": 9 cases passed, others declined), by reason:\n";
  for (const auto& [reason, count] : reasons_) text += fmt::format("  {:>5}  {}\n", count, reason);
  const Cell sum = total();
  text += fmt::format("{} operators: {} cases passed, {} failed, {} declined, {} not run\n",
                      rows_.size(), sum.passed, sum.failed, sum.declined, sum.not_run);
  return text;
}

}  // namespace ocltensor::conformance
