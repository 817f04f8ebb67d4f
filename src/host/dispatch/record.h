// Recording an operator's call: what its derivative needs, saved before it runs.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/operators.h"
#include "host/autograd/tape.h"
#include "ocltensor/call.h"

namespace ocltensor::detail {

// The arguments and results of a call that a derivative asks for, by position.
class SavedCall {
 public:
  SavedCall(const Operator& op, std::span<const tb_value> args, uint64_t saved_tensors);
  SavedCall(const SavedCall&) = delete;
  void add_results(std::span<const Tensor> results, uint64_t saved);

  // A number is given as a tensor without dimensions on the CPU.
  Tensor tensor(size_t i) const;
  // A floating tensor in the type of the result, so that no formula computes in a less precise one.
  Tensor operand(size_t i, DType result) const;
  std::optional<Tensor> optional_tensor(size_t i) const;
  std::vector<Tensor> tensors(size_t i) const;  // of a list; undefined where there is none
  Tensor result(size_t i) const { return results_[i].get(op_.name); }
  // Of a tensor, whether or not its elements were saved; of a number: none.
  const Dims& sizes(size_t i) const { return entries_[i].sizes; }
  const std::vector<Dims>& list_sizes(size_t i) const { return entries_[i].list_sizes; }
  DType dtype(size_t i) const { return entries_[i].dtype; }
  bool is_tensor(size_t i) const { return entries_[i].tag == TB_TENSOR; }

  Scalar number(size_t i) const;
  std::optional<Scalar> optional_number(size_t i) const;
  int64_t integer(size_t i) const { return number(i).as_int(); }
  std::optional<int64_t> optional_integer(size_t i) const;
  double real(size_t i) const { return number(i).as_double(); }
  std::optional<double> optional_real(size_t i) const;
  bool boolean(size_t i) const { return number(i).as_bool(); }
  std::optional<bool> optional_boolean(size_t i) const;
  IntList ints(size_t i) const;
  std::string_view string(size_t i) const { return entries_[i].text; }
  std::optional<std::string_view> optional_string(size_t i) const;
  std::optional<DType> optional_dtype(size_t i) const;

  const Operator& op() const { return op_; }

 private:
  struct Entry {
    uint32_t tag = TB_NONE;
    SavedTensor tensor;
    std::vector<SavedTensor> tensors;
    std::vector<Dims> list_sizes;
    Dims sizes;
    DType dtype = DType::Float32;
    std::vector<int64_t> ints;
    std::string text;
    Scalar number{0};
  };
  const Operator& op_;
  std::vector<Entry> entries_;
  std::vector<SavedTensor> results_;
};

// What a derivative writes: gradients by the position of an argument, of those that are wanted.
class Gradients {
 public:
  Gradients(const Node& node, std::span<const size_t> first) : node_(node), first_(first) {
    values_.resize(node.edges.size());
  }
  bool wants(size_t i) const {
    for (size_t e = first_[i]; e < first_[i + 1]; ++e)
      if (node_.edges[e].wanted()) return true;
    return false;
  }
  void set(size_t i, Tensor gradient) { values_[first_[i]] = std::move(gradient); }
  void set(size_t i, const std::vector<Tensor>& list) {
    for (size_t k = 0; k < list.size(); ++k) values_[first_[i] + k] = list[k];
  }
  std::vector<Tensor> take() { return std::move(values_); }

 private:
  const Node& node_;
  std::span<const size_t> first_;
  std::vector<Tensor> values_;
};

// A row of derivatives.def, generated.
struct Derivative {
  using Function = void (*)(const SavedCall& c, const std::vector<Tensor>& grads, Gradients& to);
  const char* name;
  Function function;       // nullptr: no gradient passes
  uint64_t saved_tensors;  // positions of arguments whose elements are needed
  uint64_t saved_results;  // the same of results
  uint64_t known;          // positions of arguments that have a formula
  uint64_t passing;        // positions of results whose gradient the formulas read
  bool complex;            // the formulas hold for complex numbers, too
};
std::span<const Derivative> derivatives();

// The recording of one call: made before it runs, finished after.
class Recording {
 public:
  // TB_E_INVALID where the call would lose a gradient: see autograd.h.
  Recording(const Operator& op, std::span<const tb_value> args, std::span<const Tensor> outs,
            bool in_place);
  void finish(std::span<const Tensor> results);

 private:
  const Derivative* derivative_;
  std::shared_ptr<SavedCall> call_;
  std::vector<Edge> edges_;
  std::vector<size_t> first_;  // of each argument's edges; one more: their number
  bool complex_ = false;       // one of the tensors is
};

// Notes in the storages what a call writes, for tensors that the tape has saved.
void count_changes(const Operator& op, std::span<const tb_value> args,
                   std::span<const Tensor> outs);

// Whether one of the call's tensors needs a gradient.
bool needs_recording(std::span<const tb_value> args);

}  // namespace ocltensor::detail
