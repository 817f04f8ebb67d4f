// Files of named tensors: eight bytes with the size of a JSON header, the header, the data.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "file.h"
#include "ocltensor/serialize.h"
#include "ocltensor/stream.h"

namespace ocltensor {
namespace {

constexpr uint64_t kMostHeader = 100'000'000;  // the format's own limit
constexpr uint64_t kAlignment = 8;             // of the data, as other writers keep it

struct TypeName {
  DType type;
  const char* name;
};
constexpr TypeName kTypeNames[] = {
    {DType::Bool, "BOOL"},          {DType::UInt8, "U8"},      {DType::Int8, "I8"},
    {DType::Int16, "I16"},          {DType::Int32, "I32"},     {DType::Int64, "I64"},
    {DType::Float16, "F16"},        {DType::BFloat16, "BF16"}, {DType::Float32, "F32"},
    {DType::Float64, "F64"},        {DType::Complex64, "C64"}, {DType::UInt16, "U16"},
    {DType::UInt32, "U32"},         {DType::UInt64, "U64"},    {DType::Float8E4M3FN, "F8_E4M3"},
    {DType::Float8E5M2, "F8_E5M2"},
};

struct Entry {
  std::string name;
  DType type = DType::Float32;
  Dims sizes;
  uint64_t begin = 0, end = 0;
};

// One entry of the header, checked against the size of the data.
Entry parse(const std::string& path, const std::string& name, const nlohmann::json& about,
            uint64_t data) {
  Entry entry;
  entry.name = name;
  const auto type = about.at("dtype").get<std::string>();
  const auto* known =
      std::ranges::find_if(kTypeNames, [&](const TypeName& t) { return t.name == type; });
  check(known != std::end(kTypeNames), "'{}': '{}' has the type {}, which ocltensor does not have",
        path, name, type);
  entry.type = known->type;
  for (const nlohmann::json& size : about.at("shape")) entry.sizes.push_back(size.get<int64_t>());
  const auto offsets = about.at("data_offsets").get<std::vector<uint64_t>>();
  check(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= data,
        "'{}': the data of '{}' would lie outside of the file", path, name);
  entry.begin = offsets[0];
  entry.end = offsets[1];
  const uint64_t bytes = detail::bytes_of(path, entry.sizes, entry.type);
  check(entry.end - entry.begin == bytes, "'{}': '{}' of shape {} in {} takes {} bytes, and has {}",
        path, name, to_string(entry.sizes), type, bytes, entry.end - entry.begin);
  return entry;
}

nlohmann::json read_header(const std::string& path, detail::InputFile& file, uint64_t* data_at) {
  uint64_t size = 0;
  check(file.size() >= sizeof size, "'{}' is no safetensors file: it is too short", path);
  file.read(&size, sizeof size);
  check(size <= kMostHeader && size <= file.size() - sizeof size,
        "'{}' is no safetensors file: its header would have {} bytes", path, size);
  std::string text(size, ' ');
  file.read(text.data(), size);
  *data_at = sizeof size + size;
  nlohmann::json header = nlohmann::json::parse(text, nullptr, false);
  check(header.is_object(), "'{}' is no safetensors file: its header is not JSON", path);
  return header;
}

}  // namespace

void save_safetensors(const std::string& path,
                      const std::vector<std::pair<std::string, Tensor>>& tensors) {
  // Wide types first, so that all data is aligned, as the format asks.
  std::vector<const std::pair<std::string, Tensor>*> order;
  std::set<std::string> names;
  for (const auto& entry : tensors) {
    check(entry.first != "__metadata__" && names.insert(entry.first).second,
          "save_safetensors: '{}' cannot be a name, or is one twice", entry.first);
    order.push_back(&entry);
  }
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  uint64_t at = 0;
  for (const auto* entry : order) {
    const Tensor& t = entry->second;
    const auto bytes = static_cast<uint64_t>(t.numel() * size_of(t.dtype()));
    header[entry->first] = {
        {"dtype", std::ranges::find(kTypeNames, t.dtype(), &TypeName::type)->name},
        {"shape", std::vector<int64_t>(t.sizes().begin(), t.sizes().end())},
        {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  detail::OutputFile file(path);
  const uint64_t size = text.size();
  file.write(&size, sizeof size);
  file.write(text.data(), text.size());
  for (const auto* entry : order) {
    const Tensor host = entry->second.cpu().contiguous();
    current_stream(Device()).synchronize();
    if (host.numel() != 0)
      file.write(host.data(), static_cast<size_t>(host.numel() * size_of(host.dtype())));
  }
  file.finish();
}

std::vector<std::pair<std::string, Tensor>> load_safetensors(
    const std::string& path, Device device, const std::vector<std::string>& names) {
  detail::InputFile file(path);
  uint64_t data_at = 0;
  const nlohmann::json header = read_header(path, file, &data_at);
  std::vector<Entry> entries;
  for (const auto& [name, about] : header.items()) {
    if (name == "__metadata__" || (!names.empty() && std::ranges::find(names, name) == names.end()))
      continue;
    try {
      entries.push_back(parse(path, name, about, file.size() - data_at));
    } catch (const nlohmann::json::exception&) {
      fail(TB_E_INVALID, "'{}': the entry of '{}' lacks a dtype, shape or data_offsets", path,
           name);
    }
  }
  for (const std::string& name : names)
    check(header.contains(name), "'{}' has no tensor '{}'", path, name);
  std::ranges::stable_sort(entries, {}, &Entry::begin);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const Entry& entry : entries) {
    const Tensor host = empty(entry.sizes, {entry.type, Device()});
    file.seek(data_at + entry.begin);
    if (entry.end > entry.begin) file.read(host.data(), entry.end - entry.begin);
    tensors.emplace_back(entry.name, host.to(device));
  }
  return tensors;
}

}  // namespace ocltensor
