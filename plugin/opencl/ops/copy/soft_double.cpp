// float64 on devices without it: stored and moved as bits, converted by integer arithmetic.
#include <bit>

#include "call/division.h"
#include "copy.h"
#include "kernels/copy.h"

namespace ocltensor::opencl::copy {
namespace {

int64_t kind_of(DType type) {
  switch (type) {
    case DType::Float32: return 0;
    case DType::Float16: return 1;
    case DType::BFloat16: return 2;
    case DType::Bool: return 4;
    default: return 3;
  }
}

LocalTensor as_bits(TensorView tensor) {
  return LocalTensor(tensor.address(), DType::Int64, Dims(tensor.sizes()), Dims(tensor.strides()));
}

}  // namespace

LocalTensor as_moved(const OpCall& call, TensorView tensor) {
  if (call.lacks(tensor.dtype())) return as_bits(tensor);
  return view_of(tensor, Dims(tensor.sizes()), Dims(tensor.strides()), 0);
}

bool lacks_float64(const OpCall& call, DType a, DType b) {
  return !call.caps().fp64 && a != b && (a == DType::Float64 || b == DType::Float64);
}

void convert_float64(const OpCall& call, TensorView target, TensorView source) {
  const bool to_double = target.dtype() == DType::Float64;
  const DType other = to_double ? source.dtype() : target.dtype();
  const LocalTensor spread(source.address(), to_double ? other : DType::Int64, Dims(target.sizes()),
                           broadcast_strides(source.sizes(), source.strides(), target.sizes()));
  const Contiguous in(call, spread);
  const LocalTensor target_bits =
      to_double ? as_bits(target)
                : view_of(target, Dims(target.sizes()), Dims(target.strides()), 0);
  ContiguousOutput out(call, target_bits);
  Defines d;
  d.type(define::A, other).set(define::KIND, kind_of(other)).set(define::TO_DOUBLE, to_double);
  const Division division = divide(call.caps(), target.numel(), 1024);
  call.launch(kernels::copy::soft_double::convert, d,
              {.out = out.view(),
               .in = in.view(),
               .count = target.numel(),
               .per_item = division.per_item})
      .run(division.global, division.local);
  out.finish();
}

void fill_float64(const OpCall& call, TensorView target, double value) {
  fill_tensor(call, as_bits(target), std::bit_cast<int64_t>(value));
}

}  // namespace ocltensor::opencl::copy
