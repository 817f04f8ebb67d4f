// Gather, scatter, index_select, index_add, embedding, nonzero, nonzero_static, masked_select.
#include "call.h"
#include "special.h"

namespace ocltensor::cpu {
namespace {

int64_t checked_index(const CpuCall& call, int64_t index, int64_t size, bool negative_too = false) {
  if (index < (negative_too ? -size : 0) || index >= size)
    fail(TB_E_INDEX, "{}: index {} is out of bounds for a dimension of size {}",
         call.args.schema().full_name(), index, size);
  return index < 0 ? index + size : index;
}

View at_least_1d(View v) {
  if (v.ndim() == 0) {
    v.sizes.push_back(1);
    v.strides.push_back(1);
  }
  return v;
}

// For every position of `index`, the offset in a dense tensor of `sizes` of the element with the
// same coordinates, except that the coordinate in `dim` is the index's value.
std::vector<int64_t> index_offsets(const CpuCall& call, const View& index, const Dims& sizes,
                                   int64_t dim) {
  auto offsets = read<int64_t>(index);
  const Dims strides = contiguous_strides(sizes);
  Dims at(index.sizes.size(), 0);
  const auto d = static_cast<size_t>(dim);
  for (int64_t& value : offsets) {
    int64_t offset = checked_index(call, value, sizes[d]) * strides[d];
    for (size_t k = 0; k < at.size(); ++k)
      if (k != d) offset += at[k] * strides[k];
    value = offset;
    for (size_t k = at.size(); k-- > 0;) {
      if (++at[k] < index.sizes[k]) break;
      at[k] = 0;
    }
  }
  return offsets;
}

void gather(const CpuCall& call) {
  const View self = at_least_1d(call.args.tensor(Arg::self));
  const View index = at_least_1d(call.args.tensor(Arg::index));
  const int64_t dim = wrap_dim(call.args.integer(Arg::dim), self.ndim());
  if (index.numel() == 0) return;
  with_compute(self.type, [&]<typename T>(T) {
    const auto values = read<T>(self);
    const auto offsets = index_offsets(call, index, self.sizes, dim);
    std::vector<T> result(offsets.size());
    for (size_t i = 0; i < offsets.size(); ++i) result[i] = values[static_cast<size_t>(offsets[i])];
    write(at_least_1d(call.out(0)), result);
  });
}

enum class Reduce { Replace, Sum, Product, Mean, Max, Min };

// `two`: the names are those of scatter_reduce (overload "two"), else those of scatter.
Reduce reduce_named(const CpuCall& call, std::string_view name, bool two) {
  if (name == (two ? "sum" : "add")) return Reduce::Sum;
  if (name == (two ? "prod" : "multiply")) return Reduce::Product;
  if (two && name == "mean") return Reduce::Mean;
  if (two && name == "amax") return Reduce::Max;
  if (two && name == "amin") return Reduce::Min;
  fail(TB_E_INVALID, "{}: '{}' is not a reduction: use {}", call.args.schema().full_name(), name,
       two ? "sum, prod, mean, amax or amin" : "add or multiply");
}

template <typename T>
void combine(T& target, T value, Reduce how) {
  switch (how) {
    case Reduce::Replace: target = value; break;
    case Reduce::Sum:
    case Reduce::Mean: target += value; break;
    case Reduce::Product: target *= value; break;
    case Reduce::Max: target = special::maximum(target, value); break;
    case Reduce::Min: target = special::minimum(target, value); break;
  }
}

void scatter_with(const CpuCall& call, Reduce how, bool include_self) {
  const View self = at_least_1d(call.args.tensor(Arg::self));
  const View index = at_least_1d(call.args.tensor(Arg::index));
  const int64_t dim = wrap_dim(call.args.integer(Arg::dim), self.ndim());
  with_compute(self.type, [&]<typename T>(T) {
    auto result = read<T>(self);
    std::vector<int64_t> offsets;
    std::vector<T> src;
    if (index.numel() != 0) {
      offsets = index_offsets(call, index, self.sizes, dim);
      if (call.args.has(Arg::src)) {
        View from = at_least_1d(call.args.tensor(Arg::src));
        from.sizes = index.sizes;  // only the leading part is used
        src = read<T>(from);
      } else {
        src.assign(offsets.size(), number<T>(call.args.scalar(Arg::value)));
      }
    }
    std::vector<int64_t> hits(result.size(), include_self ? 1 : 0);
    for (size_t i = 0; i < offsets.size(); ++i) {
      const auto at = static_cast<size_t>(offsets[i]);
      if (hits[at]++ == 0)
        result[at] = src[i];
      else
        combine(result[at], src[i], how);
    }
    if (how == Reduce::Mean)
      for (size_t i = 0; i < result.size(); ++i)
        if (hits[i] > 1) {
          if constexpr (std::is_same_v<T, double>)
            result[i] /= static_cast<double>(hits[i]);
          else
            result[i] = special::divide_floor(result[i], hits[i]);
        }
    write(at_least_1d(call.out(0)), result);
  });
}
void scatter(const CpuCall& call) { scatter_with(call, Reduce::Replace, true); }
void scatter_add(const CpuCall& call) { scatter_with(call, Reduce::Sum, true); }
void scatter_reduce(const CpuCall& call) {
  scatter_with(call, reduce_named(call, call.args.string(Arg::reduce), false), true);
}
void scatter_reduce_two(const CpuCall& call) {
  scatter_with(call, reduce_named(call, call.args.string(Arg::reduce), true),
               call.args.boolean(Arg::include_self));
}

// A tensor as [outer, dimension, inner].
struct Slices {
  int64_t outer = 1, size = 1, inner = 1;
  Slices(const View& v, int64_t dim) {
    for (int64_t d = 0; d < v.ndim(); ++d)
      (d < dim ? outer : d == dim ? size : inner) *= v.sizes[static_cast<size_t>(d)];
  }
};

void index_select(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const int64_t dim = wrap_dim(call.args.integer(Arg::dim), self.ndim());
  const Slices s(self, dim);
  const auto index = read<int64_t>(call.args.tensor(Arg::index));
  with_compute(self.type, [&]<typename T>(T) {
    const auto values = read<T>(self);
    std::vector<T> result;
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t i : index) {
        const auto row = values.begin() + (o * s.size + checked_index(call, i, s.size)) * s.inner;
        result.insert(result.end(), row, row + s.inner);
      }
    write(call.out(0), result);
  });
}

void index_add(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const int64_t dim = wrap_dim(call.args.integer(Arg::dim), self.ndim());
  const Slices s(self, dim);
  const auto index = read<int64_t>(call.args.tensor(Arg::index));
  with_compute(self.type, [&]<typename T>(T) {
    auto result = read<T>(self);
    const auto source = read<T>(call.args.tensor(Arg::source));
    const T alpha = number<T>(call.args.scalar(Arg::alpha));
    const T* from = source.data();
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t i : index) {
        T* to = result.data() + (o * s.size + checked_index(call, i, s.size)) * s.inner;
        for (int64_t k = 0; k < s.inner; ++k) to[k] += alpha * *from++;
      }
    write(call.out(0), result);
  });
}

