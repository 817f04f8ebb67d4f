// An engine's functions as NCCL's collectives and messages. All collectives use one communicator;
// messages have one for each pair, direction and tag, since NCCL knows no tags and each must keep
// its own order (README.md, Order).
#include "nccl_engine.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include <cstring>
#include <map>
#include <utility>

#include "nccl_communicator.h"
#include "numbers.h"
#include "runtime/shared_memory.h"
#include "runtime/stream.h"

namespace torch_ocl::distributed {
namespace {

using nccl::Comm;
using nccl::Stream;
constexpr nccl::Type kBytes = 1;  // ncclUint8

nccl::Type type_of(Number number) {
  switch (number) {
    case Number::Int8: return 0;
    case Number::UInt8: return 1;
    case Number::Int32: return 2;
    case Number::Int64: return 4;
    case Number::Float16: return 6;
    case Number::Float32: return 7;
    case Number::Float64: return 8;
    case Number::BFloat16: return 9;
  }
  TORCH_INTERNAL_ASSERT(false);
}

bool is_floating(Number type) {
  return type == Number::Float16 || type == Number::BFloat16 || type == Number::Float32 ||
         type == Number::Float64;
}

// Whether the spans follow each other with equal lengths.
bool are_one(const Spans& spans) {
  for (size_t k = 1; k < spans.size(); ++k)
    if (spans[k].data != spans[k - 1].data + spans[k - 1].bytes || spans[k].bytes != spans[0].bytes)
      return false;
  return true;
}

// A factor as a number of the type, which NCCL reads on the host.
class Scalar {
 public:
  Scalar(Number type, double value) {
    switch (type) {
      case Number::Float16: put(c10::Half(static_cast<float>(value))); break;
      case Number::BFloat16: put(c10::BFloat16(static_cast<float>(value))); break;
      case Number::Float32: put(static_cast<float>(value)); break;
      default: put(value);
    }
  }
  void* data() { return bytes_; }

 private:
  template <typename T>
  void put(T value) {
    std::memcpy(bytes_, &value, sizeof value);
  }
  alignas(double) std::byte bytes_[sizeof(double)] = {};
};

class NcclEngine final : public DeviceEngine {
 public:
  NcclEngine(c10::intrusive_ptr<c10d::Store> store, const nccl::Functions& library, int rank,
             int size)
      : store_(std::move(store)), library_(library), rank_(rank), size_(size) {}

  bool has(Number type, const Formula& formula) const override {
    const bool is_plain = formula.factor == 1 && formula.divisor == 1;
    return (is_plain || is_floating(type)) && formula.how != Combine::BitAnd &&
           formula.how != Combine::BitOr && formula.how != Combine::BitXor;
  }
  void allreduce(Span memory, Number type, const Formula& formula, Limit limit) override {
    reduced("ncclAllReduce", type, formula, limit, [&](nccl::Op op, Comm comm, Stream stream) {
      return library_.all_reduce(memory.data, memory.data, memory.bytes / size_of(type),
                                 type_of(type), op, comm, stream);
    });
  }
  void reduce(Span memory, Number type, const Formula& formula, int root, Limit limit) override {
    reduced("ncclReduce", type, formula, limit, [&](nccl::Op op, Comm comm, Stream stream) {
      return library_.reduce(memory.data, memory.data, memory.bytes / size_of(type), type_of(type),
                             op, root, comm, stream);
    });
  }
  void reduce_scatter(Span result, const Spans& parts, Number type, const Formula& formula,
                      Limit limit) override {
    const size_t count = result.bytes / size_of(type);
    reduced("ncclReduceScatter", type, formula, limit, [&](nccl::Op op, Comm comm, Stream stream) {
      if (are_one(parts))
        return library_.reduce_scatter(parts[0].data, result.data, count, type_of(type), op, comm,
                                       stream);
      nccl::Result failure = 0;
      for (size_t k = 0; k < parts.size() && failure == 0; ++k)
        failure = library_.reduce(parts[k].data, result.data, count, type_of(type), op,
                                  static_cast<int>(k), comm, stream);
      return failure;
    });
  }

