// What the user asked of the conformance kit.
#pragma once

#include <cstdint>
#include <regex>
#include <string>
#include <vector>

#include "ocltensor/dtype.h"

namespace ocltensor::conformance {

struct Options {
  std::string plugin = "cpu";
  int32_t device = 0;
  std::string only;           // regular expression for operator names; empty: all
  std::string check;          // the same for ABI checks
  std::vector<DType> dtypes;  // empty: all
  int cases = 10;             // per operator and dtype
  double budget = 0;          // processor seconds for the operator part; 0: none
  uint64_t seed = 0;
  int shard = 0, shards = 1;  // of the operators: every shards-th one, from `shard`
  std::string record, json, junit, rules;
  double timeout = 120;  // seconds that a group of checks or a case may take; 0: no limit
  bool list = false, quick = false, verbose = false;
  bool in_process = false;       // no process of its own for each group: for debuggers
  bool rounded_weights = false;  // of 16-bit attention: Case::summands
  bool minimal = false;          // what a backend need not implement may be declined
  bool abi = true, operators = true;

  bool wants(const std::string& op) const {
    return only.empty() || std::regex_search(op, std::regex(only));
  }
  bool wants(DType dtype) const {
    if (dtypes.empty()) return true;
    for (const DType t : dtypes)
      if (t == dtype) return true;
    return false;
  }
};

}  // namespace ocltensor::conformance
