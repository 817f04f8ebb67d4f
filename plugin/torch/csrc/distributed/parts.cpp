// Cutting spans, and turning lists of lists.
#include "parts.h"

namespace torch_ocl::distributed {

std::string form_of(const TensorList& tensors, const std::string& more) {
  std::string text = more;
  for (const at::Tensor& tensor : tensors)
    text += (&tensor == &tensors.front() ? " of " : ", ") + std::to_string(tensor.numel()) + " " +
            c10::toString(tensor.scalar_type());
  return text;
}

std::vector<Use> uses_of(const TensorList& read, const TensorList& written) {
  std::vector<Use> uses;
  for (const at::Tensor& tensor : read) uses.push_back({tensor, true, false});
  for (const at::Tensor& tensor : written) uses.push_back({tensor, false, true});
  return uses;
}

Spans cut(Span whole, size_t ranks) {
  Spans parts;
  for (size_t k = 0; k < ranks; ++k)
    parts.push_back({whole.data + k * (whole.bytes / ranks), whole.bytes / ranks});
  return parts;
}

Spans cut(Span whole, const std::vector<int64_t>& sizes, size_t ranks) {
  if (sizes.empty()) return cut(whole, ranks);
  int64_t rows = 0;
  for (const int64_t size : sizes) rows += size;
  Spans parts;
  std::byte* at = whole.data;
  for (const int64_t size : sizes) {
    const size_t bytes =
        rows == 0 ? 0 : whole.bytes / static_cast<size_t>(rows) * static_cast<size_t>(size);
    parts.push_back({at, bytes});
    at += bytes;
  }
  return parts;
}

Spans slice(const Spans& spans, size_t begin, size_t count) {
  const auto first = spans.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

std::vector<TensorList> turned(const std::vector<TensorList>& lists) {
  std::vector<TensorList> by_part(lists.empty() ? 0 : lists.front().size());
  for (const TensorList& list : lists)
    for (size_t k = 0; k < list.size(); ++k) by_part[k].push_back(list[k]);
  return by_part;
}

TensorList joined(const std::vector<TensorList>& lists) {
  TensorList all;
  for (const TensorList& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Spans parts_of(const Spans& memory, size_t begin, size_t k, size_t tensors, size_t ranks) {
  if (tensors == 1) return cut(memory[begin + k], ranks);
  return slice(memory, begin + k * ranks, ranks);
}

}  // namespace torch_ocl::distributed