  void broadcast(Span memory, int root, Limit limit) override {
    all("ncclBroadcast", limit, [&](Comm comm, Stream stream) {
      check(library_.broadcast(memory.data, memory.data, memory.bytes, kBytes, root, comm, stream),
            "ncclBroadcast");
    });
  }
  void allreduce(Span memory, Number type, Combine how, Limit limit) override {
    allreduce(memory, type, Formula{how}, limit);
  }
  void reduce(Span memory, Number type, Combine how, int root, Limit limit) override {
    reduce(memory, type, Formula{how}, root, limit);
  }
  void allgather(const Spans& every, Span own, Limit limit) override {
    all("ncclAllGather", limit, [&](Comm comm, Stream stream) {
      if (are_one(every))
        return check(library_.all_gather(own.data, every[0].data, own.bytes, kBytes, comm, stream),
                     "ncclAllGather");
      for (int k = 0; k < size_; ++k)
        check(library_.broadcast(own.data, every[static_cast<size_t>(k)].data, own.bytes, kBytes, k,
                                 comm, stream),
              "ncclBroadcast");
    });
  }
  void gather(const Spans& every, Span own, int root, Limit limit) override {
    all("gather", limit, [&](Comm comm, Stream stream) {
      for (size_t k = 0; k < every.size(); ++k)
        received(every[k], static_cast<int>(k), comm, stream);
      sent(own, root, comm, stream);
    });
  }
  void scatter(Span own, const Spans& every, int root, Limit limit) override {
    all("scatter", limit, [&](Comm comm, Stream stream) {
      for (size_t k = 0; k < every.size(); ++k) sent(every[k], static_cast<int>(k), comm, stream);
      received(own, root, comm, stream);
    });
  }
  void alltoall(const Spans& incoming, const Spans& outgoing, Limit limit) override {
    all("all to all", limit, [&](Comm comm, Stream stream) {
      for (int k = 0; k < size_; ++k) {
        sent(outgoing[static_cast<size_t>(k)], k, comm, stream);
        received(incoming[static_cast<size_t>(k)], k, comm, stream);
      }
    });
  }
  void send(Span memory, int to, int tag, Limit limit) override {
    pair(rank_, to, tag, limit)->run("ncclSend", limit, [&](Comm comm, Stream stream) {
      sent(memory, 1, comm, stream);
    });
  }
  int receive(Span memory, std::optional<int> from, int tag, Limit limit) override {
    TORCH_CHECK(from.has_value(), "the engine nccl receives from named ranks alone");
    pair(*from, rank_, tag, limit)->run("ncclRecv", limit, [&](Comm comm, Stream stream) {
      received(memory, 0, comm, stream);
    });
    return *from;
  }

  // Of the group's other engine.
  void exchange_notes(Span, int, Span, int, Limit) override { TORCH_INTERNAL_ASSERT(false); }
  void barrier(Limit) override { TORCH_INTERNAL_ASSERT(false); }
  void monitored_barrier(bool, Limit) override { TORCH_INTERNAL_ASSERT(false); }
  void set_limit(Limit) override {}  // each call has its own

  void abort(const std::string&) override {
    const std::lock_guard lock(mutex_);
    is_given_up_ = true;
    for (const auto& [name, communicator] : communicators_)
      if (communicator) communicator->abort();
  }

 private:
  using Pointer = std::shared_ptr<NcclCommunicator>;

  void check(nccl::Result result, const char* call) const { nccl::check(library_, result, call); }
  void sent(Span memory, int to, Comm comm, Stream stream) const {
    check(library_.send(memory.data, memory.bytes, kBytes, to, comm, stream), "ncclSend");
  }
  void received(Span memory, int from, Comm comm, Stream stream) const {
    check(library_.receive(memory.data, memory.bytes, kBytes, from, comm, stream), "ncclRecv");
  }

