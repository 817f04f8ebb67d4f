// copy, fill, flip, roll: operators that move elements without computing.
#include "copy.h"

#include "kernel_sources.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::copy {
namespace {

constexpr elementwise::Formula kIdentity{"copy", elementwise::FormulaForm::Vector, "a"};
constexpr elementwise::Formula kComplexTruth{"truth", elementwise::FormulaForm::Lanes, "ctrue(a)"};

// Complex numbers as pairs of real ones: the last of the dimensions.
LocalTensor parts_of(TensorView tensor) {
  Dims sizes(tensor.sizes()), strides;
  for (const int64_t stride : tensor.strides()) strides.push_back(2 * stride);
  sizes.push_back(2);
  strides.push_back(1);
  return LocalTensor(tensor.address(), real_type(tensor.dtype()), sizes, strides);
}
// One part of them, without that dimension.
LocalTensor part_of(TensorView tensor, int64_t part) {
  const LocalTensor parts = parts_of(tensor);
  const TensorView view = parts.view();
  const auto rank = static_cast<size_t>(tensor.ndim());
  return view_of(view, Dims(view.sizes().first(rank)), Dims(view.strides().first(rank)), part);
}

// Copies where a type is float64 or complex128, and the device computes with neither.
void copy_parts(const OpCall& call, TensorView target, TensorView source) {
  if (is_complex(source.dtype()) && is_complex(target.dtype()))
    return copy_tensor(call, parts_of(target).view(), parts_of(source).view());
  if (!is_complex(target.dtype())) return copy_tensor(call, target, part_of(source, 0).view());
  copy_tensor(call, part_of(target, 0).view(), source);
  fill_tensor(call, part_of(target, 1).view(), 0);
}

void copy_op(OpCall& call) {
  const TensorView source = call.args().tensor(Arg::src), target = call.out(0);
  (void)broadcast_strides(source.sizes(), source.strides(), target.sizes());
  const bool in_parts = (is_complex(source.dtype()) || is_complex(target.dtype())) &&
                        (call.lacks(source.dtype()) || call.lacks(target.dtype()));
  if (in_parts && target.dtype() == DType::Bool)
    unsupported(TB_REASON_DTYPE, "copy from complex128 to bool on a device without float64");
  if (in_parts && target.ndim() == TB_MAX_RANK)
    unsupported(TB_REASON_RANK, "copy of complex128 with {} dimensions on a device without float64",
                target.ndim());
  call.accept();
  in_parts ? copy_parts(call, target, source) : copy_tensor(call, target, source);
}

void fill_op(OpCall& call) {
  const Scalar value = call.args().number(Arg::value);
  check(is_complex(call.out(0).dtype()) || value.imaginary() == 0,
        "fill: a complex number cannot be converted to {}", name(call.out(0).dtype()));
  check_fits(value, call.out(0).dtype());
  call.accept();
  fill_tensor(call, call.out(0), value);
}

void flip_op(OpCall& call) {
  const TensorView self = call.args().tensor(Arg::self);
  Dims strides(self.strides());
  int64_t offset = 0;
  for (int64_t dim : call.args().ints(Arg::dims)) {
    const auto d = static_cast<size_t>(wrap_dim(dim, self.ndim()));
    if (self.ndim() == 0) break;
    offset += (self.sizes()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  call.accept();
  if (self.numel() > 0)
    copy_tensor(call, call.out(0), view_of(self, Dims(self.sizes()), strides, offset));
}

// Copies the parts on both sides of each rolled dimension's seam; without dims, the flattened
// tensor rolls.
void roll_parts(const OpCall& call, TensorView out, TensorView self,
                std::span<const int64_t> shifts, std::span<const int64_t> dims) {
  if (shifts.empty()) return copy_tensor(call, out, self);
  const int64_t dim = wrap_dim(dims[0], self.ndim());
  const int64_t size = self.size(dim);
  const int64_t shift = ((shifts[0] % size) + size) % size;
  roll_parts(call, narrow(out, dim, shift, size - shift), narrow(self, dim, 0, size - shift),
             shifts.subspan(1), dims.subspan(1));
  if (shift > 0)
    roll_parts(call, narrow(out, dim, 0, shift), narrow(self, dim, size - shift, shift),
               shifts.subspan(1), dims.subspan(1));
}

void roll_op(OpCall& call) {
  const TensorView self = call.args().tensor(Arg::self);
  const TensorView out = call.out(0);
  const Dims shifts(call.args().ints(Arg::shifts));
  const Dims dims(call.args().ints(Arg::dims));
  check(!shifts.empty(), "roll needs at least one shift");
  check(dims.empty() ? shifts.size() == 1 : dims.size() == shifts.size(),
        "roll: shifts and dims must have the same length, got {} and {}", shifts.size(),
        dims.size());
  call.accept();
  if (self.numel() == 0) return;
  if (!dims.empty() && self.ndim() > 0) return roll_parts(call, out, self, shifts, dims);
  const Contiguous flat(call, self);
  ContiguousOutput target(call, out);
  const Dims n{self.numel()};
  roll_parts(call, view_of(target.view(), n, {1}, 0), view_of(flat.view(), n, {1}, 0), shifts,
             Dims{0});
  target.finish();
}

constexpr OpEntry kOperators[] = {{"copy.out", copy_op, true, true, true, true},
                                  {"fill.Scalar_out", fill_op, true, true, true},
                                  {"flip.out", flip_op, true, true, true},
                                  {"roll.out", roll_op, true, true, true}};

}  // namespace

DType carrier_type(DType type) {
  switch (size_of(type)) {
    case 1: return DType::UInt8;
    case 2: return DType::Int16;
    case 4: return DType::Int32;
    case 8: return DType::Int64;
    default: return DType::Complex128;  // two words: kernels move it as such
  }
}

LocalTensor view_of(TensorView tensor, const Dims& sizes, const Dims& strides, int64_t offset) {
  return LocalTensor(tensor.address() + static_cast<uint64_t>(offset * tensor.itemsize()),
                     tensor.dtype(), sizes, strides);
}

LocalTensor narrow(TensorView tensor, int64_t dim, int64_t start, int64_t length) {
  Dims sizes(tensor.sizes());
  sizes[static_cast<size_t>(dim)] = length;
  return view_of(tensor, sizes, Dims(tensor.strides()),
                 start * tensor.strides()[static_cast<size_t>(dim)]);
}

LocalTensor permuted(TensorView tensor, const Dims& order) {
  Dims sizes;
  Dims strides;
  for (const int64_t d : order) {
    sizes.push_back(tensor.sizes()[static_cast<size_t>(d)]);
    strides.push_back(tensor.strides()[static_cast<size_t>(d)]);
  }
  return view_of(tensor, sizes, strides, 0);
}

LocalTensor at_least_1d(TensorView tensor) {
  if (tensor.ndim() == 0) return view_of(tensor, {1}, {1}, 0);
  return view_of(tensor, Dims(tensor.sizes()), Dims(tensor.strides()), 0);
}

namespace {

// The driver's own copy. On CPU drivers it is a memcpy on one thread, where kernels use all
// threads.
const char* refuse_driver(const OpCall&, const Problem& copy) {
  const TensorView target = copy.target, source = copy.source;
  if (source.dtype() != target.dtype()) return "the types differ";
  if (!target.is_contiguous() || !source.is_contiguous() || !same(target.sizes(), source.sizes()))
    return "memory has gaps or another order";
  return nullptr;
}
void run_driver(const OpCall& call, const Problem& copy) {
  const int64_t bytes = copy.target.numel() * copy.target.itemsize();
  if (copy.target.address() == copy.source.address()) return;
  const Place to = resolve(copy.target.address(), 0, bytes);
  const Place in = resolve(copy.source.address(), 0, bytes);
  call.stream().copy(to.buffer, to.offset, in.buffer, in.offset, static_cast<uint64_t>(bytes));
}

// Elements of 16 bytes as two of 8.
LocalTensor as_words(TensorView tensor) {
  const LocalTensor parts = as_real(tensor);
  return LocalTensor(tensor.address(), DType::Int64, Dims(parts.view().sizes()),
                     Dims(parts.view().strides()));
}

void run_elementwise(const OpCall& call, const Problem& copy) {
  const TensorView target = copy.target, source = copy.source;
  const bool bits = source.dtype() == target.dtype();
  if (bits && source.itemsize() > 8)
    return run_elementwise(call, {as_words(target), as_words(source)});
  const DType moved = bits ? carrier_type(source.dtype()) : source.dtype();
  const LocalTensor in(source.address(), moved, Dims(source.sizes()), Dims(source.strides()));
  const LocalTensor out(target.address(), bits ? moved : target.dtype(), Dims(target.sizes()),
                        Dims(target.strides()));
  const TensorView in_view = in.view();
  const elementwise::ElementwiseInput input{&in_view, 0, false};
  const bool truth = is_complex(moved) && out.dtype() == DType::Bool;
  const bool complex = is_complex(moved) || is_complex(out.dtype());
  const bool wide = moved == DType::Complex128 || out.dtype() == DType::Complex128;
  const DType compute = !complex ? compute_type(moved)
                        : wide   ? DType::Complex128
                                 : DType::Complex64;
  elementwise::launch_elementwise(
      call, out.view(),
      {truth ? &kComplexTruth : &kIdentity, compute, out.dtype(), truth, {&input, 1}, {}});
}

constinit const AlgorithmFor<Problem> kDriver({.id = "copy.driver",
                                               .description = "the driver's copy",
                                               .style = DeviceStyle::Gpu},
                                              Steps<refuse_driver, run_driver>());
constinit const AlgorithmFor<Problem> kTranspose({.id = "copy.transpose",
                                                  .description = "blocks of two dimensions",
                                                  .style = DeviceStyle::Cpu},
                                                 Steps<plan_transpose, run_transpose>());
constinit const AlgorithmFor<Problem> kTransposeGpu({.id = "copy.transpose_gpu",
                                                     .description = "blocks of two dimensions",
                                                     .style = DeviceStyle::Gpu},
                                                    Steps<plan_transpose_gpu, run_transpose_gpu>());
constinit const AlgorithmFor<Problem> kElementwise(
    {.id = "copy.elementwise",
     .description = "a pointwise kernel, of bits within a type",
     .last_resort = true},
    Steps<takes_all<Problem>, run_elementwise>());

struct Traits {
  static std::string describe(const OpCall&, const Problem& copy) {
    return fmt::format("copy {} {} to {} {}", name(copy.source.dtype()),
                       to_string(copy.source.sizes()), name(copy.target.dtype()),
                       to_string(copy.target.sizes()));
  }
};
using Algorithms = AlgorithmList<Problem, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(
      "copy", copy_operators(), {&kDriver, &kTranspose, &kTransposeGpu, &kElementwise});  // leaked
  return list;
}

}  // namespace

const AlgorithmFamily& copy_algorithms() { return algorithms().family(); }

LocalTensor part_of(TensorView tensor, int which) {
  Dims strides;
  for (const int64_t s : tensor.strides()) strides.push_back(2 * s);
  const DType type = real_type(tensor.dtype());
  return LocalTensor(tensor.address() + static_cast<uint64_t>(which * size_of(type)), type,
                     Dims(tensor.sizes()), strides);
}

LocalTensor as_real(TensorView tensor) {
  Dims sizes(tensor.sizes());
  Dims strides;
  for (const int64_t s : tensor.strides()) strides.push_back(2 * s);
  sizes.push_back(2);
  strides.push_back(1);
  return LocalTensor(tensor.address(), real_type(tensor.dtype()), sizes, strides);
}

void fill_tensor(const OpCall& call, TensorView target, Scalar value) {
  if (!call.caps().fp64 && target.dtype() == DType::Float64) [[unlikely]]
    return fill_float64(call, target, value.as_double());
  const elementwise::ElementwiseInput input{nullptr, value, false};
  elementwise::launch_elementwise(
      call, target,
      {&kIdentity, compute_type(target.dtype()), target.dtype(), false, {&input, 1}, {}});
}

std::span<const OpEntry> copy_operators() { return kOperators; }

}  // namespace ocltensor::opencl::copy

// Declared in call/op_call.h: every family copies.
void ocltensor::opencl::copy_tensor(const OpCall& call, TensorView target, TensorView source) {
  if (target.numel() == 0) return;
  const DType from = source.dtype(), to = target.dtype();
  if (copy::lacks_float64(call, from, to)) [[unlikely]]
    return copy::convert_float64(call, target, source);
  if (is_complex(from) && !is_complex(to) && to != DType::Bool)  // ATen keeps the real part
    return copy_tensor(call, target, copy::part_of(source, 0));
  copy::algorithms().run(call, {target, source});
}