void embedding(const CpuCall& call) {
  const View weight = call.args.tensor(Arg::weight);
  const auto index = read<int64_t>(call.args.tensor(Arg::indices));
  const int64_t width = weight.sizes[1];
  with_compute(weight.type, [&]<typename T>(T) {
    const auto values = read<T>(weight);
    std::vector<T> result;
    for (int64_t i : index) {
      const auto row = values.begin() + checked_index(call, i, weight.sizes[0]) * width;
      result.insert(result.end(), row, row + width);
    }
    write(call.out(0), result);
  });
}

void embedding_backward(const CpuCall& call) {
  const auto gradient = read<double>(call.args.tensor(Arg::grad_output));
  const auto index = read<int64_t>(call.args.tensor(Arg::indices));
  const int64_t rows = call.args.integer(Arg::num_weights);
  const int64_t padding = call.args.integer(Arg::padding_idx);
  const int64_t width = call.specs[0].sizes[1];
  std::vector<int64_t> uses(static_cast<size_t>(rows), 0);
  for (int64_t i : index) ++uses[static_cast<size_t>(checked_index(call, i, rows))];
  std::vector<double> result(static_cast<size_t>(rows * width));
  for (size_t n = 0; n < index.size(); ++n) {
    if (index[n] == padding) continue;
    const double scale = call.args.boolean(Arg::scale_grad_by_freq)
                             ? 1.0 / static_cast<double>(uses[static_cast<size_t>(index[n])])
                             : 1;
    for (int64_t k = 0; k < width; ++k)
      result[static_cast<size_t>(index[n] * width + k)] +=
          scale * gradient[n * static_cast<size_t>(width) + static_cast<size_t>(k)];
  }
  write(call.out(0), result);
}

