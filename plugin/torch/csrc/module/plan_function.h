// A finished plan as a function of a graph's arguments. The garbage collector knows what it holds
// of Python: the module that it belongs to holds it, too.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <variant>

#include "plan/plan.h"

namespace torch_ocl {

struct Plan {
  size_t values = 0;
  std::vector<size_t> taken;                                 // places of the graph's arguments
  std::vector<std::pair<pybind11::object, size_t>> globals;  // names, and their places
  pybind11::object names;                                    // of the module
  plan::Steps steps;
  std::vector<std::variant<size_t, pybind11::object>> given;  // places, or what never varies
  std::vector<pybind11::object> functions;                    // of the steps that are Python
  pybind11::object python;                                    // the same graph in Python
};

// A callable object that takes a list, which it empties, and returns a tuple.
pybind11::object make_plan_function(Plan plan);

}  // namespace torch_ocl
