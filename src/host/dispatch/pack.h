// Packs C++ argument types into tb_value, for the generated operators (ops.cpp) and the boxed call.
// A packed value points to its source, which must outlive it.
#pragma once

#include <string>

#include "ocltensor/call.h"

namespace ocltensor::detail {

inline tb_value tagged(uint32_t tag, const void* p, size_t count = 0) {
  tb_value v{};
  v.tag = tag;
  v.count = static_cast<uint32_t>(count);
  v.as.p = p;
  return v;
}
inline tb_value none() { return tb_value{}; }

inline tb_value pack(const Tensor& t) { return t.defined() ? tagged(TB_TENSOR, &t.abi()) : none(); }
inline tb_value pack(const OptionalTensor& t) {
  return t.tensor() == nullptr ? none() : pack(*t.tensor());
}
inline tb_value pack(const TensorOrScalar& t) {
  if (t.tensor() != nullptr) return pack(*t.tensor());
  return t.is_none() ? none() : t.number().to_value();
}
inline tb_value pack(const Scalar& s) { return s.to_value(); }
inline tb_value pack(bool v) { return Scalar(v).to_value(); }
inline tb_value pack(int64_t v) { return Scalar(v).to_value(); }
template <typename E>
requires std::is_enum_v<E> tb_value pack(E v) { return pack(static_cast<int64_t>(v)); }
inline tb_value pack(double v) { return Scalar(v).to_value(); }
inline tb_value pack(std::string_view s) { return tagged(TB_STRING, s.data(), s.size()); }
inline tb_value pack(DType type) {
  tb_value v{};
  v.tag = TB_DTYPE;
  v.as.dtype = to_abi(type);
  return v;
}
// A generator's handle is valid in its own backend alone, so the dispatcher checks the device,
// which this number in the otherwise unused `count` names.
inline uint32_t device_mark(Device d) {
  return (uint32_t{d.backend()} << 16 | static_cast<uint16_t>(d.index())) + 1;
}
inline tb_value pack(const Generator& g) {
  return tagged(TB_GENERATOR, g.handle(), device_mark(g.device()));
}
inline tb_value pack(const BoolList& l) {  // a bool is a byte that holds 0 or 1
  return tagged(TB_BOOL_LIST, l.span().data(), l.span().size());
}
template <typename T>
tb_value pack(const std::optional<T>& v) {
  return v ? pack(*v) : none();
}

// An int list; one number stands for `length` equal ones where the schema fixes a length.
class Ints {
 public:
  Ints(const IntList& list, size_t length) : none_(list.is_none()), span_(list.span()) {
    if (span_.size() != 1 || length < 2) return;
    repeated_ = Dims(length, span_[0]);
    span_ = repeated_;
  }
  Ints(const Ints&) = delete;
  tb_value value() const {
    return none_ ? none() : tagged(TB_INT_LIST, span_.data(), span_.size());
  }

 private:
  bool none_;
  Dims repeated_;
  std::span<const int64_t> span_;
};

class Tensors {
 public:
  explicit Tensors(const TensorList& list) {
    for (const Tensor& t : list.span()) pointers_.push_back(t.defined() ? &t.abi() : nullptr);
  }
  Tensors(const Tensors&) = delete;
  tb_value value() const { return tagged(TB_TENSOR_LIST, pointers_.data(), pointers_.size()); }

 private:
  std::vector<const tb_tensor*> pointers_;
};

// The table's row of that name; a missing one is a defect of the build.
const Operator& required_operator(const char* name);

}  // namespace ocltensor::detail
