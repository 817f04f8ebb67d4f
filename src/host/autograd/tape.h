// The tape: nodes of recorded operators, and what a tensor knows of its gradient.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/core/storage.h"
#include "ocltensor/autograd.h"

namespace ocltensor::detail {

struct Node;

// Where a gradient goes: to an output of a node, or to a leaf; nowhere if both are none. What the
// gradient has to look like is that of the tensor that was an input.
struct Edge {
  std::shared_ptr<Node> node;
  std::shared_ptr<TensorImpl> leaf;
  uint32_t output = 0;
  Dims sizes;
  DType dtype = DType::Float32;
  Device device;
  bool wanted() const { return node != nullptr || leaf != nullptr; }
};

// A tensor of a shape to which `sizes` broadcast, as the sum over what was repeated.
Tensor summed_to(const Tensor& t, const Dims& sizes);

// One recorded operator. Nodes are visited by falling number: an operator's inputs were recorded
// before it.
struct Node {
  std::string name;
  uint64_t number = 0;
  std::vector<Edge> edges;
  size_t outputs = 1;
  BackwardFunction backward;  // empty once the tape was freed
  Node() = default;
  Node(const Node&) = delete;
  ~Node();  // frees a long tape without deep recursion
};

struct GradientState {
  bool wanted = false;         // of a leaf
  std::shared_ptr<Node> node;  // none: a leaf
  uint32_t output = 0;         // of the node
  uint32_t version = 0;        // of the storage when the node was made
  Tensor grad;
};

// False while no tensor of the process has asked for a gradient, and under NoGrad.
inline std::atomic<bool> any_gradient_wanted{false};
inline bool may_record() {
  return any_gradient_wanted.load(std::memory_order_relaxed) && grad_enabled();
}
inline bool may_have_gradient(DType type) { return is_floating(type) || is_complex(type); }
inline bool needs_gradient(const TensorImpl& t) {
  return t.gradient != nullptr && (t.gradient->wanted || t.gradient->node != nullptr);
}
inline bool needs_gradient(const Tensor& t) { return t.defined() && needs_gradient(*t.impl()); }

// The way to a tensor's gradient. TB_E_INVALID if its memory was changed through another tensor
// since it was recorded.
Edge edge_to(const Tensor& t);
std::shared_ptr<Node> make_node(std::string name, std::vector<Edge> edges, size_t outputs,
                                BackwardFunction backward);
// Makes `t` output number `output` of the node, if its type can have gradients.
void set_history(const Tensor& t, const std::shared_ptr<Node>& node, uint32_t output);
// TB_E_INVALID unless a change of `t` in place can be recorded.
void check_in_place(const Tensor& t, const char* name);

// A tensor that is a function of one other: `back` turns its gradient into that of `self`.
void record_function(const char* name, const Tensor& self, const Tensor& result,
                     std::function<Tensor(const Tensor&)> back);
// The same for a view of `self`, which is returned.
template <typename Back>
Tensor record_view(const char* name, const Tensor& self, Tensor view, Back&& back) {
  if (may_record() && needs_gradient(self)) [[unlikely]]
    record_function(name, self, view, std::forward<Back>(back));
  return view;
}

// A tensor that a derivative needs. Its elements must be as they were.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(Tensor t);
  // Of the node that saves it: without its history, which would hold itself.
  static SavedTensor output(const Tensor& t);
  const Tensor& get(const std::string& user) const;
  bool defined() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
  uint32_t version_ = 0;
};

// The sum over what was broadcast: of the wanted shape, dtype and device.
Tensor as_gradient_of(const Tensor& gradient, const Edge& edge);

}  // namespace ocltensor::detail
