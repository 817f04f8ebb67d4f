// The rules of layouts.h.
#include "layouts.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "iteration.h"

namespace ocltensor {
namespace {

// The tensor arguments of a call by their positions in the schema.
class Operands {
 public:
  explicit Operands(const Args& args) : args_(args) {}
  Strided operator[](size_t position) const {
    const TensorView t = args_.tensor(args_.nth(position));
    return {t.sizes(), t.strides()};
  }

 private:
  const Args& args_;
};

enum class Format : uint8_t { Contiguous, ChannelsLast };

// ATen's suggest_memory_format (c10/core/MemoryFormat.h): strides that grow from channels over the
// last to the first spatial dimension and the batch. One channel, or one pixel, has both formats
// and counts as contiguous; an expanded channel does not count as innermost.
Format format_of(const Strided& t) {
  const size_t rank = t.sizes.size();
  if ((rank != 4 && rank != 5) || t.strides[1] == 0) return Format::Contiguous;
  int64_t least = 0;
  const auto grows = [&](size_t d) {
    if (t.sizes[d] == 0 || t.strides[d] < least) return false;
    if (d == 0 && least == t.strides[1]) return false;
    least = t.strides[d] * std::max<int64_t>(t.sizes[d], 1);
    return true;
  };
  bool all = grows(1);
  for (size_t d = rank; all && d-- > 2;) all = grows(d);
  return all && grows(0) ? Format::ChannelsLast : Format::Contiguous;
}

void set_format(TensorSpec& out, Format format) {
  if (format == Format::ChannelsLast && (out.sizes.size() == 4 || out.sizes.size() == 5))
    out.strides = channels_last_strides(out.sizes);
}

// Strides with the order of dimensions of `like`, which has as many: for other sizes, too.
Dims strides_like(const Strided& like, std::span<const int64_t> sizes) {
  if (std::ranges::equal(like.sizes, sizes))
    return elementwise_strides(like.sizes, std::span(&like, 1));
  std::vector<size_t> order(sizes.size());  // outermost first
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](size_t d) { return like.strides[d]; });
  Dims strides(sizes.size(), 1);
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0; step *= std::max<int64_t>(sizes[order[i]], 1))
    strides[order[i]] = step;
  return strides;
}

void like_first_two(const Operands& operands, TensorSpec& out) {
  const std::array both{operands[0], operands[1]};
  out.strides = elementwise_strides(out.sizes, both);
}

void like_normalized(const Operands& operands, TensorSpec& out) {
  const Format format = format_of(operands[1]);
  if (format == format_of(operands[0])) return like_first_two(operands, out);
  out.strides.clear();
  set_format(out, format);
}

void in_format_of_either(const Operands& operands, size_t first, std::span<TensorSpec> outs) {
  for (TensorSpec& out : outs)
    for (const size_t position : {first, first + 1}) set_format(out, format_of(operands[position]));
}

}  // namespace

void lay_out(const Operator& op, const Args& args, std::span<TensorSpec> outs) {
  const Operands operands(args);
  switch (op.layout) {
    case LayoutRule::Contiguous:
    case LayoutRule::Columns: return;
    case LayoutRule::LikeFirst: outs[0].strides = strides_like(operands[0], outs[0].sizes); return;
    case LayoutRule::LikeFirstTwo: return like_first_two(operands, outs[0]);
    case LayoutRule::LikeNormalized: return like_normalized(operands, outs[0]);
    case LayoutRule::LikeTheNext:
      for (size_t i = 0; i < outs.size(); ++i)
        outs[i].strides = strides_like(operands[i + 1], operands[i + 1].sizes);
      return;
    case LayoutRule::FormatOfFirst: return set_format(outs[0], format_of(operands[0]));
    case LayoutRule::FormatOfSecond: return set_format(outs[0], format_of(operands[1]));
    case LayoutRule::FormatOfConvolution: return in_format_of_either(operands, 0, outs);
    case LayoutRule::FormatOfConvolutionBackward: return in_format_of_either(operands, 1, outs);
  }
}

const char* name(LayoutRule rule) {
  switch (rule) {
    case LayoutRule::Contiguous: return "Contiguous";
    case LayoutRule::LikeFirst: return "LikeFirst";
    case LayoutRule::LikeFirstTwo: return "LikeFirstTwo";
    case LayoutRule::LikeNormalized: return "LikeNormalized";
    case LayoutRule::LikeTheNext: return "LikeTheNext";
    case LayoutRule::FormatOfFirst: return "FormatOfFirst";
    case LayoutRule::FormatOfSecond: return "FormatOfSecond";
    case LayoutRule::FormatOfConvolution: return "FormatOfConvolution";
    case LayoutRule::FormatOfConvolutionBackward: return "FormatOfConvolutionBackward";
    case LayoutRule::Columns: return "Columns";
  }
  return "";
}

}  // namespace ocltensor
