// Deformable convolution: the call's geometry, and passes over its images, which forward and
// backward share.
#pragma once

#include <algorithm>
#include <optional>

#include "call/division.h"
#include "deform_params.h"
#include "kernels/vision.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "vision.h"

namespace ocltensor::opencl::vision {

inline constexpr int64_t kPassBytes = 128ll << 20;  // of columns at a time

// A tensor in row-major order and of the given type: itself, or a copy.
class Operand {
 public:
  Operand(const OpCall& call, TensorView tensor, DType type) {
    if (tensor.dtype() == type && tensor.is_contiguous()) {
      local_.emplace(tensor.address(), type, Dims(tensor.sizes()));
      return;
    }
    memory_.emplace(call.scratch(static_cast<uint64_t>(tensor.numel() * size_of(type))));
    local_.emplace(memory_->address(), type, Dims(tensor.sizes()));
    copy_tensor(call, *local_, tensor);
  }
  TensorView view() const { return local_->view(); }
  tb_address address() const { return view().address(); }

 private:
  std::optional<Scratch> memory_;
  std::optional<LocalTensor> local_;
};

// The call's geometry.
struct Deform {
  explicit Deform(const OpCall& call)
      : input(call.args().tensor(Arg::input)),
        weight(call.args().tensor(Arg::weight)),
        offset(call.args().tensor(Arg::offset)),
        mask(call.args().tensor(Arg::mask)),
        bias(call.args().tensor(Arg::bias)),
        type(input.dtype()),
        masked(call.args().boolean(Arg::use_mask)),
        batch(input.size(0)),
        channels(input.size(1)),
        outputs(weight.size(0)),
        groups(call.args().integer(Arg::groups)) {
    const Args& args = call.args();
    const Arg strides[] = {Arg::stride_h, Arg::stride_w}, paddings[] = {Arg::pad_h, Arg::pad_w},
              dilations[] = {Arg::dilation_h, Arg::dilation_w};
    for (int64_t d = 0; d < 2; ++d) {
      set(call, p.size[d], input.size(2 + d));
      set(call, p.window[d], weight.size(2 + d));
      set(call, p.stride[d], args.integer(strides[d]));
      set(call, p.padding[d], args.integer(paddings[d]));
      set(call, p.dilation[d], args.integer(dilations[d]));
      set(call, p.out[d], offset.size(2 + d));
    }
    p.groups = args.integer(Arg::offset_groups);
    p.group_channels = channels / p.groups;
    taps = int64_t{p.window[0]} * p.window[1];
    positions = int64_t{p.out[0]} * p.out[1];
    plane = int64_t{p.size[0]} * p.size[1];
    if (plane >= INT32_MAX || 4 * taps * positions >= INT32_MAX)
      unsupported(TB_REASON_SIZE, "{}: images of {} are too large", call.name(),
                  to_string(input.sizes()));
  }
  static void set(const OpCall& call, tk_i32& to, int64_t value) {
    if (value > (1 << 20))
      unsupported(TB_REASON_SIZE, "{}: sizes and steps are limited to 2^20, got {}", call.name(),
                  value);
    to = static_cast<tk_i32>(value);
  }

  int64_t column_rows() const { return channels * taps; }
  int64_t depth() const { return column_rows() / groups; }  // of a group's product
  // Images whose columns are made at a time.
  int64_t pass(DType columns) const {
    const int64_t image = column_rows() * positions * size_of(columns);
    const int64_t most = INT32_MAX / (4 * taps * positions * std::max<int64_t>(1, p.groups));
    return std::clamp<int64_t>(std::min(kPassBytes / std::max<int64_t>(1, image), most), 1,
                               std::max<int64_t>(1, batch));
  }
  Defines defines(DType columns) const {
    Defines d;
    return d.type(define::A, type).type(define::COLUMNS, columns).set(define::MASKED, masked);
  }

  TensorView input, weight, offset, mask, bias;
  DType type;
  bool masked;
  int64_t batch, channels, outputs, groups;
  int64_t taps = 0, positions = 0, plane = 0;
  DeformParams p{};
};

// Row-major operands of the kernels, and the images that a pass takes.
struct Pass {
  const Deform& deform;
  TensorView image, offset;
  MemoryRange mask;
  tb_address columns;
  DType type;  // of the columns
  int64_t first = 0, count = 0;

  LocalTensor column_tensor() const {
    return {columns, type, Dims{count, deform.channels, deform.taps, deform.positions}};
  }
  struct Work {
    DeformParams p;
    Division division;
  };
  Work cut(const OpCall& call, int64_t pieces, int64_t share = 1) const {
    Work work{deform.p, divide(call.caps(), pieces)};
    work.p.pieces = pieces;
    work.p.per_item = work.division.per_item;
    work.p.share = share;
    work.p.first = first;
    work.p.batch = count;
    return work;
  }
};

inline tb_address moved(tb_address address, int64_t elements, DType type) {
  return address + static_cast<uint64_t>(elements * size_of(type));
}

// A group's operands as matrices, of the images of a pass; columns begin at its first image.
struct Matrices {
  matmul::Matrix weight, result, columns;
};
inline Matrices matrices(const Pass& pass, tb_address weight, tb_address result, int64_t group) {
  const Deform& d = pass.deform;
  const int64_t rows = d.outputs / d.groups;
  return {{moved(weight, group * rows * d.depth(), pass.type), 0, d.depth(), 1},
          {moved(result, (pass.first * d.outputs + group * rows) * d.positions, pass.type),
           d.outputs * d.positions, d.positions, 1},
          {moved(pass.columns, group * d.depth() * d.positions, pass.type),
           d.column_rows() * d.positions, d.positions, 1}};
}

// The columns of a pass (deform.cpp).
void make_columns(const OpCall& call, const Pass& pass);

// Calls body(pass) with the images of each pass.
template <typename Body>
void for_each_pass(const OpCall& call, const Deform& deform, DType type, const Body& body) {
  const Contiguous image(call, deform.input), offset(call, deform.offset);
  std::optional<Contiguous> mask;
  if (deform.masked) mask.emplace(call, deform.mask);
  const int64_t images = deform.pass(type);
  const Scratch columns = call.scratch(
      static_cast<uint64_t>(images * deform.column_rows() * deform.positions * size_of(type)));
  Pass pass{deform,
            image.view(),
            offset.view(),
            mask ? MemoryRange(*mask) : MemoryRange(nullptr),
            columns.address(),
            type};
  for (; pass.first < deform.batch; pass.first += images) {
    pass.count = std::min(images, deform.batch - pass.first);
    body(pass);
  }
}

// Names a problem for people.
std::string describe(const OpCall& call, const Deform& deform);

void deform_conv2d_backward(OpCall& call);  // deform_backward.cpp

}  // namespace ocltensor::opencl::vision
