// What is recorded, and going back through it.
#include "tape.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "ocltensor/functional.h"

namespace ocltensor {
namespace {

bool& enabled() noexcept {
  thread_local bool on = true;
  return on;
}

std::shared_ptr<detail::GradientState>& state_of(const Tensor& t) {
  auto& state = t.impl()->gradient;
  if (state == nullptr) state = std::make_shared<detail::GradientState>();
  return state;
}

}  // namespace

bool grad_enabled() noexcept { return enabled(); }
NoGrad::NoGrad() noexcept : before_(enabled()) { enabled() = false; }
NoGrad::~NoGrad() { enabled() = before_; }

namespace detail {

Node::~Node() {
  // The nodes behind this one are freed by the outermost destructor, one after another.
  thread_local std::vector<std::shared_ptr<Node>>* waiting = nullptr;
  std::vector<std::shared_ptr<Node>> mine;
  const bool outermost = waiting == nullptr;
  if (outermost) waiting = &mine;
  for (Edge& edge : edges)
    if (edge.node != nullptr) waiting->push_back(std::move(edge.node));
  backward = nullptr;
  if (!outermost) return;
  while (!mine.empty()) {
    const std::shared_ptr<Node> next = std::move(mine.back());
    mine.pop_back();
  }
  waiting = nullptr;
}

Edge edge_to(const Tensor& t) {
  Edge edge;
  if (!t.defined()) return edge;
  edge.sizes = t.sizes();
  edge.dtype = t.dtype();
  edge.device = t.device();
  const auto& state = t.impl()->gradient;
  if (state == nullptr) return edge;
  if (state->node == nullptr) {
    if (state->wanted) edge.leaf = t.impl();
    return edge;
  }
  check(state->version == t.impl()->storage->version,
        "a tensor of shape {} that needs a gradient was changed in place through another tensor of "
        "the same memory after {} had made it: clone() it first",
        to_string(t.sizes()), state->node->name);
  edge.node = state->node;
  edge.output = state->output;
  return edge;
}

std::shared_ptr<Node> make_node(std::string name, std::vector<Edge> edges, size_t outputs,
                                BackwardFunction backward) {
  static std::atomic<uint64_t> count{0};
  auto node = std::make_shared<Node>();
  node->name = std::move(name);
  node->number = ++count;
  node->edges = std::move(edges);
  node->outputs = outputs;
  node->backward = std::move(backward);
  return node;
}

void set_history(const Tensor& t, const std::shared_ptr<Node>& node, uint32_t output) {
  if (!t.defined() || !may_have_gradient(t.dtype())) return;
  GradientState& state = *state_of(t);
  state.node = node;
  state.output = output;
  state.version = t.impl()->storage->version;
}

void check_in_place(const Tensor& t, const char* name) {
  const auto& state = t.impl()->gradient;
  check(state == nullptr || !state->wanted || state->node != nullptr,
        "{}: a leaf that needs a gradient cannot be changed in place: do it under NoGrad", name);
  check(t.impl()->storage.use_count() == 1,
        "{}: the change in place of a tensor of shape {} would have to be recorded, and other "
        "tensors share its memory: clone() it first, or use the form that returns a new tensor",
        name, to_string(t.sizes()));
}

void record_function(const char* name, const Tensor& self, const Tensor& result,
                     std::function<Tensor(const Tensor&)> back) {
  if (result.impl() == self.impl()) return;
  const auto node = make_node(name, {edge_to(self)}, 1, [back = std::move(back)](const auto& g) {
    return std::vector<Tensor>{back(g[0])};
  });
  set_history(result, node, 0);
}

SavedTensor::SavedTensor(Tensor t) : tensor_(std::move(t)) {
  if (tensor_.defined()) version_ = tensor_.impl()->storage->version;
}

SavedTensor SavedTensor::output(const Tensor& t) {
  return t.defined() ? SavedTensor(t.detach()) : SavedTensor();
}

const Tensor& SavedTensor::get(const std::string& user) const {
  check(!tensor_.defined() || version_ == tensor_.impl()->storage->version,
        "the gradient of {} needs a tensor of shape {} as it was, and it was changed in place "
        "since: clone() it before the change",
        user, to_string(tensor_.defined() ? tensor_.sizes() : Dims()));
  return tensor_;
}

Tensor summed_to(const Tensor& t, const Dims& sizes) {
  if (t.sizes() == sizes) return t;
  const size_t extra = t.sizes().size() - sizes.size();
  Dims summed;
  for (size_t d = 0; d < t.sizes().size(); ++d)
    if (d < extra || (sizes[d - extra] == 1 && t.sizes()[d] != 1))
      summed.push_back(static_cast<int64_t>(d));
  return (summed.empty() ? t : t.sum(summed, true)).view(sizes);
}

Tensor as_gradient_of(const Tensor& gradient, const Edge& edge) {
  Tensor g = summed_to(gradient, edge.sizes);
  if (g.dtype() != edge.dtype) g = g.to(edge.dtype);  // of complex numbers, the real part
  return g.to(edge.device);
}

namespace {

// Going back from some outputs.
class Backward {
 public:
  explicit Backward(bool retain) : retain_(retain) {}

