// Checks of the operator table itself, and of calls that break its contract.
#include "base/operators.h"

#include <cstring>
#include <set>

#include "../checks.h"
#include "support/execute.h"
#include "support/image.h"

namespace ocltensor::conformance {
namespace {

using namespace testing;

void enumeration(Checker& c) {
  const auto& o = *c.api().operators;
  uint32_t count = 0;
  c.expect_status(TB_OK, "operators.count", o.count, &count);
  if (count == 0 && c.minimal()) c.decline("no operators: memory and copies alone are tested");
  c.expect(count > 0 || c.minimal(), "no operators");
  std::set<std::string> names;
  for (uint32_t i = 0; i < count; ++i) {
    tb_op op = nullptr, found = nullptr;
    tb_op_info info{};
    info.struct_size = sizeof info;
    c.expect_status(TB_OK, "operators.at", o.at, i, &op, &info);
    if (op == nullptr || info.name == nullptr) continue;
    c.expect(names.insert(info.name).second, "operator {} is listed twice", info.name);
    c.expect_status(TB_OK, "operators.find", o.find, info.name, &found);
    c.expect(found == op, "operators.find({}) gives another operator than operators.at", info.name);
    c.trying(fmt::format("what comes after operators.find of {}", info.name));
    const Operator* known = find_operator(info.name);
    c.expect(known != nullptr, "operator {} is not in the operator table", info.name);
    if (known == nullptr) continue;
    c.expect(info.schema != nullptr && std::string(info.schema) == known->text,
             "{}: schema differs from the table's", info.name);
    c.expect(info.family != nullptr && std::string(info.family) == known->family,
             "{}: family differs from the table's", info.name);
    c.expect(info.flags == known->flags, "{}: flags differ from the table's", info.name);
  }
  tb_op op = nullptr;
  tb_op_info info{};
  info.struct_size = sizeof info;
  c.expect_status(TB_E_INVALID, "operators.at beyond the end", o.at, count, &op, &info);
}

void unknown(Checker& c) {
  for (const char* name : {"no_such_operator.out", "add", "", "add.out "}) {
    tb_op op = nullptr;
    ErrorBuffer error;
    c.trying(fmt::format("operators.find('{}')", name));
    const tb_status status = c.api().operators->find(name, &op, error.get());
    c.expect(status == TB_UNSUPPORTED && error.reason() == TB_REASON_OPERATOR,
             "operators.find('{}'): status {}, reason {}", name, status, error.reason());
    c.expect(error.text()[0] != 0, "operators.find('{}'): declined without a text", name);
  }
}

// An addition of two float32 vectors, made by hand so that it can be spoilt.
struct Addition {
  Checker& c;
  DeviceMemory memory;
  int64_t sizes[1] = {64}, strides[1] = {1};
  tb_tensor a{}, b{}, out{};
  tb_value args[3] = {};
  const tb_tensor* outs[1] = {&out};
  tb_call call{};

  explicit Addition(Checker& checker) : c(checker), memory(checker.backend(), 3 * 1024) {
    std::vector<float> data(768, 1.0f);
    memory.upload(data.data());
    int k = 0;
    for (tb_tensor* t : {&a, &b, &out}) {
      t->struct_size = sizeof(tb_tensor);
      t->dtype = {TB_DTYPE_FLOAT, 32, 1};
      t->ndim = 1;
      t->sizes = sizes;
      t->strides = strides;
      t->base = memory.address();
      t->base_bytes = memory.bytes();
      t->address = memory.address() + static_cast<uint64_t>(k++) * 1024;
    }
    args[0].tag = args[1].tag = TB_TENSOR;
    args[0].as.p = &a;
    args[1].as.p = &b;
    args[2].tag = TB_INT;
    args[2].as.i = 1;
    call.struct_size = sizeof call;
    call.op = c.backend().find("add.out");
    call.stream = c.stream();
    call.args = args;
    call.arg_count = 3;
    call.outs = outs;
    call.out_count = 1;
  }

