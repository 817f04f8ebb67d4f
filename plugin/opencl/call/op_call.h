// One call of an operator as its implementation sees it: arguments, outputs, stream, scratch memory
// and kernels.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/operators.h"
#include "call/policy.h"
#include "runtime/device/device.h"
#include "runtime/kernels/find_kernel.h"
#include "runtime/kernels/kernel_of.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {

struct OpEntry;

// Thrown by accept() if the host only wants to know whether the call would be accepted.
struct AcceptedOnly {};

// Memory of the pool for the time of an operator's call; freed in stream order.
class Scratch {
 public:
  Scratch(Stream& stream, uint64_t bytes)
      : stream_(&stream),
        address_(stream.device().memory().allocate(bytes, stream.id())),
        bytes_(bytes) {}
  Scratch(Scratch&& other) noexcept
      : stream_(other.stream_), address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();
  tb_address address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  // Enqueued: every byte becomes 0xff, which is NaN in all types of floating point.
  void poison() const;
  // Enqueued: every byte becomes 0.
  void clear() const;
  // Waits for the memory's bytes.
  std::vector<std::byte> read() const;
  operator MemoryRange() const {  // NOLINT: implicit on purpose
    return {address_, 0, static_cast<int64_t>(bytes_)};
  }

 private:
  void fill(uint8_t byte) const;

  Stream* stream_;
  tb_address address_;
  uint64_t bytes_;
};

// A strided tensor owned by the operator, e.g. a contiguous copy of an argument or scratch memory
// with a shape.
class LocalTensor {
 public:
  LocalTensor(tb_address address, DType dtype, Dims sizes, Dims strides)
      : sizes_(sizes), strides_(strides) {
    raw_ = {sizeof(tb_tensor),
            0,
            address,
            0,
            0,
            to_abi(dtype),
            static_cast<uint32_t>(sizes.size()),
            sizes_.data(),
            strides_.data(),
            nullptr};
  }
  LocalTensor(tb_address address, DType dtype, Dims sizes)
      : LocalTensor(address, dtype, sizes, contiguous_strides(sizes)) {}
  LocalTensor(const LocalTensor& other)
      : LocalTensor(other.raw_.address, other.dtype(), other.sizes_, other.strides_) {}
  LocalTensor& operator=(const LocalTensor&) = delete;
  DType dtype() const { return from_abi(raw_.dtype); }
  TensorView view() const { return TensorView(raw_); }
  operator TensorView() const { return view(); }   // NOLINT: implicit on purpose
  operator MemoryRange() const { return view(); }  // NOLINT: implicit on purpose

 private:
  Dims sizes_, strides_;
  tb_tensor raw_;
};

class OpCall;
using OpFunction = void (*)(OpCall&);
struct OpEntry {
  const char* name;
  OpFunction run;
  // Whether calls with complex tensors or complex numbers reach `run`, which then must check each
  // of them; for other operators they are declined.
  bool takes_complex = false;
  // Whether the operator takes float64 on devices without it, because it only moves elements, or
  // checks each type itself. Other operators decline it there.
  bool moves_float64 = false;
  // Whether the operator takes unsigned integers of more than a byte and float8. Others decline
  // them.
  bool takes_all_types = false;
  // Whether the operator takes complex128 on devices without float64, too: part by part.
  bool moves_complex128 = false;
};

class OpCall {
 public:
  // `entry`: what the operator takes.
  OpCall(const tb_call& call, const Operator& op, Stream& stream, bool check_only,
         const OpEntry& entry, const Policy& policy);

  // The same call on another stream of the device, for work beside it.
  OpCall(const OpCall& call, Stream& stream)
      : raw_(call.raw_),
        op_(call.op_),
        args_(call.args_),
        stream_(stream),
        check_only_(call.check_only_),
        policy_(call.policy_) {}

  // Without arguments and outputs, for work that outlives a call: `op` names it.
  OpCall(const Operator& op, Stream& stream, const Policy& policy);

  const Operator& op() const { return op_; }
  const std::string& name() const { return op_.name; }
  const Args& args() const { return args_; }
  std::span<const tb_value> values() const { return {raw_.args, raw_.arg_count}; }
  size_t out_count() const { return raw_.out_count; }
  TensorView out(size_t i) const;
  bool wants(size_t i) const { return out(i).numel() > 0; }
  Device& device() const { return stream_.device(); }
  const Capabilities& caps() const { return stream_.device().caps(); }
  Stream& stream() const { return stream_; }
  const Policy& policy() const { return policy_; }
  // Whether the result must be bit-identical in every run, because of the settings or the host's
  // flag.
  bool deterministic() const {
    return policy_.deterministic || (raw_.flags & TB_CALL_DETERMINISTIC) != 0;
  }

  // Declines the call if it computes with `type`, which is float64, and the device has none. For
  // operators that take float64 tensors everywhere (OpEntry::moves_float64).
  void need(DType type) const;
  bool lacks(DType type) const { return real_type(type) == DType::Float64 && !caps().fp64; }

  // To be called when every check is done and before anything is enqueued, compiled or allocated.
  void accept() const {
    if (check_only_) throw AcceptedOnly{};
  }
  // Gives data-dependent output `i` its shape; returns it.
  TensorView resize_out(size_t i, std::span<const int64_t> sizes);

  Scratch scratch(uint64_t bytes) const { return Scratch(stream_, bytes); }
  // A kernel with its arguments, ready to run: launch(kernels::copy::create::eye, defines, {.out =
  // ...}).
  template <typename Arguments>
  Launch launch(const KernelOf<Arguments>& kernel, const Defines& defines,
                const std::type_identity_t<Arguments>& arguments) const {
    Launch launch(stream_, find_kernel(stream_, kernel.source, kernel.function, defines));
    arguments.bind(launch);
    return launch;
  }
  // What a kernel needs to report an invalid value (an index, a target) of this operator.
  FaultSite fault(FaultKind kind, int64_t dim = 0) const {
    return {policy_.check_values ? fault_site(op_, kind, dim) : 0};
  }

 private:
  const tb_call& raw_;
  const Operator& op_;
  Args args_;
  Stream& stream_;
  bool check_only_;
  const Policy& policy_;
  tb_tensor resized_{};
};

// A tensor's elements in row-major order: the tensor itself if it is row-major, else a copy in
// scratch memory.
class Contiguous {
 public:
  Contiguous(const OpCall& call, TensorView tensor);
  TensorView view() const { return local_.view(); }
  operator MemoryRange() const { return view(); }  // NOLINT: implicit on purpose

 private:
  std::vector<Scratch> memory_;  // empty, or the copy's
  LocalTensor local_;
};

// A row-major tensor to write to: the output itself if it is row-major, else scratch memory that
// finish() copies to it.
class ContiguousOutput {
 public:
  ContiguousOutput(const OpCall& call, TensorView out);
  TensorView view() const { return local_.view(); }
  operator MemoryRange() const { return view(); }  // NOLINT: implicit on purpose
  void finish();

 private:
  const OpCall& call_;
  TensorView out_;
  std::vector<Scratch> memory_;
  LocalTensor local_;
};

// Copies with broadcasting and conversion, as copy.out does; used by other operators.
void copy_tensor(const OpCall& call, TensorView target, TensorView source);

}  // namespace ocltensor::opencl