  template <typename Enqueue>
  void all(const char* what, Limit limit, Enqueue enqueue) {
    communicator("all", rank_, size_, limit)->run(what, limit, enqueue);
  }

  template <typename Enqueue>
  void reduced(const char* what, Number type, const Formula& formula, Limit limit,
               Enqueue enqueue) {
    const Pointer comm = communicator("all", rank_, size_, limit);
    std::optional<nccl::Op> own;
    nccl::Op op = nccl::kSum;
    if (formula.how == Combine::Product) op = nccl::kProduct;
    if (formula.how == Combine::Max) op = nccl::kMax;
    if (formula.how == Combine::Min) op = nccl::kMin;
    if (formula.divisor != 1) op = nccl::kAverage;
    if (formula.factor != 1) {
      Scalar scalar(type, formula.factor);
      own.emplace();
      check(library_.scaled_sum(&*own, scalar.data(), type_of(type), nccl::kHostScalar,
                                comm->handle()),
            "ncclRedOpCreatePreMulSum");
      op = *own;
    }
    comm->run(what, limit,
              [&](Comm handle, Stream stream) { check(enqueue(op, handle, stream), what); });
    if (own) check(library_.destroy_op(*own, comm->handle()), "ncclRedOpDestroy");
  }

  Pointer pair(int from, int to, int tag, Limit limit) {
    const std::string name =
        std::to_string(from) + ">" + std::to_string(to) + "#" + std::to_string(tag);
    TORCH_CHECK(from != to, "the engine nccl sends nothing to the rank itself");
    return communicator(name, from == rank_ ? 0 : 1, 2, limit);
  }

  // Rank 0 of a communicator tells its name by the store. Of a pair it waits for the other rank
  // first: NCCL has no limit for that.
  Pointer communicator(const std::string& name, int rank, int size, Limit limit) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = communicators_.find(name);
      if (found != communicators_.end()) return found->second;
    }
    nccl::Id id{};
    const bool is_pair = name != "all";
    // A connection of this lane's own: while one waits, nothing else passes through it.
    const c10::intrusive_ptr<c10d::Store> store = store_->clone();
    if (is_pair && rank == 0) store->wait({"nccl/here/" + name}, limit);
    if (is_pair && rank == 1) store->set("nccl/here/" + name, std::vector<uint8_t>{1});
    if (rank == 0) {
      check(library_.unique_id(&id), "ncclGetUniqueId");
      store->set("nccl/" + name, std::vector<uint8_t>(id.bytes, id.bytes + sizeof id.bytes));
    } else {
      store->wait({"nccl/" + name}, limit);
      const std::vector<uint8_t> told = store->get("nccl/" + name);
      TORCH_CHECK(told.size() == sizeof id.bytes, "the name of a communicator is broken");
      std::memcpy(id.bytes, told.data(), sizeof id.bytes);
    }
    auto made =
        std::make_shared<NcclCommunicator>(library_, id, rank, size, cuda_number(current_device()));
    const std::lock_guard lock(mutex_);
    if (is_given_up_) made->abort();  // meanwhile
    return communicators_.emplace(name, std::move(made)).first->second;
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const nccl::Functions& library_;
  const int rank_, size_;
  std::mutex mutex_;
  bool is_given_up_ = false;
  std::map<std::string, Pointer> communicators_;  // one lane alone asks for a name
};

}  // namespace

int nccl_version(const std::string& path) {
  const nccl::Functions& library = nccl::functions(path);
  int version = 0;
  nccl::check(library, library.version(&version), "ncclGetVersion");
  return version;
}

std::shared_ptr<DeviceEngine> make_nccl_engine(c10::intrusive_ptr<c10d::Store> store,
                                               const std::string& path, int rank, int size) {
  return std::make_shared<NcclEngine>(std::move(store), nccl::functions(path), rank, size);
}

}  // namespace torch_ocl::distributed