  void start(const Tensor& output, const Tensor& gradient) { give(edge_to(output), gradient); }
  // Gradients for these tensors are kept instead of being added to grad().
  void keep(const Tensor& input) {
    const Edge edge = edge_to(input);
    check(edge.wanted(), "grad(): an input of shape {} needs no gradient",
          to_string(input.sizes()));
    kept_.push_back(edge);
  }

  void run() {
    while (!ready_.empty()) {
      const std::shared_ptr<Node> node = ready_.top();
      ready_.pop();
      const auto at = pending_.find(node.get());
      const std::vector<Tensor> gradients = std::move(at->second);
      pending_.erase(at);
      visit(*node, gradients);
    }
  }

  std::vector<Tensor> kept() const {
    std::vector<Tensor> result;
    for (const Edge& edge : kept_) {
      const auto at = results_.find(key_of(edge));
      result.push_back(at == results_.end() ? Tensor() : at->second);
    }
    return result;
  }
  void add_to_leaves() {
    for (const auto& [leaf, gradient] : leaves_) {
      Tensor& grad = leaf->gradient->grad;
      if (grad.defined())
        grad = grad + gradient;
      else  // of its own: an optimizer may change it in place
        grad = gradient.impl().use_count() <= 2 && gradient.impl()->storage.use_count() == 1 &&
                       gradient.is_contiguous()
                   ? gradient
                   : gradient.clone();
    }
  }

 private:
  using Key = std::pair<const void*, uint32_t>;
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return std::hash<const void*>()(k.first) * 31 + k.second;
    }
  };
  struct Later {
    bool operator()(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) const {
      return a->number < b->number;
    }
  };
  static Key key_of(const Edge& e) {
    return e.node != nullptr ? Key(e.node.get(), e.output) : Key(e.leaf.get(), 0);
  }
  static void add(Tensor& sum, const Tensor& gradient) {
    sum = sum.defined() ? sum + gradient : gradient;
  }
  bool is_kept(const Edge& edge) const {
    return std::ranges::any_of(kept_, [&](const Edge& k) { return key_of(k) == key_of(edge); });
  }

  void give(const Edge& edge, const Tensor& gradient) {
    if (!edge.wanted() || !gradient.defined()) return;
    const Tensor shaped = as_gradient_of(gradient, edge);
    if (is_kept(edge)) add(results_[key_of(edge)], shaped);
    if (edge.leaf != nullptr) {
      if (kept_.empty()) add(leaves_[edge.leaf], shaped);
      return;
    }
    const auto [at, fresh] = pending_.try_emplace(edge.node.get(), edge.node->outputs);
    add(at->second[edge.output], shaped);
    if (fresh) ready_.push(edge.node);
  }

  void visit(Node& node, const std::vector<Tensor>& gradients) {
    check(static_cast<bool>(node.backward),
          "backward() has been here before and freed what {} had saved: call it with retain the "
          "first time",
          node.name);
    const std::vector<Tensor> made = node.backward(gradients);
    check(made.size() == node.edges.size(), "the derivative of {} gave {} gradients for {} inputs",
          node.name, made.size(), node.edges.size());
    for (size_t i = 0; i < made.size(); ++i) give(node.edges[i], made[i]);
    if (retain_) return;
    node.backward = nullptr;
    node.edges.clear();
  }

