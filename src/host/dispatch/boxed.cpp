// The boxed call: an operator by name, values checked against its schema, defaults filled in.
#include <fmt/format.h>

#include <charconv>

#include "base/name_patterns.h"
#include "dispatcher.h"
#include "pack.h"

namespace ocltensor {
namespace {

using detail::pack;

double to_number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}
int64_t to_int(std::string_view text) { return static_cast<int64_t>(to_number(text)); }

std::vector<int64_t> parse_ints(std::string_view text) {  // "[1, 2]", "[]"
  std::vector<int64_t> values;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    values.push_back(to_int(item));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return values;
}

Value default_of(const Argument& a) {
  const std::string& text = a.default_value;
  if (text == "None") return {};
  if (text == "True" || text == "False") return text == "True";
  if (text.starts_with('\'')) return text.substr(1, text.size() - 2);
  if (text.starts_with('[')) return parse_ints(text);
  if (a.type == ArgType::Float || text.find_first_of(".e") != std::string::npos)
    return to_number(text);
  return to_int(text);
}

// Packs one value; lists live in `keep`.
class Packer {
 public:
  explicit Packer(size_t count) { values_.reserve(count); }
  void add(const Argument& a, const Value& v) {
    values_.push_back(std::visit([&](const auto& x) { return pack_one(a, x); }, v));
  }
  std::span<const tb_value> values() const { return values_; }

 private:
  tb_value pack_one(const Argument&, std::monostate) { return detail::none(); }
  tb_value pack_one(const Argument& a, int64_t v) {
    if (a.type == ArgType::IntList) return ints(a, std::span(&v, 1));
    if (a.type == ArgType::Float) return pack(static_cast<double>(v));
    return pack(v);
  }
  tb_value pack_one(const Argument& a, const std::vector<int64_t>& v) {
    if (a.type != ArgType::BoolList) return ints(a, v);
    auto& bytes = bytes_.emplace_back(std::make_unique<std::vector<uint8_t>>());
    for (const int64_t b : v) bytes->push_back(b != 0);
    return detail::tagged(TB_BOOL_LIST, bytes->data(), bytes->size());
  }
  tb_value pack_one(const Argument&, const std::vector<double>& v) {
    return detail::tagged(TB_FLOAT_LIST, v.data(), v.size());
  }
  tb_value pack_one(const Argument&, const std::vector<Tensor>& v) {
    return tensors_.emplace_back(std::make_unique<detail::Tensors>(v))->value();
  }
  tb_value pack_one(const Argument&, const std::string& v) { return pack(std::string_view(v)); }
  template <typename T>
  tb_value pack_one(const Argument&, const T& v) {
    return pack(v);
  }
  tb_value ints(const Argument& a, std::span<const int64_t> v) {
    const size_t length =
        v.size() == 1 && a.fixed_length > 1 ? static_cast<size_t>(a.fixed_length) : v.size();
    auto& list = ints_.emplace_back(std::make_unique<std::vector<int64_t>>(length));
    for (size_t i = 0; i < length; ++i) (*list)[i] = v[v.size() == 1 ? 0 : i];
    return detail::tagged(TB_INT_LIST, list->data(), list->size());
  }
  std::vector<tb_value> values_;
  std::vector<std::unique_ptr<std::vector<int64_t>>> ints_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> bytes_;
  std::vector<std::unique_ptr<detail::Tensors>> tensors_;
};

}  // namespace

const Operator& detail::required_operator(const char* name) {
  const Operator* op = find_operator(name);
  if (op == nullptr) fail(TB_E_INTERNAL, "the operator table has no {}", name);
  return *op;
}

namespace {

[[noreturn]] void refuse_name(std::string_view name) {
  std::vector<std::string> known;
  for (const Operator& op : operators()) known.emplace_back(op.name);
  const std::string near = did_you_mean(name, known);
  fail(TB_E_INVALID, "there is no operator '{}'{}", name,
       near.empty() ? "; operator_schemas() lists them" : near);
}

}  // namespace

std::vector<Tensor> call(std::string_view name, std::span<const Value> args,
                         std::span<const NamedValue> named, std::span<const Tensor> outs,
                         const CallOptions& options) {
  const Operator* op = find_operator(name);
  if (op == nullptr) refuse_name(name);
  const Schema& schema = op->schema;
  check(args.size() <= schema.inputs.size(), "{} takes {} arguments, got {}", name,
        schema.inputs.size(), args.size());
  for (const NamedValue& n : named) {
    const int at = schema.input(n.first);
    check(at >= 0, "{} has no argument '{}': {}", name, n.first, op->text);
    check(static_cast<size_t>(at) >= args.size(), "{}: argument '{}' is given twice", name,
          n.first);
  }
  std::vector<Value> defaults(schema.inputs.size());
  Packer packer(schema.inputs.size());
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    const Argument& a = schema.inputs[i];
    const auto by_name = std::ranges::find(named, a.name, &NamedValue::first);
    if (i < args.size()) {
      packer.add(a, args[i]);
    } else if (by_name != named.end()) {
      packer.add(a, by_name->second);
    } else {
      check(!a.default_value.empty() || a.optional, "{}: argument '{}' is missing: {}", name,
            a.name, op->text);
      if (!a.default_value.empty()) defaults[i] = default_of(a);
      packer.add(a, defaults[i]);
    }
  }
  std::vector<Tensor> results(schema.outputs.size());
  check(outs.empty() || outs.size() == results.size(), "{} has {} outputs, got {}", name,
        results.size(), outs.size());
  std::ranges::copy(outs, results.begin());
  call(*op, packer.values(), results, options);
  return results;
}

std::vector<std::string> operator_schemas() {
  std::vector<std::string> texts;
  for (const Operator& op : operators()) texts.emplace_back(op.text);
  return texts;
}

}  // namespace ocltensor
