// The recorder.
#include "record.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ocltensor/error.h"

namespace ocltensor::testing {
namespace {

using nlohmann::json;

// Collects raw bytes; JSON refers to them by offset and length.
struct Blob {
  std::string bytes;
  json tensor(const HostTensor& t) {
    json j{{"dtype", std::string(name(t.dtype))},
           {"sizes", std::vector<int64_t>(t.sizes.begin(), t.sizes.end())},
           {"at", bytes.size()},
           {"bytes", t.bytes.size()}};
    bytes.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
    return j;
  }
  json bounds(const std::vector<double>& values) {
    json j{{"at", bytes.size()}, {"bytes", values.size() * sizeof(double)}};
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
    return j;
  }
};

json number(const Scalar& s) {
  if (s.is_complex()) return {{"complex", {s.as_double(), s.imaginary()}}};
  if (s.kind() == Scalar::Kind::Bool) return s.as_bool();
  if (!s.is_float()) return s.as_int();
  // JSON has no infinities.
  if (!std::isfinite(s.as_double())) return {{"float", fmt::format("{}", s.as_double())}};
  return s.as_double();
}

json value(const CaseValue& v, Blob& blob) {
  if (const auto* s = std::get_if<Scalar>(&v)) return number(*s);
  if (const auto* text = std::get_if<std::string>(&v)) return {{"string", *text}};
  if (const auto* type = std::get_if<DType>(&v)) return {{"scalar_type", std::string(name(*type))}};
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&v)) return *ints;
  if (const auto* reals = std::get_if<std::vector<double>>(&v)) return *reals;
  if (const auto* flags = std::get_if<std::vector<bool>>(&v)) return *flags;
  if (const auto* t = std::get_if<TensorPtr>(&v); t && *t) return blob.tensor((*t)->value);
  if (const auto* list = std::get_if<std::vector<TensorPtr>>(&v)) {
    json tensors = json::array();
    for (const auto& t : *list) tensors.push_back(t ? blob.tensor(t->value) : json());
    return {{"tensors", tensors}};
  }
  return nullptr;
}

json described(const Case& c, Blob& blob) {
  json line{{"op", c.op->name},
            {"schema", c.op->text},
            {"dtype", std::string(name(c.dtype))},
            {"seed", c.seed},
            {"random", (c.op->flags & kRandom) != 0},
            {"out_dtype", c.out_dtype.has_value()},
            {"mutates", c.mutates}};
  line["args"] = json::array();
  for (const CaseValue& v : c.args) line["args"].push_back(value(v, blob));
  return line;
}

}  // namespace

Recorder::Recorder(const std::string& path, bool append)
    : file_(std::fopen(path.c_str(), append ? "ab" : "wb")) {
  if (file_ == nullptr)
    fail(TB_E_INVALID, "cannot write the record file '{}': check folder and permissions", path);
}

Recorder::~Recorder() { std::fclose(file_); }

void Recorder::write(const std::string& line, const std::string& bytes) {
  const bool written = std::fwrite(line.data(), 1, line.size(), file_) == line.size() &&
                       std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size() &&
                       std::fflush(file_) == 0;  // whole cases, should the next one end the process
  if (!written) fail(TB_E_INTERNAL, "writing the record file failed: is the disk full?");
}

void Recorder::write(const Case& c, const std::vector<HostTensor>& outs,
                     const std::vector<Expected>& expected) {
  Blob blob;
  json line = described(c, blob);
  line["outs"] = json::array();
  line["bounds"] = json::array();
  for (size_t i = 0; i < outs.size(); ++i) {
    line["outs"].push_back(blob.tensor(outs[i]));
    line["bounds"].push_back(blob.bounds(expected[i].bound));
  }
  line["bytes"] = blob.bytes.size();
  write(line.dump() + "\n", blob.bytes);
}

void Recorder::write(const Case& c, const RecordedGradients& gradients) {
  Blob blob;
  json line = described(c, blob);
  line["result_form"] = gradients.result_form;
  line["leaves"] = json::array();
  line["weights"] = json::array();
  for (const auto& leaf : gradients.leaves)
    line["leaves"].push_back({{"argument", leaf.argument},
                              {"position", leaf.position},
                              {"preparation", leaf.preparation},
                              {"gradient", blob.tensor(leaf.gradient)}});
  for (size_t i = 0; i < gradients.weights.size(); ++i)
    line["weights"].push_back(gradients.weighted[i] ? blob.tensor(gradients.weights[i]) : json());
  line["bytes"] = blob.bytes.size();
  write(line.dump() + "\n", blob.bytes);
}

}  // namespace ocltensor::testing