  bool retain_;
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, Later> ready_;
  std::unordered_map<const Node*, std::vector<Tensor>> pending_;
  std::unordered_map<std::shared_ptr<TensorImpl>, Tensor> leaves_;
  std::unordered_map<Key, Tensor, KeyHash> results_;
  std::vector<Edge> kept_;
};

// The gradient to start with: ones for one element where none is given.
Tensor first_gradient(const Tensor& output, const Tensor* given) {
  check(needs_gradient(output),
        "backward: the tensor of shape {} does not depend on any that needs a gradient",
        to_string(output.sizes()));
  if (given == nullptr || !given->defined()) {
    check(output.numel() == 1,
          "backward: a tensor of shape {} needs a gradient of its shape to start with",
          to_string(output.sizes()));
    check(!is_complex(output.dtype()),
          "backward: a complex number has no least value: give a gradient, or take abs()");
    return ones_like(output);
  }
  check(given->sizes() == output.sizes(), "backward: a gradient of shape {} for a tensor of {}",
        to_string(given->sizes()), to_string(output.sizes()));
  return *given;
}

}  // namespace
}  // namespace detail

std::vector<Tensor> grad(const TensorList& outputs, const TensorList& inputs,
                         const TensorList& gradients, bool retain) {
  const auto given = gradients.span();
  check(given.empty() || given.size() == outputs.span().size(),
        "grad(): {} gradients for {} outputs", given.size(), outputs.span().size());
  check(!inputs.span().empty(), "grad() needs at least one input");
  const NoGrad off;
  detail::Backward backward(retain);
  for (const Tensor& input : inputs.span()) backward.keep(input);
  for (size_t i = 0; i < outputs.span().size(); ++i) {
    const Tensor& output = outputs.span()[i];
    backward.start(output, detail::first_gradient(output, given.empty() ? nullptr : &given[i]));
  }
  backward.run();
  return backward.kept();
}

std::vector<Tensor> record(std::string name, const TensorList& inputs, const TensorList& outputs,
                           BackwardFunction backward) {
  std::vector<Tensor> results(outputs.span().begin(), outputs.span().end());
  const bool wanted =
      std::ranges::any_of(inputs.span(), [](const Tensor& t) { return detail::needs_gradient(t); });
  if (!wanted || !grad_enabled()) return results;
  std::vector<detail::Edge> edges;
  for (const Tensor& input : inputs.span()) edges.push_back(detail::edge_to(input));
  const auto node =
      detail::make_node(std::move(name), std::move(edges), results.size(), std::move(backward));
  for (size_t i = 0; i < results.size(); ++i)
    detail::set_history(results[i], node, static_cast<uint32_t>(i));
  return results;
}

const Tensor& Tensor::requires_grad_(bool wanted) const {
  check(!wanted || detail::may_have_gradient(dtype()),
        "only tensors of a floating or complex type can need a gradient, this one is {}",
        name(dtype()));
  if (!is_leaf())
    fail(TB_E_INVALID,
         "the tensor was made by {}: requires_grad_() is for leaves, detach() it first",
         get().gradient->node->name);
  state_of(*this)->wanted = wanted;
  if (wanted) detail::any_gradient_wanted = true;
  return *this;
}

bool Tensor::requires_grad() const { return detail::needs_gradient(get()); }
bool Tensor::is_leaf() const {
  return get().gradient == nullptr || get().gradient->node == nullptr;
}
Tensor Tensor::grad() const { return get().gradient == nullptr ? Tensor() : get().gradient->grad; }

void Tensor::set_grad(const Tensor& gradient) const {
  check(!gradient.defined() || (gradient.sizes() == sizes() && gradient.dtype() == dtype()),
        "set_grad: the gradient must have the tensor's shape {} and dtype {}", to_string(sizes()),
        name(dtype()));
  state_of(*this)->grad = gradient;
}

Tensor Tensor::detach() const {
  return detail::make_tensor(get().storage, sizes(), strides(), offset(), dtype());
}

void Tensor::backward(const OptionalTensor& gradient, bool retain) const {
  const NoGrad off;
  detail::Backward backward(retain);
  backward.start(*this, detail::first_gradient(*this, gradient.tensor()));
  backward.run();
  backward.add_to_leaves();
}

}  // namespace ocltensor
