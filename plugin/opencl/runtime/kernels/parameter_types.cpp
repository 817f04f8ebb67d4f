// Types of kernel parameters by name.
#include "parameter_types.h"

#include <cmath>
#include <cstring>

namespace ocltensor::opencl {
namespace {

constexpr NumberType kNumberTypes[] = {
    {"char", 1, false, -128, 127},
    {"uchar", 1, false, 0, 255},
    {"short", 2, false, -32768, 32767},
    {"ushort", 2, false, 0, 65535},
    {"int", 4, false, -2147483648.0, 2147483647},
    {"uint", 4, false, 0, 4294967295.0},
    {"long", 8, false, -0x1p63, 0x1p63},
    {"ulong", 8, false, -0x1p63, 0x1p63},  // the bits of a negative number are kept
    {"half", 2, true, 0, 0},
    {"float", 4, true, 0, 0},
    {"double", 8, true, 0, 0},
};

// "const float4 *" is "float4", "unsigned char" is "uchar".
std::string plain(std::string type) {
  while (!type.empty() && (type.back() == '*' || type.back() == ' ')) type.pop_back();
  for (const char* word : {"const ", "volatile ", "__global ", "__constant "})
    while (type.starts_with(word)) type.erase(0, std::strlen(word));
  if (type.starts_with("unsigned ")) type = "u" + type.substr(9);
  return type;
}

// Cuts a vector's number of elements off; 1 if the name is no vector's.
size_t cut_lanes(std::string& type) {
  for (const size_t lanes : {16, 8, 4, 3, 2})
    if (const std::string text = std::to_string(lanes); type.ends_with(text)) {
      type.resize(type.size() - text.size());
      return lanes;
    }
  return 1;
}

}  // namespace

const NumberType* number_type(std::string_view name) {
  for (const NumberType& t : kNumberTypes)
    if (name == t.name) return &t;
  return nullptr;
}

bool write_number(const NumberType& type, double real, int64_t integer, bool is_real,
                  unsigned char* out) {
  if (type.floating) {
    const double v = is_real ? real : static_cast<double>(integer);
    const auto f = static_cast<float>(v);
    const uint16_t h = float_to_half(f);
    std::memcpy(out,
                type.bytes == 8   ? static_cast<const void*>(&v)
                : type.bytes == 4 ? static_cast<const void*>(&f)
                                  : static_cast<const void*>(&h),
                type.bytes);
    return true;
  }
  if (is_real) {
    if (real != std::trunc(real) || std::abs(real) >= 0x1p63) return false;
    integer = static_cast<int64_t>(real);
  }
  const auto v = static_cast<double>(integer);
  if (v < type.low || v > type.high) return false;
  std::memcpy(out, &integer, type.bytes);  // little-endian, as every OpenCL device here
  return true;
}

ParameterType::ParameterType(std::string name) : name_(std::move(name)) {
  std::string element = plain(name_);
  lanes_ = cut_lanes(element);
  element_ = number_type(element);
}

size_t ParameterType::value_bytes() const {
  return element_ == nullptr ? 0 : element_->bytes * (lanes_ == 3 ? 4 : lanes_);
}

const char* pointee(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8: return "uchar";
    case DType::Int8: return "char";
    case DType::Int16: return "short";
    case DType::Int32: return "int";
    case DType::Int64: return "long";
    case DType::Float16: return "half";
    case DType::BFloat16: return "ushort";
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Complex64: return "float2";
    case DType::Complex128: return "double2";
    case DType::Complex32: return "half2";
    case DType::UInt16: return "ushort";
    case DType::UInt32: return "uint";
    case DType::UInt64: return "ulong";
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0FNU: return "uchar";
  }
  return "void";
}

bool ParameterType::takes(DType dtype) const {
  if (element_ == nullptr) return true;  // void, a structure, a typedef
  const std::string_view element = element_->name;
  if (is_complex(dtype))  // float4 is two of them
    return lanes_ > 1 && element == pointee(real_type(dtype));
  if (element == pointee(dtype)) return true;
  if (element_->bytes != static_cast<size_t>(size_of(dtype))) return false;
  return dtype == DType::Bool ||
         (element.front() == 'u' && (!is_floating(dtype) || element_->bytes == 2));
}

}  // namespace ocltensor::opencl