  tb_status invoke() {
    const tb_status status = c.api().operators->invoke(&call, nullptr);
    c.expect(c.api().stream->synchronize(c.stream(), nullptr) == TB_OK,
             "a refused call poisons the stream");
    return status;
  }
};

// Each case spoils one thing; the answer must be an error or "declined", and never TB_OK.
void bad_calls(Checker& c) {
  if (c.backend().find("add.out") == nullptr) return c.decline("no add.out: bad calls not tested");
  struct Spoil {
    const char* what;
    void (*change)(Addition&);
    const char* cites = rule::kCall;
  };
  static const Spoil kSpoils[] = {
      {"too few arguments", [](Addition& x) { x.call.arg_count = 2; }},
      {"too many outputs", [](Addition& x) { x.call.out_count = 2; }},
      {"no outputs", [](Addition& x) { x.call.out_count = 0; }},
      {"no operator", [](Addition& x) { x.call.op = nullptr; }},
      {"no stream", [](Addition& x) { x.call.stream = nullptr; }},
      {"a call structure below its first size",
       [](Addition& x) { x.call.struct_size = TB_CALL_SIZE_V1 - 8; }, rule::kSizes},
      {"a tensor structure below its first size", [](Addition& x) { x.a.struct_size = 8; },
       rule::kSizes},
      {"an unknown tag", [](Addition& x) { x.args[1].tag = 99; }},
      {"a string for a tensor",
       [](Addition& x) {
         x.args[1].tag = TB_STRING;
         x.args[1].count = 1;
         x.args[1].as.p = "x";
       }},
      {"none for a tensor", [](Addition& x) { x.args[0].tag = TB_NONE; }},
      {"a tensor for a number",
       [](Addition& x) {
         x.args[2].tag = TB_TENSOR;
         x.args[2].as.p = &x.a;
       }},
      {"an unknown dtype",
       [](Addition& x) {
         x.a.dtype = {TB_DTYPE_FLOAT, 8, 1};
       }},
      {"a vector dtype", [](Addition& x) { x.a.dtype.lanes = 4; }},
      {"float32 into an int32 output",
       [](Addition& x) {
         x.out.dtype = {TB_DTYPE_INT, 32, 1};
       }},
      {"an address of nothing",
       [](Addition& x) {
         x.a.address = 0x10;
         x.a.base = 0;
       },
       rule::kBounds},
      {"a tensor without memory",
       [](Addition& x) {
         x.a.address = x.a.base = 0;
         x.a.base_bytes = 0;
       },
       rule::kBounds},
      {"an output without memory",
       [](Addition& x) {
         x.out.address = x.out.base = 0;
         x.out.base_bytes = 0;
       },
       rule::kBounds},
      {"a tensor beyond the end of its storage",
       [](Addition& x) { x.a.address = x.memory.address() + x.memory.bytes() - 16; },
       rule::kBounds},
      {"an output beyond the end of its storage",
       [](Addition& x) { x.out.address = x.memory.address() + x.memory.bytes() - 16; },
       rule::kBounds},
  };
  for (const Spoil& spoil : kSpoils) {
    if (spoil.cites == rule::kBounds && c.addresses_are_pointers()) continue;
    c.cite(spoil.cites);
    c.trying(fmt::format("add.out with {}", spoil.what));
    Addition x(c);
    spoil.change(x);
    const tb_status status = x.invoke();
    c.expect(status != TB_OK, "add.out with {}: accepted", spoil.what);
    c.expect(spoil.cites != rule::kBounds || status == TB_E_INVALID,
             "add.out with {}: status {} instead of {}", spoil.what, status, TB_E_INVALID);
  }
  c.cite(rule::kCall);
  c.trying("add.out of shapes 64 and 63");
  static const int64_t kBad[] = {63};
  Addition x(c);
  x.b.sizes = kBad;
  c.expect(x.invoke() < 0, "add.out of shapes 64 and 63: no error");
  c.trying("add.out into an output of the wrong shape");
  Addition y(c);
  y.out.sizes = kBad;
  c.expect(y.invoke() != TB_OK, "add.out into an output of the wrong shape: accepted");
  c.trying("add.out as it should be called");
  Addition good(c);
  c.expect(good.invoke() == TB_OK, "add.out refuses the call that the spoilt ones came from");
}

// A call structure of a later version has more fields: they are ignored.
void larger_call(Checker& c) {
  if (c.backend().find("add.out") == nullptr) return c.decline("no add.out: not tested");
  Addition x(c);
  struct {
    tb_call known;
    void* later[4];
  } larger{x.call, {}};
  larger.known.struct_size = sizeof larger;
  c.expect_status(TB_OK, "invoke with a larger tb_call", c.api().operators->invoke,
                  static_cast<const tb_call*>(&larger.known));
  c.expect_status(TB_OK, "stream.synchronize", c.api().stream->synchronize, c.stream());
}

constexpr AbiCheck kList[] = {{"operator list", enumeration, rule::kOperators},
                              {"unknown operators", unknown, rule::kNames},
                              {"bad calls", bad_calls, rule::kCall},
                              {"larger call", larger_call, rule::kSizes}};

}  // namespace

const std::span<const AbiCheck> kOperatorChecks = kList;

}  // namespace ocltensor::conformance
