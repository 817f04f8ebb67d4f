// Finds out whether an operand has lines of 16-byte vectors, and copies one that has not.
#include "operand.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kVectorBytes = 16;

}  // namespace

bool has_vector_lines(const Problem& p, const Operand& o, bool along_k_only) {
  if (!(o.along_k() || (o.along_lines() && !along_k_only))) return false;
  const int64_t stride = o.along_k() ? o.line : o.step;
  const auto fits = [item = size_of(o.type)](int64_t elements) {
    return elements > 0 && elements * item % kVectorBytes == 0;
  };
  return o.address % kVectorBytes == 0 && fits(stride) &&
         (p.batch == 1 || o.batch == 0 || fits(o.batch));
}

VectorOperand::VectorOperand(const OpCall& call, const Problem& p, const Operand& o, int64_t lines,
                             bool along_k_only)
    : operand_(o) {
  if (has_vector_lines(p, o, along_k_only)) return;
  const int64_t item = size_of(o.type), vector = kVectorBytes / item;
  const int64_t line = divide_up(p.k, vector) * vector;
  const int64_t batch = o.batch == 0 ? 1 : p.batch;
  memory_.emplace(call.scratch(static_cast<uint64_t>(batch * lines * line * item)));
  operand_ = {o.type, memory_->address(), o.batch == 0 ? 0 : lines * line, line, 1};
  const Dims sizes{batch, lines, p.k};
  copy_tensor(call, LocalTensor(operand_.address, o.type, sizes, Dims{lines * line, line, 1}),
              LocalTensor(o.address, o.type, sizes, Dims{o.batch, o.line, o.step}));
}

}  // namespace ocltensor::opencl::matmul
