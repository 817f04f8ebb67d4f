// NumPy's .npy: a magic word, a version, the size of a header, a Python dictionary as the header,
// the data (numpy.lib.format).
#include <algorithm>
#include <charconv>

#include "file.h"
#include "ocltensor/serialize.h"
#include "ocltensor/stream.h"

namespace ocltensor {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
constexpr size_t kAlignment = 64;  // of the data

struct TypeName {
  DType type;
  std::string_view name;
};
constexpr TypeName kTypeNames[] = {
    {DType::Bool, "|b1"},      {DType::UInt8, "|u1"},       {DType::Int8, "|i1"},
    {DType::Int16, "<i2"},     {DType::Int32, "<i4"},       {DType::Int64, "<i8"},
    {DType::Float16, "<f2"},   {DType::Float32, "<f4"},     {DType::Float64, "<f8"},
    {DType::Complex64, "<c8"}, {DType::Complex128, "<c16"}, {DType::UInt16, "<u2"},
    {DType::UInt32, "<u4"},    {DType::UInt64, "<u8"},
};

// What follows "'key':" in the header's dictionary, up to a comma or the end of a tuple.
std::string_view value_of(const std::string& path, std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  check(at != std::string_view::npos, "'{}' is no .npy file: its header has no {}", path, key);
  std::string_view rest = header.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of("': "), rest.size()));
  const bool tuple = rest.starts_with('(');
  return rest.substr(0, rest.find_first_of(tuple ? ")" : ",}'"));
}

Dims shape_of(const std::string& path, std::string_view text) {
  Dims sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at < '0' || *at > '9') {
      check(std::string_view("( ,").find(*at) != std::string_view::npos,
            "'{}' is no .npy file: '{}' is no shape", path, text);
      ++at;
      continue;
    }
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    check(error == std::errc(), "'{}': the shape '{}' is too large", path, text);
    sizes.push_back(size);
    at = next;
  }
  return sizes;
}

}  // namespace

void save_npy(const std::string& path, const Tensor& tensor) {
  const auto* known = std::ranges::find(kTypeNames, tensor.dtype(), &TypeName::type);
  check(known != std::end(kTypeNames), "save_npy: NumPy has no {}: convert the tensor first",
        name(tensor.dtype()));
  std::string shape;
  for (const int64_t size : tensor.sizes()) shape += fmt::format("{}, ", size);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", known->name, shape);
  constexpr size_t kBefore = kMagicSize + 4;
  header.resize((kBefore + header.size() + kAlignment) / kAlignment * kAlignment - kBefore - 1,
                ' ');
  header += '\n';
  const uint8_t version[] = {1, 0, static_cast<uint8_t>(header.size() & 255),
                             static_cast<uint8_t>(header.size() >> 8)};
  const Tensor host = tensor.cpu().contiguous();
  current_stream(Device()).synchronize();
  detail::OutputFile file(path);
  file.write(kMagic, kMagicSize);
  file.write(version, sizeof version);
  file.write(header.data(), header.size());
  if (host.numel() != 0)
    file.write(host.data(), static_cast<size_t>(host.numel() * size_of(host.dtype())));
  file.finish();
}

Tensor load_npy(const std::string& path, Device device) {
  detail::InputFile file(path);
  char magic[kMagicSize];
  uint8_t version[2];
  check(file.size() >= kMagicSize + 4, "'{}' is no .npy file: it is too short", path);
  file.read(magic, sizeof magic);
  file.read(version, sizeof version);
  check(std::equal(magic, magic + kMagicSize, kMagic), "'{}' is no .npy file", path);
  check(version[0] >= 1 && version[0] <= 3,
        "'{}' has version {}.{} of the format, which is unknown", path, version[0], version[1]);
  uint32_t length = 0;
  file.read(&length, version[0] == 1 ? 2 : 4);
  const uint64_t data_at = kMagicSize + 2 + (version[0] == 1 ? 2 : 4) + uint64_t{length};
  check(data_at <= file.size(), "'{}' is no .npy file: its header would have {} bytes", path,
        length);
  std::string header(length, ' ');
  file.read(header.data(), length);
  const std::string_view descr = value_of(path, header, "'descr'");
  const auto* known = std::ranges::find(kTypeNames, descr, &TypeName::name);
  check(known != std::end(kTypeNames), "'{}' has the type '{}', which ocltensor does not have",
        path, descr);
  const bool fortran = value_of(path, header, "'fortran_order'") == "True";
  Dims sizes = shape_of(path, value_of(path, header, "'shape'"));
  const uint64_t bytes = detail::bytes_of(path, sizes, known->type);
  check(file.size() - data_at >= bytes,
        "'{}' has {} bytes of data, and a shape of {} in {} needs {}", path, file.size() - data_at,
        to_string(sizes), name(known->type), bytes);
  if (fortran) std::reverse(sizes.begin(), sizes.end());
  Tensor host = empty(sizes, {known->type, Device()});
  if (bytes != 0) file.read(host.data(), bytes);
  if (fortran) {
    Dims back;
    for (int64_t d = host.dim() - 1; d >= 0; --d) back.push_back(d);
    host = host.permute(back);
  }
  return host.to(device);
}

}  // namespace ocltensor
