// Spans as tensors of the CPU, and the calls of a c10d backend on them.
#include "c10d_engine.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

namespace torch_ocl::distributed {
namespace {

using Tensors = std::vector<at::Tensor>;
using Work = c10::intrusive_ptr<c10d::Work>;

// Of notes and of parts that ranks exchange: check_tag() keeps them from messages.
constexpr int kNoteTag = std::numeric_limits<int>::max(), kPartTag = kNoteTag - 1;

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
    exchange(Spans(all.size(), own), all, limit);
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
    exchange(sent, received, limit);
  }
  void exchange_notes(Span sent, int to, Span received, int from, Limit limit) override {
    Tensors out{tensor_of(sent)}, in{tensor_of(received)};
    const Work coming = begin([&] { return backend_->recv(in, from, kNoteTag); });
    call([&] { return backend_->send(out, to, kNoteTag); }, limit);
    coming->wait(limit);
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
  // sent[k] goes to rank k, and received[k] comes from it, by messages: Gloo's own calls allocate
  // and copy all of it once more, which takes several times as long (bench/history.md).
  void exchange(const Spans& sent, const Spans& received, Limit limit) {
    const int size = static_cast<int>(sent.size()), rank = backend_->getRank();
    std::vector<Work> works;
    for (int k = 1; k < size; ++k) {  // other ranks first, so that not all send to the same one
      const int from = (rank + size - k) % size, to = (rank + k) % size;
      Tensors in{tensor_of(received[static_cast<size_t>(from)])},
          out{tensor_of(sent[static_cast<size_t>(to)])};
      if (in[0].numel() != 0)
        works.push_back(begin([&] { return backend_->recv(in, from, kPartTag); }));
      if (out[0].numel() != 0)
        works.push_back(begin([&] { return backend_->send(out, to, kPartTag); }));
    }
    const Span mine = sent[static_cast<size_t>(rank)], there = received[static_cast<size_t>(rank)];
    if (mine.bytes != 0 && mine.data != there.data)
      std::memcpy(there.data, mine.data, std::min(mine.bytes, there.bytes));
    for (const Work& work : works) work->wait(limit);
  }
  // Backends are not made for several threads that begin calls at once; waiting may overlap. Only
  // sends and receives take their limit here.
  template <typename Begin>
  Work call(Begin what, Limit limit = kNoTimeout) {
    Work work = begin(what);
    work->wait(limit);
    return work;
  }
  template <typename Begin>
  Work begin(Begin what) {
    const std::lock_guard lock(mutex_);
    return what();
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  std::mutex mutex_;
};

}  // namespace

std::shared_ptr<Engine> make_c10d_engine(c10::intrusive_ptr<c10d::Backend> backend) {
  return std::make_shared<C10dEngine>(std::move(backend));
}

}  // namespace torch_ocl::distributed
