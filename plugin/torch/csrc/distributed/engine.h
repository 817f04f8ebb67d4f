// What carries bytes between the ranks of a group: some ten functions on host memory, or on the
// memory of devices. An engine knows no tensors.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace torch_ocl::distributed {

// Host memory of a call; the engine may write it only where the function says so.
struct Span {
  std::byte* data;
  size_t bytes;
};
using Spans = std::vector<Span>;

// How two numbers become one.
enum class Combine { Sum, Product, Min, Max, BitAnd, BitOr, BitXor };
// The numbers that can be combined: an engine combines all but 16-bit ones, which stand last.
enum class Number { Float32, Float64, Int8, UInt8, Int32, Int64, Float16, BFloat16 };

// What is done with each number before, how they combine, and what divides the result.
struct Formula {
  Combine how = Combine::Sum;
  double factor = 1;
  int divisor = 1;
};

// Every rank of the group calls the same functions in the same order; send and receive pair by
// rank and tag, and may run beside each other and beside one other function. A call returns when
// its memory is no longer used and its results are there. It throws a std::exception if a rank is
// lost, or does not come within the limit.
class Engine {
 public:
  using Limit = std::chrono::milliseconds;

  virtual ~Engine() = default;

  // The root's bytes to all.
  virtual void broadcast(Span memory, int root, Limit limit) = 0;
  // In place, with the same bits on every rank.
  virtual void allreduce(Span memory, Number type, Combine how, Limit limit) = 0;
  // In place on the root; on other ranks the content is lost.
  virtual void reduce(Span memory, Number type, Combine how, int root, Limit limit) = 0;
  // `all` has one span a rank, all as long as `own`, which may be this rank's among them.
  virtual void allgather(const Spans& all, Span own, Limit limit) = 0;
  virtual void gather(const Spans& all, Span own, int root, Limit limit) = 0;  // else all is empty
  virtual void scatter(Span own, const Spans& all, int root, Limit limit) = 0;
  // One span a rank in each list; what i sends to k is as long as what k receives from i.
  virtual void alltoall(const Spans& received, const Spans& sent, Limit limit) = 0;
  // A short note to one rank, and one as long from another, or the same; apart from all messages.
  virtual void exchange_notes(Span sent, int to, Span received, int from, Limit limit) = 0;
  virtual void send(Span memory, int to, int tag, Limit limit) = 0;
  // Without a rank from any. Returns the sender.
  virtual int receive(Span memory, std::optional<int> from, int tag, Limit limit) = 0;
  virtual void barrier(Limit limit) = 0;
  // A barrier whose error on rank 0 names the first rank that did not come, or all of them.
  virtual void monitored_barrier(bool all, Limit limit) = 0;
  virtual void set_limit(Limit limit) = 0;
};

// An engine whose spans are addresses of device memory as CUDA knows it. The host cannot combine
// numbers there, so it does all of a reduction. What it cannot do is staged for the other engine of
// its group, which also has barriers and notes.
class DeviceEngine : public Engine {
 public:
  virtual bool has(Number type, const Formula& formula) const = 0;
  virtual void allreduce(Span memory, Number type, const Formula& formula, Limit limit) = 0;
  virtual void reduce(Span memory, Number type, const Formula& formula, int root, Limit limit) = 0;
  virtual void reduce_scatter(Span result, const Spans& parts, Number type, const Formula& formula,
                              Limit limit) = 0;
  // From any thread: calls that are inside fail.
  virtual void abort(const std::string& why) = 0;
};

}  // namespace torch_ocl::distributed
