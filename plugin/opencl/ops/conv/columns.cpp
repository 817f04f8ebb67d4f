// Convolution of any geometry as products of matrices over columns (im2col) in scratch memory: the
// usual algorithm of GPUs, and that of CPU drivers for what their own kernels refuse. Half
// precision is summed in float32 and rounded once.
#include <algorithm>
#include <array>
#include <cstdint>

#include "call/divide_up.h"
#include "call/division.h"
#include "conv.h"
#include "kernels/conv.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kMostGroups = 8;            // each is a product of its own
constexpr int64_t kPassBytes = 256ll << 20;   // of columns at a time
constexpr int64_t kLargestImage = 1ll << 30;  // bytes of one image's columns

int64_t volume(const tk_i64 (&d)[3]) { return d[0] * d[1] * d[2]; }

// Columns that are summed, and a gradient that several passes add to, are kept in the compute type.
DType column_type(const Problem& p) {
  const ConvParams& g = p.params;
  const bool in_passes =
      g.batch * g.groups * g.big_channels * volume(g.window) * volume(g.out) * size_of(p.dtype) >
      kPassBytes;
  const bool keeps =
      p.direction == Direction::Forward || (p.direction == Direction::Weight && !in_passes);
  return keeps ? p.dtype : compute_type(p.dtype);
}

// Sizes that follow from the problem; the rest of this file uses them.
struct Shape {
  explicit Shape(const Problem& p)
      : type(column_type(p)),
        item(size_of(type)),
        positions(volume(p.params.out)),
        taps(volume(p.params.window)),
        depth(p.params.big_channels * taps),
        bigs(p.params.groups * p.params.big_channels),
        smalls(p.params.groups * p.params.small_channels) {}
  DType type;
  int64_t item, positions, taps;
  int64_t depth;         // rows of a group's matrix of columns
  int64_t bigs, smalls;  // channels of all groups
  int64_t image_bytes() const { return bigs * taps * positions * item; }
  tb_address moved(tb_address address, int64_t elements) const {
    return address + static_cast<uint64_t>(elements * item);
  }
};

const char* refuse(const OpCall& call, const Problem& p) {
  if (!call.caps().register_tiles()) return "the device has no fast products";
  const ConvParams& g = p.params;
  const Shape s(p);
  if (g.groups > kMostGroups) return "many groups";
  if (g.batch * s.positions == 0) return "nothing to sum";
  if (s.image_bytes() > kLargestImage) return "an image's columns are too large";
  for (int d = 0; d < 3; ++d)  // the kernel counts in 32 bits
    if (g.in[d] + g.padding[d] + g.window[d] * g.dilation[d] > INT32_MAX / 2 ||
        g.stride[d] > INT32_MAX / 2 || volume(g.in) > INT32_MAX / 2)
      return "the sizes need 64 bits";
  return nullptr;
}

// A tensor in row-major order and the columns' type: itself, or a copy.
class Operand {
 public:
  Operand(const OpCall& call, const Shape& s, const LocalTensor& tensor, bool is_output)
      : call_(call),
        tensor_(tensor),
        direct_(tensor.dtype() == s.type && tensor.view().is_contiguous()) {
    const int64_t bytes = tensor.view().numel() * s.item;
    if (!direct_) memory_.push_back(call.scratch(static_cast<uint64_t>(bytes)));
    type_ = s.type;
    if (!direct_ && !is_output) copy_tensor(call, copy(), tensor_);
  }
  tb_address address() const { return direct_ ? tensor_.view().address() : memory_[0].address(); }
  void finish() {
    if (!direct_) copy_tensor(call_, tensor_, copy());
  }

 private:
  LocalTensor copy() const { return LocalTensor(address(), type_, Dims(tensor_.view().sizes())); }
  const OpCall& call_;
  LocalTensor tensor_;
  bool direct_;
  DType type_ = DType::Float32;
  std::vector<Scratch> memory_;
};

LocalTensor small_tensor(const Problem& p) {
  const ConvParams& g = p.params;
  return LocalTensor(p.small, p.dtype,
                     {g.batch, g.groups * g.small_channels, g.out[0], g.out[1], g.out[2]},
                     Dims(std::span<const int64_t>(g.small_strides)));
}
LocalTensor weight_tensor(const Problem& p) {
  const ConvParams& g = p.params;
  return LocalTensor(
      p.weight, p.dtype,
      {g.groups * g.small_channels, g.big_channels, g.window[0], g.window[1], g.window[2]},
      Dims(std::span<const int64_t>(g.weight_strides)));
}

