// The type PreparedKernel, called by Python's vectorcall protocol.
#include "kernel_launch.h"

#include <structmember.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <list>
#include <variant>
#include <vector>

namespace torch_ocl {
namespace {

namespace py = pybind11;

[[noreturn]] void refuse_sizes(PyObject* value, const char* name) {
  PyErr_Clear();
  C10_THROW_ERROR(ValueError, c10::str(name, " must be one to three sizes of at least 0, got ",
                                       std::string(py::repr(py::handle(value)))));
}

LaunchSizes sizes_of(PyObject* value, const char* name) {
  LaunchSizes sizes;
  if (value == Py_None) return sizes;
  const auto add = [&](PyObject* item) {
    const long long size = PyLong_Check(item) ? PyLong_AsLongLong(item) : -1;
    if (size < 0 || sizes.rank == sizes.values.size()) refuse_sizes(value, name);
    sizes.values[sizes.rank++] = static_cast<uint64_t>(size);
  };
  if (PyLong_Check(value)) {
    add(value);
    return sizes;
  }
  const auto items =
      py::reinterpret_steal<py::object>(PySequence_Fast(value, "sizes are numbers or a sequence"));
  if (!items) throw py::error_already_set();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
    add(PySequence_Fast_GET_ITEM(items.ptr(), i));
  if (sizes.rank == 0) refuse_sizes(value, name);
  return sizes;
}

// The arguments of one launch in the plugin's form.
class LaunchArguments {
 public:
  LaunchArguments(const KernelReference& kernel, PyObject* const* args, size_t count)
      : kernel_(kernel) {
    values_.resize(count);
    tensors_.reserve(count);  // so that their addresses stay
    for (size_t i = 0; i < count; ++i) pack(values_[i], args[i], i);
  }
  const tb_value* values() const { return values_.data(); }
  uint32_t count() const { return static_cast<uint32_t>(values_.size()); }
  // Elements of the first tensor; -1 if there is none.
  int64_t first_elements() const { return first_elements_; }

 private:
  using List = std::variant<std::vector<int64_t>, std::vector<double>>;

  void pack(tb_value& v, PyObject* argument, size_t position) {
    v = {};
    if (THPVariable_Check(argument)) return pack_tensor(v, THPVariable_Unpack(argument));
    if (PyFloat_CheckExact(argument)) {
      v.tag = TB_FLOAT;
      v.as.f = PyFloat_AS_DOUBLE(argument);
      return;
    }
    if (PyBool_Check(argument)) {
      v.tag = TB_BOOL;
      v.as.i = argument == Py_True;
      return;
    }
    if (PyLong_Check(argument)) return pack_integer(v, argument);
    pack_other(v, argument, position);
  }

  void pack_tensor(tb_value& v, const at::Tensor& tensor) {
    if (first_elements_ < 0) first_elements_ = tensor.numel();
    tensors_.push_back(describe_argument(kernel_, tensor));
    v.tag = TB_TENSOR;
    v.as.p = &tensors_.back();
  }

  static void pack_integer(tb_value& v, PyObject* integer) {
    v.tag = TB_INT;
    v.as.i = PyLong_AsLongLong(integer);
    if (v.as.i == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  }

  // Bytes, lists, and numbers of other libraries.
  void pack_other(tb_value& v, PyObject* argument, size_t position) {
    const PyNumberMethods* number = Py_TYPE(argument)->tp_as_number;
    if (PyBytes_Check(argument)) {
      point(v, TB_STRING, PyBytes_AS_STRING(argument), PyBytes_GET_SIZE(argument));
    } else if (PySequence_Check(argument) && !PyUnicode_Check(argument)) {
      pack_list(v, argument, position);
    } else if (PyIndex_Check(argument)) {
      const auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(argument));
      if (!integer) throw py::error_already_set();
      pack_integer(v, integer.ptr());
    } else if (number != nullptr && number->nb_float != nullptr) {
      v.tag = TB_FLOAT;
      v.as.f = PyFloat_AsDouble(argument);
      if (v.as.f == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    } else {
      refuse(argument, position);
    }
  }

  void pack_list(tb_value& v, PyObject* argument, size_t position) {
    try {
      lists_.push_back(py::cast<List>(py::handle(argument)));
    } catch (const py::cast_error&) {
      refuse(argument, position);
    }
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&lists_.back()))
      return point(v, TB_INT_LIST, integers->data(), integers->size());
    const auto& reals = std::get<std::vector<double>>(lists_.back());
    point(v, TB_FLOAT_LIST, reals.data(), reals.size());
  }

  template <typename Count>
  static void point(tb_value& v, uint32_t tag, const void* data, Count count) {
    v.tag = tag;
    v.as.p = data;
    v.count = static_cast<uint32_t>(count);
  }