// Whether each element counts as true.
std::vector<uint8_t> truth(const View& v) {
  std::vector<uint8_t> result;
  with_compute(v.type, [&]<typename T>(T) {
    for (T value : read<T>(v)) result.push_back(value != 0);
  });
  return result;
}

// The coordinates of each true element; their number.
int64_t coordinates(const View& self, std::vector<int64_t>& result) {
  const auto mask = truth(self);
  const Dims strides = contiguous_strides(self.sizes);
  int64_t count = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (!mask[i]) continue;
    ++count;
    for (size_t d = 0; d < strides.size(); ++d)
      result.push_back(static_cast<int64_t>(i) / strides[d] % self.sizes[d]);
  }
  return count;
}

void nonzero(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  std::vector<int64_t> result;
  const int64_t count = coordinates(self, result);
  write(call.resized(0, Dims{count, self.ndim()}), result);
}

// Rows behind those of the true elements get a number that is given.
void nonzero_static(const CpuCall& call) {
  std::vector<int64_t> result;
  (void)coordinates(call.args.tensor(Arg::self), result);
  result.resize(static_cast<size_t>(numel(call.specs[0].sizes)),
                call.args.integer(Arg::fill_value));
  write(call.out(0), result);
}

void masked_select(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const View mask = call.args.tensor(Arg::mask);
  const Dims common = broadcast(self.sizes, mask.sizes);
  const auto chosen = truth(mask.broadcast_to(common));
  with_compute(self.type, [&]<typename T>(T) {
    const auto values = read<T>(self.broadcast_to(common));
    std::vector<T> result;
    for (size_t i = 0; i < values.size(); ++i)
      if (chosen[i]) result.push_back(values[i]);
    write(call.resized(0, Dims{static_cast<int64_t>(result.size())}), result);
  });
}

// ---- advanced indexing: one position of self for each element of the result, whose dimensions are
// those of the indices' common shape and those of self that are not indexed

// Replaces a mask by the coordinates of its true elements, one index per dimension.
void expand(const std::optional<TensorView>& index, std::vector<std::optional<View>>& views,
            std::vector<std::vector<int64_t>>& storage) {
  if (!index || (index->dtype() != DType::Bool && index->dtype() != DType::UInt8)) {
    views.emplace_back(index ? std::optional<View>(View(*index)) : std::nullopt);
    return;
  }
  const auto mask = truth(View(*index));
  const Dims sizes = index->sizes();
  const Dims strides = contiguous_strides(sizes);
  for (size_t d = 0; d < sizes.size(); ++d) {
    auto& column = storage.emplace_back();
    for (size_t i = 0; i < mask.size(); ++i)
      if (mask[i]) column.push_back(static_cast<int64_t>(i) / strides[d] % sizes[d]);
    View view;
    view.data = reinterpret_cast<std::byte*>(column.data());  // NOLINT: read as int64
    view.type = DType::Int64;
    view.sizes = {static_cast<int64_t>(column.size())};
    view.strides = {1};
    views.emplace_back(view);
  }
}

struct Positions {
  Dims sizes;                    // of self[indices]
  std::vector<int64_t> offsets;  // in dense self, in the order of `sizes`
};