// Images [first, first + count) between the big tensor and columns.
void move_columns(const OpCall& call, const Problem& p, const Scratch& columns, int64_t first,
                  int64_t count) {
  const Shape s(p);
  const bool back = p.direction == Direction::Data;
  Defines d;
  d.type(define::TYPE, p.dtype).set(define::FLOATING, 1).type(define::COLUMNS, s.type);
  d.set(define::ADD_SELF, back && p.bias.has_value());
  const int64_t elements = back ? volume(p.params.in) : s.positions;
  const int64_t lanes = by_style<int64_t>(call, 1, 64);
  const int64_t each = back ? lanes : 4 * lanes;  // what a work-group takes
  const int64_t items = lanes == 1 ? 1 : divide_up(elements, each) * lanes;
  const Grid grid{items, back ? s.bigs : s.bigs * s.taps, count};
  const Grid group{lanes, 1, 1};
  namespace kernel = kernels::conv::columns;
  if (back)
    return call
        .launch(kernel::from_columns, d,
                {.big = memory_of_big(p),
                 .columns = columns,
                 .bias = memory_of_bias(p),
                 .first_image = first,
                 .p = p.params})
        .run(grid, group);
  // A gradient's columns run through all images, which are one sum.
  const bool weight = p.direction == Direction::Weight;
  call.launch(kernel::to_columns, d,
              {.columns = columns,
               .big = memory_of_big(p),
               .first_image = first,
               .row_stride = weight ? count * s.positions : s.positions,
               .image_stride = weight ? s.positions : s.bigs * s.taps * s.positions,
               .p = p.params})
      .run(grid, group);
}

// One group's operands as matrices, for images from `first` on; columns begin at image 0.
struct Matrices {
  matmul::Matrix weight, small, columns;
};
Matrices matrices(const Problem& p, tb_address weight, tb_address small, tb_address columns,
                  int64_t first, int64_t group) {
  const Shape s(p);
  const int64_t channels = p.params.small_channels;
  return {{s.moved(weight, group * channels * s.depth), 0, s.depth, 1},
          {s.moved(small, (first * s.smalls + group * channels) * s.positions),
           s.smalls * s.positions, s.positions, 1},
          {s.moved(columns, group * s.depth * s.positions), s.bigs * s.taps * s.positions,
           s.positions, 1}};
}
// The gradient of a pass, added to the result of earlier ones: one product whose sums run through
// all images, for which the small tensor's channels are brought to the front.
void add_gradient(const OpCall& call, const Problem& p, tb_address weight, tb_address small,
                  tb_address columns, int64_t first, int64_t count) {
  const Shape s(p);
  const int64_t length = count * s.positions;
  std::vector<Scratch> memory;
  tb_address lines = s.moved(small, first * s.smalls * s.positions);
  if (count > 1) {
    memory.push_back(call.scratch(static_cast<uint64_t>(s.smalls * length * s.item)));
    const LocalTensor images(lines, s.type, Dims{s.smalls, count, s.positions},
                             Dims{s.positions, s.smalls * s.positions, 1});
    lines = memory.back().address();
    copy_tensor(call, LocalTensor(lines, s.type, Dims{s.smalls, count, s.positions}), images);
  }
  for (int64_t g = 0; g < p.params.groups; ++g) {
    const int64_t channels = p.params.small_channels;
    matmul::Problem product{.types = s.type,
                            .batch = 1,
                            .m = channels,
                            .n = s.depth,
                            .k = length,
                            .a = {s.moved(lines, g * channels * length), 0, length, 1},
                            .b = {s.moved(columns, g * s.depth * length), 0, 1, length},
                            .c = {s.moved(weight, g * channels * s.depth), 0, s.depth, 1}};
    if (first > 0) product.end.add(product.c);
    matmul::run_matmul(call, product);
  }
}

void multiply(const OpCall& call, const Problem& p, tb_address weight, tb_address small,
              tb_address columns, int64_t first, int64_t count) {
  const Shape s(p);
  const bool forward = p.direction == Direction::Forward;
  for (int64_t g = 0; g < p.params.groups; ++g) {
    const Matrices m = matrices(p, weight, small, columns, first, g);
    matmul::Problem product{.types = s.type,
                            .batch = count,
                            .m = forward ? p.params.small_channels : s.depth,
                            .n = s.positions,
                            .k = forward ? s.depth : p.params.small_channels,
                            .a = forward ? m.weight : matmul::transposed(m.weight),
                            .b = forward ? m.columns : m.small,
                            .c = forward ? m.small : m.columns};
    if (forward && p.bias) {
      const int64_t channel = g * p.params.small_channels;
      product.end.add(
          {s.moved(*p.bias, channel * p.params.bias_stride), 0, p.params.bias_stride, 0});
    }
    matmul::run_matmul(call, product);
  }
}

void run(const OpCall& call, const Problem& p) {
  const Shape s(p);
  const Direction direction = p.direction;
  Operand weight(call, s, weight_tensor(p), direction == Direction::Weight);
  Operand small(call, s, small_tensor(p), direction == Direction::Forward);
  const int64_t images = std::clamp<int64_t>(kPassBytes / s.image_bytes(), 1, p.params.batch);
  const Scratch columns =
      call.scratch(static_cast<uint64_t>(images * s.bigs * s.taps * s.positions * s.item));
  for (int64_t first = 0; first < p.params.batch; first += images) {
    const int64_t count = std::min(images, p.params.batch - first);
    if (direction != Direction::Data) move_columns(call, p, columns, first, count);
    if (direction == Direction::Weight)
      add_gradient(call, p, weight.address(), small.address(), columns.address(), first, count);
    else
      multiply(call, p, weight.address(), small.address(), columns.address(), first, count);
    if (direction == Direction::Data) move_columns(call, p, columns, first, count);
  }
  if (direction == Direction::Weight) weight.finish();
  if (direction == Direction::Forward) small.finish();
}

}  // namespace

constinit const AlgorithmFor<Problem> kColumns({.id = "conv.columns",
                                                .description = "products over columns"},
                                               Steps<refuse, run>());

}  // namespace ocltensor::opencl::conv
