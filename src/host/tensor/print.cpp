// Text of a tensor: nested brackets, columns aligned; of large tensors only the edges of each
// dimension.
#include "ocltensor/print.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include "ocltensor/autograd.h"

namespace ocltensor {
namespace detail {

std::string element_text(DType type, const void* p, int precision);

namespace {

PrintOptions& current() {
  thread_local PrintOptions options;
  return options;
}

// Visits a dimension's positions that are shown; -1 stands for those that are left out.
template <typename Visit>
void for_each_shown(int64_t size, bool shorten, Visit&& visit) {
  const int64_t edge = current().edge;
  for (int64_t i = 0; i < size; ++i) {
    if (shorten && size > 2 * edge && i == edge) {
      visit(-1);
      i = size - edge - 1;
      continue;
    }
    visit(i);
  }
}

class Printer {
 public:
  explicit Printer(const Tensor& host)
      : tensor_(host), shorten_(host.numel() > current().threshold) {
    collect(0, 0);
    for (const std::string& text : elements_) width_ = std::max(width_, text.size());
  }
  std::string text() {
    std::string text;
    append(text, 0);
    return text;
  }

 private:
  bool is_last(size_t dim) const { return dim + 1 == tensor_.sizes().size(); }

  // The elements that are shown, in their order.
  void collect(size_t dim, int64_t offset) {
    if (dim == tensor_.sizes().size()) {
      const char* at = static_cast<const char*>(tensor_.data());
      elements_.push_back(element_text(tensor_.dtype(), at + offset * size_of(tensor_.dtype()),
                                       current().precision));
      return;
    }
    for_each_shown(tensor_.sizes()[dim], shorten_, [&](int64_t i) {
      if (i >= 0) collect(dim + 1, offset + i * tensor_.strides()[dim]);
    });
  }

  void append(std::string& text, size_t dim) {
    if (dim == tensor_.sizes().size()) {
      const std::string& element = elements_[next_++];
      text += std::string(width_ - element.size(), ' ') + element;
      return;
    }
    text += '[';
    bool first = true;
    for_each_shown(tensor_.sizes()[dim], shorten_, [&](int64_t i) {
      if (!first) text += is_last(dim) ? std::string(", ") : ",\n" + std::string(dim + 1, ' ');
      first = false;
      if (i < 0)
        text += "...";
      else
        append(text, dim + 1);
    });
    text += ']';
  }

  const Tensor& tensor_;
  const bool shorten_;
  std::vector<std::string> elements_;
  size_t width_ = 0, next_ = 0;
};

}  // namespace
}  // namespace detail

PrintOptions print_options() noexcept { return detail::current(); }

void set_print_options(const PrintOptions& options) {
  check(options.precision > 0 && options.threshold > 0 && options.edge > 0,
        "print options must be positive, got precision {}, threshold {}, edge {}",
        options.precision, options.threshold, options.edge);
  detail::current() = options;
}

std::string Tensor::text() const {
  if (!defined()) return "undefined tensor";
  const NoGrad off;
  const Tensor host = to(Device());
  current_stream(Device()).synchronize();
  return fmt::format("{}\n{} {} on {}", detail::Printer(host).text(), name(dtype()),
                     to_string(sizes()), device().text());
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  return stream << tensor.text();
}

}  // namespace ocltensor
