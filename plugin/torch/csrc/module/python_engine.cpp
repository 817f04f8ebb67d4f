// Calls of an engine as calls of a Python object.
#include "python_engine.h"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace torch_ocl {
namespace {

namespace py = pybind11;
using distributed::Combine;
using distributed::Engine;
using distributed::Number;
using distributed::Span;
using distributed::Spans;

constexpr std::array kNumbers{"Float32", "Float64", "Int8", "UInt8", "Int32", "Int64"};
constexpr std::array kCombinations{"Sum", "Product", "Min", "Max", "BitAnd", "BitOr", "BitXor"};

py::memoryview view_of(Span span) {
  static std::byte nothing;  // a view needs an address
  return py::memoryview::from_memory(span.bytes != 0 ? span.data : &nothing,
                                     static_cast<py::ssize_t>(span.bytes));
}

py::list views_of(const Spans& spans) {
  py::list views;
  for (const Span& span : spans) views.append(view_of(span));
  return views;
}

double seconds(Engine::Limit limit) { return std::chrono::duration<double>(limit).count(); }

class PythonEngine final : public Engine {
 public:
  explicit PythonEngine(py::object object) : object_(std::move(object)) {}
  ~PythonEngine() override {
    if (!Py_IsInitialized()) {  // the object is gone with the interpreter
      (void)object_.release();
      return;
    }
    const py::gil_scoped_acquire gil;
    object_ = py::object();
  }

  void broadcast(Span memory, int root, Limit limit) override {
    call("broadcast", [&] { return py::make_tuple(view_of(memory), root, seconds(limit)); });
  }
  void allreduce(Span memory, Number type, Combine how, Limit limit) override {
    call("allreduce",
         [&] { return py::make_tuple(view_of(memory), name(type), name(how), seconds(limit)); });
  }
  void reduce(Span memory, Number type, Combine how, int root, Limit limit) override {
    call("reduce", [&] {
      return py::make_tuple(view_of(memory), name(type), name(how), root, seconds(limit));
    });
  }
  void allgather(const Spans& all, Span own, Limit limit) override {
    call("allgather", [&] { return py::make_tuple(views_of(all), view_of(own), seconds(limit)); });
  }
  void gather(const Spans& all, Span own, int root, Limit limit) override {
    call("gather",
         [&] { return py::make_tuple(views_of(all), view_of(own), root, seconds(limit)); });
  }
  void scatter(Span own, const Spans& all, int root, Limit limit) override {
    call("scatter",
         [&] { return py::make_tuple(view_of(own), views_of(all), root, seconds(limit)); });
  }
  void alltoall(const Spans& received, const Spans& sent, Limit limit) override {
    call("alltoall",
         [&] { return py::make_tuple(views_of(received), views_of(sent), seconds(limit)); });
  }
  void exchange_notes(Span sent, int to, Span received, int from, Limit limit) override {
    call("exchange_notes", [&] {
      return py::make_tuple(view_of(sent), to, view_of(received), from, seconds(limit));
    });
  }
  void send(Span memory, int to, int tag, Limit limit) override {
    call("send", [&] { return py::make_tuple(view_of(memory), to, tag, seconds(limit)); });
  }
  int receive(Span memory, std::optional<int> from, int tag, Limit limit) override {
    return call("receive",
                [&] { return py::make_tuple(view_of(memory), from, tag, seconds(limit)); });
  }
  void barrier(Limit limit) override {
    call("barrier", [&] { return py::make_tuple(seconds(limit)); });
  }
  void monitored_barrier(bool all, Limit limit) override {
    call("monitored_barrier", [&] { return py::make_tuple(all, seconds(limit)); });
  }
  void set_limit(Limit) override {}  // each call has its own

 private:
  static const char* name(Number type) { return kNumbers.at(static_cast<size_t>(type)); }
  static const char* name(Combine how) { return kCombinations.at(static_cast<size_t>(how)); }

  // What the function returns, if that is a number. Errors leave without the object that was
  // raised, which only a thread with the GIL may release.
  template <typename Arguments>
  int call(const char* function, Arguments arguments) {
    const py::gil_scoped_acquire gil;
    std::string error;
    try {
      const py::object result = object_.attr(function)(*arguments());
      return result.is_none() ? 0 : result.cast<int>();
    } catch (const py::error_already_set& raised) {
      error = py::str(raised.value()).cast<std::string>();
    }
    throw std::runtime_error(error);
  }

  py::object object_;
};

}  // namespace

std::shared_ptr<Engine> make_python_engine(py::object object) {
  return std::make_shared<PythonEngine>(std::move(object));
}

}  // namespace torch_ocl
