// The class Plan: its steps are added one by one, then it is a function of a graph's arguments.
#include "plan.h"

#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <optional>
#include <string>
#include <variant>

#include "kernel_launch.h"
#include "plan/call.h"
#include "plan/launch.h"
#include "plan/steps.h"
#include "plan_function.h"
#include "plan_values.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;
using plan::Integer;
using plan::Integers;
using Programs = std::vector<Integer::Text>;

Integers integers_of(const Programs& programs) {
  std::vector<Integer> parts;
  parts.reserve(programs.size());
  for (const Integer::Text& program : programs) parts.emplace_back(program);
  return Integers(std::move(parts));
}

template <typename Step, typename... Arguments>
void add(Plan& plan, Arguments&&... arguments) {
  plan.steps.push_back(std::make_unique<Step>(std::forward<Arguments>(arguments)...));
}

// The last step becomes what another one does at need.
std::unique_ptr<plan::Step> take_last(Plan& plan) {
  TORCH_CHECK_VALUE(!plan.steps.empty(), "a check needs the step that refuses");
  auto last = std::move(plan.steps.back());
  plan.steps.pop_back();
  return last;
}

// ---- Arguments of operators: ("default", None), ("constant", an object), ("value", a place),
// ("integer", a program) or ("list", of such).
plan::CallArgument argument_of(const py::tuple& text, const c10::TypePtr& type,
                               std::optional<int32_t> length = std::nullopt) {
  using Kind = plan::CallArgument::Kind;
  plan::CallArgument argument;
  const auto kind = text[0].cast<std::string>();
  if (kind == "constant") {
    argument.constant = torch::jit::toIValue(text[1], type, length);
  } else if (kind == "value") {
    argument.kind = Kind::Value;
    argument.value = text[1].cast<size_t>();
  } else if (kind == "integer") {
    argument.kind = Kind::Number;
    argument.number = Integer(text[1].cast<Integer::Text>());
  } else {
    argument.kind = Kind::List;
    const auto optional = type->cast<c10::OptionalType>();
    const c10::TypePtr& list = optional ? optional->getElementType() : type;
    argument.type = list->expectRef<c10::ListType>().getElementType();
    for (const py::handle part : text[1])
      argument.parts.push_back(argument_of(part.cast<py::tuple>(), argument.type));
  }
  return argument;
}

void add_call(Plan& plan, std::optional<size_t> to, const std::string& name,
              const std::string& overload, const py::list& texts) {
  auto target = plan::operator_named(name, overload);
  const auto& wanted = target.schema().arguments();
  TORCH_CHECK_VALUE(wanted.size() == texts.size(), name, " takes ", wanted.size(), " arguments");
  std::vector<plan::CallArgument> arguments;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto text = texts[i].cast<py::tuple>();
    if (text[0].cast<std::string>() == "default")
      arguments.emplace_back().constant = wanted[i].default_value().value();
    else
      arguments.push_back(argument_of(text, wanted[i].real_type(), wanted[i].N()));
  }
  add<plan::Call>(plan, std::move(target), std::move(arguments), to);
}

Integers integers_of(const LaunchSizes& sizes) {
  Programs programs;
  for (uint32_t i = 0; i < sizes.rank; ++i)
    programs.push_back({{"constant", static_cast<int64_t>(sizes.values.at(i))}});
  return integers_of(programs);
}

// `threads` and `group` None: those that are prepared.
void add_launch(Plan& plan, const py::object& kernel,
                const std::vector<std::variant<size_t, Integer::Text>>& texts,
                const std::optional<Programs>& threads, const std::optional<Programs>& group) {
  const KernelReference* const reference = prepared_kernel(kernel.ptr());
  const LaunchRange* const range = prepared_range(kernel.ptr());
  TORCH_CHECK_VALUE(reference != nullptr && (threads.has_value() || range != nullptr),
                    "no prepared kernel");
  std::vector<plan::LaunchArgument> arguments;
  for (const auto& text : texts) {
    if (const auto* place = std::get_if<size_t>(&text))
      arguments.push_back({*place, Integer({{"constant", 0}})});
    else
      arguments.push_back({std::nullopt, Integer(std::get<Integer::Text>(text))});
  }
  add<plan::Launch>(plan, *reference, std::move(arguments),
                    threads ? integers_of(*threads) : integers_of(range->threads),
                    group ? integers_of(*group) : integers_of(range->group));
}

