// Views: new shapes and strides over the same storage.
#include <algorithm>

#include "host/autograd/tape.h"
#include "host/core/named_errors.h"
#include "host/core/storage.h"
#include "ocltensor/tensor.h"

namespace ocltensor {

using detail::make_view;
using detail::record_view;

Tensor detail::make_view(const Tensor& base, const Dims& sizes, const Dims& strides,
                         int64_t offset) {
  return make_tensor(base.impl()->storage, sizes, strides, offset, base.dtype());
}

namespace {

// A view of the same elements in the same order.
Tensor reshaped(const char* name, const Tensor& self, const Dims& sizes, const Dims& strides) {
  return record_view(name, self, make_view(self, sizes, strides, self.offset()),
                     [shape = self.sizes()](const Tensor& g) { return g.reshape(shape); });
}

// The gradient of a tensor of which a view shows a range: zero elsewhere.
template <typename View>
Tensor around(const Dims& sizes, const Tensor& grad, View&& view) {
  Tensor whole = zeros(sizes, {grad.dtype(), grad.device()});
  view(whole).copy_(grad);
  return whole;
}

// Sizes with a -1 replaced, for `count` elements.
Dims infer_sizes(std::span<const int64_t> sizes, int64_t count) {
  Dims result(sizes);
  int64_t known = 1;
  int missing = -1;
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] == -1) {
      check(missing < 0, "only one size may be -1, got {}", to_string(sizes));
      missing = static_cast<int>(i);
    } else {
      check(result[i] >= 0, "a size must not be negative, got {}", to_string(sizes));
      known *= result[i];
    }
  }
  if (missing >= 0) {
    check(known != 0 && count % known == 0, "shape {} is not possible for {} elements",
          to_string(sizes), count);
    result[static_cast<size_t>(missing)] = count / known;
  } else {
    check(known == count, "shape {} is not possible for {} elements", to_string(sizes), count);
  }
  return result;
}

// Strides that give a tensor the shape `target` without copying; nothing if there are none. From
// the last dimension to the first, runs of dimensions that one stride could step through are
// divided into the new dimensions.
std::optional<Dims> view_strides(const Tensor& t, const Dims& target) {
  if (t.numel() == 0 || t.dim() == 0) {
    Dims strides = contiguous_strides(target);
    return strides;
  }
  const auto sizes = t.sizes();
  const auto strides = t.strides();
  Dims result(target.size(), 0);
  auto out = static_cast<int64_t>(target.size()) - 1;
  int64_t run = 1, run_base = strides.back();  // elements of the run, and its innermost stride
  for (auto i = static_cast<int64_t>(sizes.size()) - 1; i >= 0; --i) {
    const auto k = static_cast<size_t>(i);
    run *= sizes[k];
    const bool run_ends = i == 0 || (sizes[k - 1] != 1 && strides[k - 1] != run * run_base);
    if (!run_ends) continue;
    int64_t cut = 1;
    while (out >= 0 && (cut < run || target[static_cast<size_t>(out)] == 1)) {
      result[static_cast<size_t>(out)] = cut * run_base;
      cut *= target[static_cast<size_t>(out--)];
    }
    if (cut != run) return std::nullopt;
    if (i > 0) {
      run = 1;
      run_base = strides[k - 1];
    }
  }
  return out == -1 ? std::optional(result) : std::nullopt;
}

}  // namespace

Tensor Tensor::view(const Dims& sizes) const {
  const Dims target = infer_sizes(sizes, numel());
  const std::optional<Dims> strides = view_strides(*this, target);
  check(strides.has_value(),
        "a tensor of shape {} and strides {} cannot be viewed as {}: use reshape()",
        to_string(this->sizes()), to_string(this->strides()), to_string(sizes));
  return reshaped("view", *this, target, *strides);
}

Tensor Tensor::reshape(const Dims& sizes) const {
  const Dims target = infer_sizes(sizes, numel());
  if (const std::optional<Dims> strides = view_strides(*this, target))
    return reshaped("reshape", *this, target, *strides);
  return clone().view(target);
}

Tensor Tensor::flatten(int64_t first, int64_t last) const {
  if (dim() == 0) return reshape({1});
  const auto f = detail::wrapped("flatten", first, dim());
  const auto l = detail::wrapped("flatten", last, dim());
  check(f <= l, "flatten: first dimension {} lies behind the last one {}", first, last);
  Dims target;
  for (size_t i = 0; i < sizes().size(); ++i) {
    if (i > f && i <= l)
      target.back() *= sizes()[i];
    else
      target.push_back(sizes()[i]);
  }
  return reshape(target);
}

