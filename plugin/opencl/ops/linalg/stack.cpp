// Batches of matrices: views, packed scratch memory, operands that broadcast.
#include "linalg.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::linalg {
namespace {

int64_t padded(int64_t columns) { return divide_up(columns, kPanel) * kPanel; }

tb_address moved(const Stack& s, int64_t elements) {
  return s.at.address + static_cast<uint64_t>(elements * size_of(s.dtype));
}

Dims joined(const Dims& batch, std::initializer_list<int64_t> last) {
  Dims sizes = batch;
  for (const int64_t s : last) sizes.push_back(s);
  return sizes;
}

// The stride that leads from each matrix to the next; empty if there is no single one.
std::optional<int64_t> batch_stride(const Dims& batch, const Dims& strides) {
  int64_t stride = 0;
  int64_t count = 1;  // of the inner dimensions
  for (size_t d = batch.size(); d-- > 0;) {
    if (batch[d] == 1) continue;
    if (count == 1) stride = strides[d];
    if (strides[d] != stride * count) return std::nullopt;
    count *= batch[d];
  }
  return stride;
}

}  // namespace

Stack Stack::block(int64_t row, int64_t column, int64_t row_count, int64_t column_count) const {
  Stack part = *this;
  part.at.address = moved(*this, row * at.row + column * at.col);
  part.rows = row_count;
  part.columns = column_count;
  return part;
}

Stack Stack::rows_reversed() const {
  Stack other = *this;
  other.at.address = moved(*this, (rows - 1) * at.row);
  other.at.row = -at.row;
  return other;
}

Stack::operator MemoryRange() const {
  if (count * rows * columns == 0) return nullptr;
  const Extent e = extent(Dims{count, rows, columns}, Dims{at.batch, at.row, at.col});
  return {at.address, e.low * size_of(dtype), e.high * size_of(dtype)};
}

Stack Stack::reversed() const { return rows_reversed().transposed().rows_reversed().transposed(); }

LocalTensor transposed(TensorView tensor) {
  Dims sizes(tensor.sizes());
  Dims strides(tensor.strides());
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(strides[sizes.size() - 1], strides[sizes.size() - 2]);
  return LocalTensor(tensor.address(), tensor.dtype(), sizes, strides);
}

LocalTensor on_left(TensorView tensor, bool left) {
  if (!left) return transposed(tensor);
  return LocalTensor(tensor.address(), tensor.dtype(), Dims(tensor.sizes()),
                     Dims(tensor.strides()));
}

Dims batch_of(TensorView tensor) {
  return Dims(tensor.sizes().first(static_cast<size_t>(tensor.ndim() - 2)));
}

Packed::Packed(const OpCall& call, DType dtype, const Dims& batch, int64_t rows, int64_t columns)
    : call_(call),
      batch_(batch),
      memory_(call.scratch(
          static_cast<uint64_t>(numel(batch) * rows * padded(columns) * size_of(dtype)))),
      stack_{dtype,
             numel(batch),
             rows,
             columns,
             {memory_.address(), rows * padded(columns), padded(columns), 1}} {
  if (padded(columns) != columns && stack_.count * rows > 0)
    copy::fill_tensor(
        call, LocalTensor(memory_.address(), dtype, Dims{stack_.count * stack_.at.batch}), 0);
}

LocalTensor Packed::view(int64_t rows, int64_t columns) const {
  const Dims sizes = joined(batch_, {rows, columns});
  Dims strides = joined(contiguous_strides(batch_), {stack_.at.row, 1});
  for (size_t d = 0; d < batch_.size(); ++d) strides[d] *= stack_.at.batch;
  return LocalTensor(memory_.address(), stack_.dtype, sizes, strides);
}

void Packed::load(TensorView source) {
  copy_tensor(call_, view(source.size(-2), source.size(-1)), source);
}
void Packed::store(TensorView target) const {
  copy_tensor(call_, target, view(stack_.rows, stack_.columns));
}
void Packed::store_part(TensorView target) const {
  copy_tensor(call_, target, view(target.size(-2), target.size(-1)));
}

void Packed::set_identity() {
  if (stack_.count * stack_.at.batch == 0) return;
  const Dims all{stack_.count * stack_.at.batch};
  copy::fill_tensor(call_, LocalTensor(memory_.address(), stack_.dtype, all), 0);
  const Dims diagonal{stack_.count, std::min(stack_.rows, stack_.columns)};
  copy::fill_tensor(call_,
                    LocalTensor(memory_.address(), stack_.dtype, diagonal,
                                Dims{stack_.at.batch, stack_.at.row + 1}),
                    1);
}

std::optional<Stack> view_of(TensorView tensor, const Dims& batch) {
  const Dims sizes = joined(batch, {tensor.size(-2), tensor.size(-1)});
  const Dims strides = broadcast_strides(tensor.sizes(), tensor.strides(), sizes);
  const std::optional<int64_t> stride = batch_stride(batch, strides);
  if (!stride) return std::nullopt;
  return Stack{tensor.dtype(),
               numel(batch),
               tensor.size(-2),
               tensor.size(-1),
               {tensor.address(), *stride, tensor.stride(-2), tensor.stride(-1)}};
}

Operand::Operand(const OpCall& call, TensorView tensor, const Dims& batch) {
  if (const std::optional<Stack> view = view_of(tensor, batch)) {
    stack_ = *view;
    return;
  }
  const int64_t rows = tensor.size(-2);
  const int64_t columns = tensor.size(-1);
  const Dims sizes = joined(batch, {rows, columns});
  memory_.push_back(call.scratch(static_cast<uint64_t>(numel(sizes) * tensor.itemsize())));
  stack_ = {tensor.dtype(),
            numel(batch),
            rows,
            columns,
            {memory_[0].address(), rows * columns, columns, 1}};
  copy_tensor(call, LocalTensor(stack_.at.address, tensor.dtype(), sizes), tensor);
}

namespace {

std::vector<Scratch> memory_for(const OpCall& call, TensorView tensor, const Dims& sizes) {
  std::vector<Scratch> memory;
  if (!(tensor.is_contiguous() && Dims(tensor.sizes()) == sizes))
    memory.push_back(call.scratch(static_cast<uint64_t>(numel(sizes) * tensor.itemsize())));
  return memory;
}

}  // namespace

Vectors::Vectors(const OpCall& call, TensorView tensor, const Dims& batch)
    : memory_(memory_for(call, tensor, joined(batch, {tensor.size(-1)}))),
      local_(memory_.empty() ? tensor.address() : memory_[0].address(), tensor.dtype(),
             joined(batch, {tensor.size(-1)})) {
  if (!memory_.empty()) copy_tensor(call, local_, tensor);
}

}  // namespace ocltensor::opencl::linalg
