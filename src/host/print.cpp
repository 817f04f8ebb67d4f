// Text of a tensor: nested brackets; beyond 1000 elements only the edges of each dimension.
#include <ostream>

#include "ocltensor/tensor.h"

namespace ocltensor {
namespace detail {

std::string element_text(DType type, const void* p);

namespace {

constexpr int64_t kWhole = 1000;
constexpr int64_t kEdge = 3;

void append(std::string& text, const Tensor& t, size_t dim, int64_t offset, bool shorten) {
  if (dim == t.sizes().size()) {
    text +=
        element_text(t.dtype(), static_cast<const char*>(t.data()) + offset * size_of(t.dtype()));
    return;
  }
  const int64_t size = t.sizes()[dim];
  const bool last = dim + 1 == t.sizes().size();
  text += '[';
  for (int64_t i = 0; i < size; ++i) {
    if (i != 0) text += last ? std::string(", ") : ",\n" + std::string(dim + 1, ' ');
    if (shorten && size > 2 * kEdge && i == kEdge) {
      text += "...";
      i = size - kEdge - 1;
      continue;
    }
    append(text, t, dim + 1, offset + i * t.strides()[dim], shorten);
  }
  text += ']';
}

}  // namespace
}  // namespace detail

std::string Tensor::text() const {
  if (!defined()) return "undefined tensor";
  const Tensor host = to(Device());
  current_stream(Device()).synchronize();
  std::string text;
  detail::append(text, host, 0, 0, numel() > detail::kWhole);
  return fmt::format("{}\n{} {} on {}", text, name(dtype()), to_string(sizes()), device().text());
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  return stream << tensor.text();
}

}  // namespace ocltensor