Tensor Tensor::as_strided(const Dims& sizes, const Dims& strides, int64_t offset) const {
  check(sizes.size() == strides.size(), "as_strided: {} sizes and {} strides", sizes.size(),
        strides.size());
  const Extent e = extent(sizes, strides);
  const int64_t places = static_cast<int64_t>(get().storage->bytes) / size_of(dtype());
  if (ocltensor::numel(sizes) == 0)
    check(offset >= 0 && offset <= places, "as_strided: offset {} is outside the storage", offset);
  else
    check(offset + e.low >= 0 && offset + e.high <= places,
          "as_strided: sizes {}, strides {} and offset {} reach elements {} to {}, the storage has "
          "{}",
          to_string(sizes), to_string(strides), offset, offset + e.low, offset + e.high - 1,
          places);
  return record_view("as_strided", *this, make_view(*this, sizes, strides, offset),
                     [](const Tensor&) -> Tensor {
                       fail(TB_UNSUPPORTED, "the derivative of as_strided is not known");
                     });
}

Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) const {
  check(this->dim() > 0, "slice: a 0-dimensional tensor cannot be sliced");
  check(step > 0, "slice: the step must be positive, got {}", step);
  const auto d = detail::wrapped("slice", dim, this->dim());
  const int64_t size = sizes()[d];
  const auto bound = [size](int64_t at) {
    return std::clamp(at < 0 ? at + size : at, int64_t{0}, size);
  };
  const int64_t first = bound(start.value_or(0));
  const int64_t past = std::max(first, bound(end.value_or(size)));
  Dims new_sizes(sizes()), new_strides(strides());
  new_sizes[d] = (past - first) / step + ((past - first) % step != 0 ? 1 : 0);
  new_strides[d] *= step;
  return record_view("slice", *this,
                     make_view(*this, new_sizes, new_strides, offset() + first * strides()[d]),
                     [=, shape = sizes()](const Tensor& g) {
                       return around(shape, g, [&](const Tensor& whole) {
                         return whole.slice(static_cast<int64_t>(d), first, past, step);
                       });
                     });
}

Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  check(this->dim() > 0, "narrow: a 0-dimensional tensor cannot be narrowed");
  const int64_t size = this->size(dim);
  const int64_t first = start < 0 ? start + size : start;
  check(first >= 0 && length >= 0 && length <= size - first,
        "narrow: start {} and length {} exceed dimension {} of size {}", start, length, dim, size);
  return slice(dim, first, first + length);
}

Tensor Tensor::select(int64_t dim, int64_t index) const {
  check(this->dim() > 0, "select: a 0-dimensional tensor cannot be indexed");
  const auto d = detail::wrapped("select", dim, this->dim());
  const int64_t size = sizes()[d];
  check(index >= -size && index < size,
        "select: index {} is out of range for dimension {} of size {}", index, dim, size);
  const int64_t at = index < 0 ? index + size : index;
  Dims new_sizes(sizes()), new_strides(strides());
  new_sizes.erase(d);
  new_strides.erase(d);
  return record_view("select", *this,
                     make_view(*this, new_sizes, new_strides, offset() + at * strides()[d]),
                     [d, at, shape = sizes()](const Tensor& g) {
                       return around(shape, g, [&](const Tensor& whole) {
                         return whole.select(static_cast<int64_t>(d), at);
                       });
                     });
}

Tensor Tensor::transpose(int64_t a, int64_t b) const {
  const auto i = detail::wrapped("transpose", a, dim()), j = detail::wrapped("transpose", b, dim());
  Dims new_sizes(sizes()), new_strides(strides());
  if (dim() > 0) {
    std::swap(new_sizes[i], new_sizes[j]);
    std::swap(new_strides[i], new_strides[j]);
  }
  return record_view("transpose", *this, make_view(*this, new_sizes, new_strides, offset()),
                     [a, b](const Tensor& g) { return g.transpose(a, b); });
}

Tensor Tensor::t() const {
  check(dim() <= 2, "t() needs at most two dimensions, the shape is {}", to_string(sizes()));
  return dim() < 2 ? *this : transpose(0, 1);
}

Tensor Tensor::permute(const Dims& dims) const {
  check(static_cast<int64_t>(dims.size()) == dim(), "permute: {} dimensions for a tensor of {}",
        dims.size(), dim());
  Dims new_sizes, new_strides;
  DimMask seen;
  for (const int64_t d : dims) {
    const auto i = detail::wrapped("permute", d, dim());
    check(!seen[i], "permute: dimension {} appears twice", d);
    seen.set(i);
    new_sizes.push_back(sizes()[i]);
    new_strides.push_back(strides()[i]);
  }
  return record_view("permute", *this, make_view(*this, new_sizes, new_strides, offset()),
                     [dims](const Tensor& g) {
                       Dims back(dims.size(), 0);
                       for (size_t i = 0; i < dims.size(); ++i)
                         back[static_cast<size_t>(wrap_dim(dims[i], g.dim()))] =
                             static_cast<int64_t>(i);
                       return g.permute(back);
                     });
}

Tensor Tensor::expand(const Dims& target) const {
  check(static_cast<int64_t>(target.size()) >= dim(),
        "expand: {} has fewer dimensions than the tensor's {}", to_string(target),
        to_string(sizes()));
  Dims wanted(target);
  const size_t skip = target.size() - sizes().size();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == -1 && i >= skip) wanted[i] = sizes()[i - skip];
    check(wanted[i] >= 0, "expand: {} is not a possible shape", to_string(target));
  }
  return record_view(
      "expand", *this,
      make_view(
          *this, wanted,
          detail::naming("expand", [&] { return broadcast_strides(sizes(), strides(), wanted); }),
          offset()),
      [](const Tensor& g) { return g; });  // the tape sums over what was repeated
}

Tensor Tensor::squeeze() const {
  Dims new_sizes, new_strides;
  for (size_t i = 0; i < sizes().size(); ++i) {
    if (sizes()[i] == 1) continue;
    new_sizes.push_back(sizes()[i]);
    new_strides.push_back(strides()[i]);
  }
  return reshaped("squeeze", *this, new_sizes, new_strides);
}

Tensor Tensor::squeeze(int64_t dim) const {
  const auto d = detail::wrapped("squeeze", dim, this->dim());
  if (this->dim() == 0 || sizes()[d] != 1) return *this;
  return select(dim, 0);
}

Tensor Tensor::unsqueeze(int64_t dim) const {
  const auto d = detail::wrapped("unsqueeze", dim, this->dim() + 1);
  Dims new_sizes(sizes()), new_strides(strides());
  new_strides.insert(d, d < sizes().size() ? sizes()[d] * strides()[d] : 1);
  new_sizes.insert(d, 1);
  return reshaped("unsqueeze", *this, new_sizes, new_strides);
}

}  // namespace ocltensor
