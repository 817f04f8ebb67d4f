// Which of c10d's reductions an engine does, and the others by exchanging pieces: each rank
// combines one piece in the order of the ranks, so that all have the same bits.
#include "reduction.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/item.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace torch_ocl::distributed {
namespace {

using Op = c10d::ReduceOp;

std::optional<Number> number_of(at::ScalarType type) {
  switch (type) {
    case at::kHalf: return Number::Float16;
    case at::kBFloat16: return Number::BFloat16;
    case at::kFloat: return Number::Float32;
    case at::kDouble: return Number::Float64;
    case at::kChar: return Number::Int8;
    case at::kByte:
    case at::kBool: return Number::UInt8;
    case at::kInt: return Number::Int32;
    case at::kLong: return Number::Int64;
    default: return std::nullopt;
  }
}

// As NCCL: of truth values a sum is "or", a product "and".
Combine of_bools(Op::RedOpType op) {
  switch (op) {
    case Op::SUM:
    case Op::MAX:
    case Op::BOR: return Combine::Max;
    case Op::PRODUCT:
    case Op::MIN:
    case Op::BAND: return Combine::Min;
    case Op::BXOR: return Combine::BitXor;
    default: TORCH_CHECK_VALUE(false, "ocl: averages and scaled sums of bool have no meaning");
  }
}

Combine of_numbers(Op::RedOpType op, at::ScalarType type) {
  switch (op) {
    case Op::SUM:
    case Op::AVG:
    case Op::PREMUL_SUM: return Combine::Sum;
    case Op::PRODUCT: return Combine::Product;
    case Op::MIN: return Combine::Min;
    case Op::MAX: return Combine::Max;
    default: break;
  }
  TORCH_CHECK_VALUE(at::isIntegralType(type, false), "ocl: bitwise reductions of ", type,
                    " have no meaning");
  TORCH_CHECK_VALUE(op == Op::BAND || op == Op::BOR || op == Op::BXOR, "ocl: unknown reduction ",
                    static_cast<int>(op));
  return op == Op::BAND ? Combine::BitAnd : op == Op::BOR ? Combine::BitOr : Combine::BitXor;
}

double factor_of(const Op& op) {
  if (op.op_ != Op::PREMUL_SUM) return 1;
  const auto* extra = static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  const at::Tensor& tensor = extra->tensor_factor;
  return tensor.defined() ? tensor.item().toDouble() : extra->double_factor;
}

}  // namespace

const char* name_of(const Op& op) {
  switch (op.op_) {
    case Op::SUM: return "SUM";
    case Op::AVG: return "AVG";
    case Op::PRODUCT: return "PRODUCT";
    case Op::MIN: return "MIN";
    case Op::MAX: return "MAX";
    case Op::BAND: return "BAND";
    case Op::BOR: return "BOR";
    case Op::BXOR: return "BXOR";
    case Op::PREMUL_SUM: return "PREMUL_SUM";
    default: return "an unknown reduction";
  }
}

Reduction::Reduction(const Op& op, at::ScalarType type, int rank, int size)
    : rank_(rank), size_(size) {
  const std::optional<Number> number = number_of(type);
  TORCH_CHECK_TYPE(number.has_value(), "ocl: there are no reductions of ", type,
                   " between ranks: convert the tensors, or gather them");
  type_ = *number;
  formula_.how = type == at::kBool ? of_bools(op.op_) : of_numbers(op.op_, type);
  formula_.factor = factor_of(op);
  if (op.op_ == Op::AVG) formula_.divisor = size;
  const bool rounds = type_ == Number::Float16 || type_ == Number::BFloat16;
  exchange_ = rounds || op.op_ == Op::PREMUL_SUM;
}

Spans Reduction::pieces_of(Span memory) const {
  const size_t element = size_of(type_);
  const size_t ranks = static_cast<size_t>(size_);
  const size_t longest = (memory.bytes / element + ranks - 1) / ranks * element;
  Spans pieces;
  for (size_t begin = 0, k = 0; k < ranks; ++k) {
    const size_t bytes = std::min(longest, memory.bytes - begin);
    pieces.push_back({memory.data + begin, bytes});
    begin += bytes;
  }
  return pieces;
}

template <typename Collect>
void Reduction::by_pieces(Engine& engine, Span memory, Engine::Limit limit, Collect collect) const {
  const Spans parts = pieces_of(memory);
  // All as long as the first, because engines gather equal lengths only.
  const size_t longest = parts.front().bytes;
  std::vector<std::byte> padded(longest * parts.size());
  Spans results;
  for (size_t k = 0; k < parts.size(); ++k)
    results.push_back({padded.data() + k * longest, longest});
  const size_t rank = static_cast<size_t>(rank_);
  reduce_scatter(engine, {results[rank].data, parts[rank].bytes}, parts, limit);
  if (!collect(results, results[rank])) return;
  if (memory.bytes != 0) std::memcpy(memory.data, padded.data(), memory.bytes);
}

void Reduction::divide(Span memory) const {
  if (formula_.divisor == 1) return;
  Formula division;
  division.divisor = formula_.divisor;
  combine(type_, division, {memory.data}, memory);
}

void Reduction::allreduce(Engine& engine, Span memory, Engine::Limit limit) const {
  if (auto* const device = dynamic_cast<DeviceEngine*>(&engine))
    return device->allreduce(memory, type_, formula_, limit);
  if (exchange_) {
    by_pieces(engine, memory, limit, [&](const Spans& all, Span own) {
      engine.allgather(all, own, limit);
      return true;
    });
    return;
  }
  engine.allreduce(memory, type_, formula_.how, limit);
  divide(memory);
}

void Reduction::reduce(Engine& engine, Span memory, int root, Engine::Limit limit) const {
  if (auto* const device = dynamic_cast<DeviceEngine*>(&engine))
    return device->reduce(memory, type_, formula_, root, limit);
  const bool here = rank_ == root;
  if (exchange_) {
    by_pieces(engine, memory, limit, [&](const Spans& all, Span own) {
      engine.gather(here ? all : Spans{}, own, root, limit);
      return here;
    });
    return;
  }
  std::vector<std::byte> copy;
  if (!here) copy.assign(memory.data, memory.data + memory.bytes);
  engine.reduce(here ? memory : Span{copy.data(), copy.size()}, type_, formula_.how, root, limit);
  if (here) divide(memory);
}

void Reduction::reduce_scatter(Engine& engine, Span result, const Spans& parts,
                               Engine::Limit limit) const {
  if (auto* const device = dynamic_cast<DeviceEngine*>(&engine))
    return device->reduce_scatter(result, parts, type_, formula_, limit);
  std::vector<std::byte> memory(result.bytes * parts.size());
  Spans received;
  std::vector<const std::byte*> inputs;
  for (size_t k = 0; k < parts.size(); ++k) {
    received.push_back({memory.data() + k * result.bytes, result.bytes});
    inputs.push_back(received.back().data);
  }
  engine.alltoall(received, parts, limit);
  combine(type_, formula_, inputs, result);
}

}  // namespace torch_ocl::distributed
