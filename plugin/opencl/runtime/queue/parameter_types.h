// What a custom kernel's parameter takes, judged by the name that the driver gives its type:
// numbers, bytes, tensors. An empty name (a driver that does not tell) and a name that OpenCL C
// does not define (a structure, a typedef) are not checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ocltensor/dtype.h"

namespace ocltensor::opencl {

// A scalar type of OpenCL C.
struct NumberType {
  const char* name;
  size_t bytes;
  bool floating;
  double low, high;
};

// Of "float", "float*" and "const float*"; nullptr if it is no scalar type.
const NumberType* number_type(std::string type);
// Writes a number as `type`; false if the type cannot represent it.
bool write_number(const NumberType& type, double real, int64_t integer, bool is_real,
                  unsigned char* out);
// Bytes of a scalar or vector type; 0 if the name is neither.
size_t value_bytes(const std::string& type);
// Whether a byte offset can be passed to a parameter of this type.
bool is_byte_offset(const std::string& type);

// Whether a pointer of this type takes tensors of `dtype`: to the type itself, to the unsigned type
// of its size (ushort for the 16-bit types), to a vector of it, or to void.
bool pointer_takes(const std::string& pointer, DType dtype);
// The type to which a kernel's pointer to such elements points: "float".
const char* pointee(DType dtype);

}  // namespace ocltensor::opencl