// A place, or -1 and what never varies.
void add_results(Plan& plan, const std::vector<std::pair<int64_t, py::object>>& results) {
  for (const auto& [place, object] : results) {
    if (place < 0)
      plan.given.emplace_back(object);
    else
      plan.given.emplace_back(static_cast<size_t>(place));
  }
}

c10::TensorOptions options_of(const py::object& type, const std::string& device) {
  const auto* const dtype = reinterpret_cast<THPDtype*>(type.ptr());
  TORCH_CHECK_TYPE(THPDtype_Check(type.ptr()), "not a dtype");
  return c10::TensorOptions().dtype(dtype->scalar_type).device(c10::Device(device));
}

}  // namespace

void bind_plans(py::module_& module) {
  using Place = size_t;
  using Places = std::vector<size_t>;
  py::class_<Plan>(module, "Plan")
      .def(py::init<>())
      .def("take", [](Plan& p, Places places) { p.taken = std::move(places); })
      .def("look_up",
           [](Plan& p, py::dict names, std::vector<std::pair<py::object, size_t>> globals) {
             p.names = std::move(names), p.globals = std::move(globals);
           })
      .def("allocate",
           [](Plan& p, Place to, const Programs& sizes, const Programs& strides,
              const py::object& type, const std::string& device) {
             add<plan::Allocate>(p, to, integers_of(sizes), integers_of(strides),
                                 options_of(type, device));
           })
      .def("view",
           [](Plan& p, Place to, Place from, const Programs& sizes, const Programs& strides,
              const Integer::Text& offset) {
             add<plan::View>(p, to, from, integers_of(sizes), integers_of(strides),
                             Integer(offset));
           })
      .def("copy", [](Plan& p, Place to, Place from) { add<plan::Copy>(p, to, from); })
      .def("free", [](Plan& p, Places places) { add<plan::Free>(p, std::move(places)); })
      .def("compute", [](Plan& p, Place to,
                         const Integer::Text& text) { add<plan::Compute>(p, to, Integer(text)); })
      .def("item", [](Plan& p, Place to, Place from, size_t i) { add<plan::Item>(p, to, from, i); })
      .def("check_sizes",
           [](Plan& p, Place value, const Programs& sizes, const Programs& strides) {
             auto refuse = take_last(p);
             add<plan::CheckSizes>(p, value, integers_of(sizes), integers_of(strides),
                                   std::move(refuse));
           })
      .def("check_offset",
           [](Plan& p, Place value, int64_t bytes) {
             TORCH_CHECK_VALUE(bytes > 0, "a number of bytes is over 0");
             auto refuse = take_last(p);
             add<plan::CheckOffset>(p, value, bytes, std::move(refuse));
           })
      .def("enter_device",
           [](Plan& p, int64_t device) {
             add<plan::EnterDevice>(p, static_cast<c10::DeviceIndex>(device));
           })
      .def("leave_device", [](Plan& p) { add<plan::LeaveDevice>(p); })
      .def("__len__", [](const Plan& p) { return p.steps.size(); })
      .def("cut", [](Plan& p, size_t length) { p.steps.resize(length); })
      .def("call", torch::wrap_pybind_function(add_call))
      .def("launch", torch::wrap_pybind_function(add_launch))
      .def("python",
           [](Plan& p, py::object function, Places reads, Places writes) {
             add<PythonStep>(p, function.ptr(), std::move(reads), std::move(writes));
             p.functions.push_back(std::move(function));
           })
      .def("give", add_results)
      .def("finish", [](Plan& p, size_t values, py::object python) {
        p.values = values, p.python = std::move(python);
        return make_plan_function(std::move(p));
      });
}

}  // namespace torch_ocl
