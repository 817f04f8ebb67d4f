// What a custom kernel's parameter takes, judged by the name that the driver gives its type:
// numbers, bytes, tensors. An empty name (a driver that does not tell) and a name that OpenCL C
// does not define (a structure, a typedef) are not checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ocltensor/dtype.h"

namespace ocltensor::opencl {

// A scalar type of OpenCL C.
struct NumberType {
  const char* name;
  size_t bytes;
  bool floating;
  double low, high;
};

const NumberType* number_type(std::string_view name);  // nullptr if it is no scalar type
// Writes a number as `type`; false if the type cannot represent it.
bool write_number(const NumberType& type, double real, int64_t integer, bool is_real,
                  unsigned char* out);

// A parameter's type, or what a pointer points to, read from its name once: launches ask for it.
class ParameterType {
 public:
  explicit ParameterType(std::string name);
  const std::string& name() const { return name_; }  // "const float4*"
  bool is_known() const { return !name_.empty(); }
  bool is_pointer() const { return name_.ends_with('*'); }
  // The scalar type; nullptr for a vector and for what OpenCL C does not define.
  const NumberType* number() const { return lanes_ == 1 ? element_ : nullptr; }
  // Bytes of a scalar or vector type; 0 if it is neither.
  size_t value_bytes() const;
  bool is_byte_offset() const {
    return !is_pointer() && number() != nullptr && element_->bytes == 8 && !element_->floating;
  }
  // Whether a pointer takes tensors of `dtype`: to the type itself, to the unsigned type of its
  // size (ushort for the 16-bit types), to a vector of it, or to void.
  bool takes(DType dtype) const;

 private:
  std::string name_;
  const NumberType* element_;  // of a scalar or of a vector's elements, else nullptr
  size_t lanes_ = 1;
};

// The type to which a kernel's pointer to such elements points: "float".
const char* pointee(DType dtype);

}  // namespace ocltensor::opencl