Positions positions(const CpuCall& call, const View& self) {
  std::vector<std::optional<View>> views;
  std::vector<std::vector<int64_t>> storage;
  storage.reserve(TB_MAX_RANK);
  for (const auto& index : call.args.tensors(Arg::indices)) expand(index, views, storage);
  check(views.size() <= self.sizes.size(), "{}: too many indices for a tensor of {} dimensions",
        call.args.schema().full_name(), self.ndim());
  views.resize(self.sizes.size());
  Dims common;
  size_t first = views.size(), last = 0, indexed = 0;
  for (size_t d = 0; d < views.size(); ++d) {
    if (!views[d]) continue;
    common = broadcast(common, views[d]->sizes);
    first = std::min(first, d);
    last = d;
    ++indexed;
  }
  const size_t front = indexed > 0 && last - first + 1 == indexed ? first : 0;
  // Strides of each dimension of the result: those not indexed step through self.
  const Dims self_strides = contiguous_strides(self.sizes);
  Positions p;
  Dims steps;
  for (size_t d = 0; d < views.size(); ++d) {
    if (views[d]) continue;
    p.sizes.push_back(self.sizes[d]);
    steps.push_back(self_strides[d]);
  }
  for (size_t k = 0; k < common.size(); ++k) {
    p.sizes.insert(front + k, common[k]);
    steps.insert(front + k, 0);
  }
  std::vector<int64_t> base(static_cast<size_t>(numel(common)), 0);
  for (size_t d = 0; d < views.size(); ++d) {
    if (!views[d]) continue;
    const auto index = read<int64_t>(views[d]->broadcast_to(common));
    for (size_t i = 0; i < base.size(); ++i)
      base[i] += checked_index(call, index[i], self.sizes[d], true) * self_strides[d];
  }
  const Dims common_strides = contiguous_strides(common);
  const int64_t total = numel(p.sizes);
  const Dims strides = contiguous_strides(p.sizes);
  for (int64_t i = 0; i < total; ++i) {
    int64_t offset = 0, at = 0;
    for (size_t d = 0; d < p.sizes.size(); ++d) {
      const int64_t coordinate = i / strides[d] % p.sizes[d];
      if (d >= front && d < front + common.size())
        at += coordinate * common_strides[d - front];
      else
        offset += coordinate * steps[d];
    }
    p.offsets.push_back(offset + base[static_cast<size_t>(at)]);
  }
  return p;
}

void index(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const Positions p = positions(call, self);
  with_compute(self.type, [&]<typename T>(T) {
    const auto values = read<T>(self);
    std::vector<T> result;
    for (int64_t offset : p.offsets) result.push_back(values[static_cast<size_t>(offset)]);
    write(call.out(0), result);
  });
}

void index_put(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const Positions p = positions(call, self);
  with_compute(self.type, [&]<typename T>(T) {
    auto result = read<T>(self);
    const auto values = read<T>(View(call.args.tensor(Arg::values)).broadcast_to(p.sizes));
    for (size_t i = 0; i < p.offsets.size(); ++i)
      combine(result[static_cast<size_t>(p.offsets[i])], values[i],
              call.args.boolean(Arg::accumulate) ? Reduce::Sum : Reduce::Replace);
    write(call.out(0), result);
  });
}

constexpr CpuOperator kOperators[] = {
    {"gather.out", gather},
    {"scatter.src_out", scatter},
    {"scatter.value_out", scatter},
    {"scatter.reduce_out", scatter_reduce},
    {"scatter.value_reduce_out", scatter_reduce},
    {"scatter_add.out", scatter_add},
    {"scatter_reduce.two_out", scatter_reduce_two},
    {"index_select.out", index_select},
    {"index_add.out", index_add},
    {"index.Tensor_out", index},
    {"index_put.out", index_put},
    {"_index_put_impl.out", index_put},
    {"embedding.out", embedding},
    {"embedding_dense_backward.out", embedding_backward},
    {"nonzero.out", nonzero},
    {"nonzero_static.out", nonzero_static},
    {"masked_select.out", masked_select},
};

}  // namespace

std::span<const CpuOperator> index_operators() { return kOperators; }

}  // namespace ocltensor::cpu
