// Spans as tensors of the CPU, and the calls of a c10d backend on them.
#include "c10d_engine.h"

#include <ATen/ops/from_blob.h>

#include <cstring>
#include <mutex>
#include <utility>

namespace torch_ocl::distributed {
namespace {

using Tensors = std::vector<at::Tensor>;
using Work = c10::intrusive_ptr<c10d::Work>;

at::Tensor tensor_of(Span span, at::ScalarType type = at::kByte) {
  const auto count = static_cast<int64_t>(span.bytes / c10::elementSize(type));
  return at::from_blob(span.data, {count}, at::TensorOptions().dtype(type));
}

Tensors tensors_of(const Spans& spans) {
  Tensors tensors;
  for (const Span& span : spans) tensors.push_back(tensor_of(span));
  return tensors;
}

at::ScalarType type_of(Number number) {
  switch (number) {
    case Number::Float32: return at::kFloat;
    case Number::Float64: return at::kDouble;
    case Number::Int8: return at::kChar;
    case Number::UInt8: return at::kByte;
    case Number::Int32: return at::kInt;
    case Number::Int64: return at::kLong;
    case Number::Float16:
    case Number::BFloat16: break;
  }
  TORCH_INTERNAL_ASSERT(false);
}

c10d::ReduceOp op_of(Combine how) {
  using Op = c10d::ReduceOp;
  switch (how) {
    case Combine::Sum: return Op::SUM;
    case Combine::Product: return Op::PRODUCT;
    case Combine::Min: return Op::MIN;
    case Combine::Max: return Op::MAX;
    case Combine::BitAnd: return Op::BAND;
    case Combine::BitOr: return Op::BOR;
    case Combine::BitXor: return Op::BXOR;
  }
  TORCH_INTERNAL_ASSERT(false);
}

// One piece of memory for a list of spans: theirs if they lie one behind the other, else a copy.
class Joined {
 public:
  explicit Joined(const Spans& spans) : spans_(spans) {
    bool apart = false;
    for (const Span& span : spans) {
      apart = apart || span.data != spans.front().data + bytes_;
      bytes_ += span.bytes;
    }
    if (apart) copy_.resize(bytes_);
  }
  Span whole() { return {copy_.empty() ? spans_.front().data : copy_.data(), bytes_}; }
  void fill() {
    size_t at = 0;
    for (const Span& span : spans_) at = move(copy_.data() + at, span.data, at, span.bytes);
  }
  void spread() {
    size_t at = 0;
    for (const Span& span : spans_) at = move(span.data, copy_.data() + at, at, span.bytes);
  }
  std::vector<int64_t> sizes() const {
    std::vector<int64_t> sizes;
    for (const Span& span : spans_) sizes.push_back(static_cast<int64_t>(span.bytes));
    return sizes;
  }

 private:
  size_t move(std::byte* to, const std::byte* from, size_t at, size_t bytes) const {
    if (!copy_.empty() && bytes != 0) std::memcpy(to, from, bytes);
    return at + bytes;
  }
  const Spans& spans_;
  size_t bytes_ = 0;
  std::vector<std::byte> copy_;
};

class C10dEngine final : public Engine {
 public:
  explicit C10dEngine(c10::intrusive_ptr<c10d::Backend> backend) : backend_(std::move(backend)) {}

  void broadcast(Span memory, int root, Limit limit) override {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = limit;
    Tensors tensors{tensor_of(memory)};
    call([&] { return backend_->broadcast(tensors, options); });
  }
  void allreduce(Span memory, Number type, Combine how, Limit limit) override {
    c10d::AllreduceOptions options;
    options.reduceOp = op_of(how);
    options.timeout = limit;
    Tensors tensors{tensor_of(memory, type_of(type))};
    call([&] { return backend_->allreduce(tensors, options); });
  }
  void reduce(Span memory, Number type, Combine how, int root, Limit limit) override {
    c10d::ReduceOptions options;
    options.reduceOp = op_of(how);
    options.rootRank = root;
    options.timeout = limit;
    Tensors tensors{tensor_of(memory, type_of(type))};
    call([&] { return backend_->reduce(tensors, options); });
  }
  void allgather(const Spans& all, Span own, Limit limit) override {
    c10d::AllgatherOptions options;
    options.timeout = limit;
    std::vector<Tensors> outputs{tensors_of(all)};
    Tensors inputs{tensor_of(own)};
    call([&] { return backend_->allgather(outputs, inputs, options); });
  }
  void gather(const Spans& all, Span own, int root, Limit limit) override {
    c10d::GatherOptions options;
    options.rootRank = root;
    options.timeout = limit;
    std::vector<Tensors> outputs;
    if (root == backend_->getRank()) outputs.push_back(tensors_of(all));
    Tensors inputs{tensor_of(own)};
    call([&] { return backend_->gather(outputs, inputs, options); });
  }
  void scatter(Span own, const Spans& all, int root, Limit limit) override {
    c10d::ScatterOptions options;
    options.rootRank = root;
    options.timeout = limit;
    Tensors outputs{tensor_of(own)};
    std::vector<Tensors> inputs;
    if (root == backend_->getRank()) inputs.push_back(tensors_of(all));
    call([&] { return backend_->scatter(outputs, inputs, options); });
  }
  void alltoall(const Spans& received, const Spans& sent, Limit limit) override {
    c10d::AllToAllOptions options;
    options.timeout = limit;
    Joined out(received), in(sent);  // Gloo has no form with lists
    in.fill();
    at::Tensor output = tensor_of(out.whole()), input = tensor_of(in.whole());
    auto output_sizes = out.sizes(), input_sizes = in.sizes();
    call(
        [&] { return backend_->alltoall_base(output, input, output_sizes, input_sizes, options); });
    out.spread();
  }
  void send(Span memory, int to, int tag, Limit limit) override {
    Tensors tensors{tensor_of(memory)};
    call([&] { return backend_->send(tensors, to, tag); }, limit);
  }
  int receive(Span memory, std::optional<int> from, int tag, Limit limit) override {
    Tensors tensors{tensor_of(memory)};
    if (from) {
      call([&] { return backend_->recv(tensors, *from, tag); }, limit);
      return *from;
    }
    return call([&] { return backend_->recvAnysource(tensors, tag); }, limit)->sourceRank();
  }
  void barrier(Limit limit) override {
    c10d::BarrierOptions options;
    options.timeout = limit;
    call([&] { return backend_->barrier(options); });
  }
  void monitored_barrier(bool all, Limit limit) override {
    c10d::BarrierOptions options;
    options.timeout = limit;
    backend_->monitoredBarrier(options, all);
  }
  void set_limit(Limit limit) override { backend_->setTimeout(limit); }

 private:
  // Backends are not made for several threads that begin calls at once; waiting may overlap. Only
  // sends and receives take their limit here.
  template <typename Begin>
  Work call(Begin begin, Limit limit = kNoTimeout) {
    Work work;
    {
      const std::lock_guard lock(mutex_);
      work = begin();
    }
    work->wait(limit);
    return work;
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  std::mutex mutex_;
};

}  // namespace

std::shared_ptr<Engine> make_c10d_engine(c10::intrusive_ptr<c10d::Backend> backend) {
  return std::make_shared<C10dEngine>(std::move(backend));
}

}  // namespace torch_ocl::distributed
