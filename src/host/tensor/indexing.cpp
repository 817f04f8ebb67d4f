// Indexing with brackets: views first, then what tensors name.
#include "ocltensor/indexing.h"

#include <cstring>

#include "ocltensor/ops.h"

namespace ocltensor {

Index::Index(const char* text) : kind_(Kind::Rest) {
  check(std::strcmp(text, "...") == 0, "an index is \"...\" or slice(first, end, step), not \"{}\"",
        text);
}

namespace {

// How many dimensions an entry names.
int64_t covers(const Index& index) {
  switch (index.kind()) {
    case Index::Kind::Rest:
    case Index::Kind::NewDimension: return 0;
    case Index::Kind::Elements:
      return index.elements().dtype() == DType::Bool ? index.elements().dim() : 1;
    default: return 1;
  }
}

void check_mask(const Tensor& mask, const Tensor& view, int64_t first) {
  for (int64_t d = 0; d < mask.dim(); ++d)
    check(mask.size(d) == view.size(first + d),
          "a mask of shape {} does not fit dimension {} of a tensor of shape {}",
          to_string(mask.sizes()), first + d, to_string(view.sizes()));
  check(mask.dim() > 0, "a mask without dimensions cannot be an index");
}

// One tensor of positions for each dimension of the mask.
void append_positions(const Tensor& mask, std::vector<Tensor>& indices) {
  const Tensor positions = nonzero(mask);
  for (int64_t d = 0; d < mask.dim(); ++d) indices.push_back(positions.select(1, d));
}

}  // namespace

Indexed::Indexed(Tensor base, std::vector<Tensor> indices)
    : Tensor(ocltensor::index(base, indices)),
      base_(std::move(base)),
      indices_(std::move(indices)) {}

Indexed& Indexed::operator=(const Tensor& value) && {
  if (base_.defined())
    ocltensor::index_put_(base_, indices_,
                          value.dtype() == base_.dtype() ? value : value.to(base_.dtype()));
  else
    copy_(value);
  return *this;
}

Indexed& Indexed::operator=(const Scalar& value) && {
  if (base_.defined())
    ocltensor::index_put_(base_, indices_, full({}, value, {base_.dtype(), base_.device()}));
  else
    fill_(value);
  return *this;
}

Selected::Selected(Tensor base, Tensor index) : base_(std::move(base)), index_(std::move(index)) {
  const bool masks = index_.dtype() == DType::Bool;
  const int64_t named = masks ? index_.dim() : 1;
  check(named <= base_.dim(), "{} indices for a tensor of {} dimensions, of shape {}", named,
        base_.dim(), to_string(base_.sizes()));
  if (masks) check_mask(index_, base_, 0);
}

std::vector<Tensor> Selected::positions() const {
  if (index_.dtype() != DType::Bool) return {index_};
  std::vector<Tensor> indices;
  append_positions(index_, indices);
  return indices;
}

const Tensor& Selected::read() {
  if (!read_.defined()) read_ = ocltensor::index(base_, positions());
  return read_;
}

Selected& Selected::operator=(const Tensor& value) && {
  ocltensor::index_put_(base_, positions(),
                        value.dtype() == base_.dtype() ? value : value.to(base_.dtype()));
  return *this;
}

Selected& Selected::operator=(const Scalar& value) && {
  if (index_.dtype() != DType::Bool)
    return std::move(*this) = full({}, value, {base_.dtype(), base_.device()});
  Tensor mask = index_;  // over the first dimensions
  while (mask.dim() < base_.dim()) mask = mask.unsqueeze(-1);
  check_fits(value, base_.dtype());
  const bool cut_off = is_integral(base_.dtype(), true) && value.is_float();  // as fill_ does
  ocltensor::masked_fill_(base_, mask,
                          !cut_off                       ? value
                          : base_.dtype() == DType::Bool ? Scalar(value.as_bool())
                                                         : Scalar(value.as_int()));
  return *this;
}

Selected Tensor::operator[](const Tensor& index) const { return {*this, index}; }

Indexed Tensor::operator[](std::initializer_list<Index> entries) const {
  int64_t named = 0;
  int rests = 0;
  for (const Index& entry : entries) {
    named += covers(entry);
    rests += entry.kind() == Index::Kind::Rest ? 1 : 0;
  }
  check(rests <= 1, "\"...\" may be given once between brackets");
  check(named <= dim(), "{} indices for a tensor of {} dimensions, of shape {}", named, dim(),
        to_string(sizes()));
  Tensor view = *this;
  std::vector<Tensor> indices;
  bool any = false;
  int64_t at = 0;  // the dimension of `view` that the next entry is for
  const auto skip = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i, ++at) indices.emplace_back();
  };
  for (const Index& entry : entries) {
    switch (entry.kind()) {
      case Index::Kind::Position: view = view.select(at, *entry.range().start); break;
      case Index::Kind::Range:
        view = view.slice(at, entry.range().start, entry.range().stop, entry.range().step);
        skip(1);
        break;
      case Index::Kind::Rest: skip(dim() - named); break;
      case Index::Kind::NewDimension:
        view = view.unsqueeze(at);
        skip(1);
        break;
      case Index::Kind::Elements: {
        any = true;
        const int64_t count = covers(entry);
        if (entry.elements().dtype() == DType::Bool) {
          check_mask(entry.elements(), view, at);
          append_positions(entry.elements(), indices);
        } else {
          indices.push_back(entry.elements());
        }
        at += count;
        break;
      }
    }
  }
  return any ? Indexed(view, std::move(indices)) : Indexed(view);
}

}  // namespace ocltensor