  [[noreturn]] void refuse(PyObject* argument, size_t position) const {
    C10_THROW_ERROR(TypeError,
                    c10::str("kernel ", kernel_.name, ", argument ", position,
                             ": tensors, numbers, lists of numbers and bytes can be passed, not ",
                             Py_TYPE(argument)->tp_name));
  }

  const KernelReference& kernel_;
  c10::SmallVector<tb_value, 16> values_;
  c10::SmallVector<tb_tensor, 8> tensors_;
  std::list<List> lists_;  // usually none
  int64_t first_elements_ = -1;
};

void launch(const KernelReference& kernel, const LaunchRange& range, PyObject* const* args,
            size_t count) {
  const LaunchArguments in(kernel, args, count);
  LaunchRange used = range;
  if (used.threads.rank == 0) {
    if (in.first_elements() < 0)
      C10_THROW_ERROR(ValueError, "threads must be given to a kernel without tensors");
    used.threads = {1, {static_cast<uint64_t>(in.first_elements())}};
  }
  if (used.group.rank != 0 && used.group.rank != used.threads.rank)
    C10_THROW_ERROR(ValueError, c10::str("group_size has ", used.group.rank,
                                         " dimensions, threads has ", used.threads.rank));
  const py::gil_scoped_release release;  // a launch waits if the host is far ahead of the device
  launch_kernel(kernel, in.values(), in.count(), used);
}

// ---- the Python type
struct PreparedKernel {
  PyObject_HEAD vectorcallfunc vectorcall;
  KernelReference* kernel;
  LaunchRange* range;
};
PreparedKernel& from(PyObject* self) { return *reinterpret_cast<PreparedKernel*>(self); }

PyObject* call(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) {
  HANDLE_TH_ERRORS
  const PreparedKernel& prepared = from(self);
  if (names != nullptr && PyTuple_GET_SIZE(names) != 0)
    C10_THROW_ERROR(TypeError, c10::str("the prepared kernel ", prepared.kernel->name,
                                        " takes its arguments by position alone"));
  launch(*prepared.kernel, *prepared.range, args, static_cast<size_t>(PyVectorcall_NARGS(flagged)));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

// enqueue(arguments: tuple, threads, group_size)
PyObject* enqueue(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  if (count != 3 || !PyTuple_Check(args[0]))
    C10_THROW_ERROR(TypeError, "enqueue takes a tuple of arguments, threads and group_size");
  const LaunchRange range{sizes_of(args[1], "threads"), sizes_of(args[2], "group_size")};
  launch(*from(self).kernel, range, &PyTuple_GET_ITEM(args[0], 0),
         static_cast<size_t>(PyTuple_GET_SIZE(args[0])));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete from(self).kernel;
  delete from(self).range;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<prepared kernel %s>", from(self).kernel->name.c_str());
}

// Kept for the life of the process.
PyTypeObject* prepared_type() {
  static PyMethodDef methods[] = {
      {"enqueue", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(enqueue)),
       METH_FASTCALL, "enqueue(arguments, threads, group_size): launches with another range"},
      {nullptr, nullptr, 0, nullptr}};
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(PreparedKernel, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
      {Py_tp_repr, reinterpret_cast<void*>(represent)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_doc, const_cast<char*>("A custom kernel with a fixed range; made by Kernel.prepare")},
      {0, nullptr}};
  static PyType_Spec spec{"torch_ocl._C.PreparedKernel", sizeof(PreparedKernel), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type == nullptr) throw py::error_already_set();
  return type;
}

}  // namespace

py::object prepare_kernel(KernelReference kernel, const py::object& threads,
                          const py::object& group) {
  const LaunchRange range{sizes_of(threads.ptr(), "threads"), sizes_of(group.ptr(), "group_size")};
  const uint32_t rank = range.threads.rank == 0 ? 1 : range.threads.rank;
  if (range.group.rank != 0 && range.group.rank != rank)
    C10_THROW_ERROR(ValueError, c10::str("group_size has ", range.group.rank,
                                         " dimensions, threads has ", rank));
  PyTypeObject* type = prepared_type();
  auto made = py::reinterpret_steal<py::object>(type->tp_alloc(type, 0));
  if (!made) throw py::error_already_set();
  from(made.ptr()).vectorcall = call;
  from(made.ptr()).kernel = new KernelReference(std::move(kernel));
  from(made.ptr()).range = new LaunchRange(range);
  return made;
}

const KernelReference* prepared_kernel(PyObject* object) {
  if (PyCFunction_Check(object) &&
      PyCFunction_GET_FUNCTION(object) ==
          reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(enqueue)))
    object = PyCFunction_GET_SELF(object);
  return Py_TYPE(object) == prepared_type() ? from(object).kernel : nullptr;
}

const LaunchRange* prepared_range(PyObject* object) {
  return Py_TYPE(object) == prepared_type() ? from(object).range : nullptr;
}

void bind_prepared_kernels(py::module_& module) {
  module.attr("PreparedKernel") =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(prepared_type()));
}

}  // namespace torch_ocl
