// Checks of the function tables and the device part.
#include <algorithm>
#include <cstring>

#include "../checks.h"

namespace ocltensor::conformance {
namespace {

// Every table begins with its size, which says where it ends; every function pointer before that is
// set.
template <typename Table>
void table(Checker& c, const Table* t, const char* name, uint32_t least) {
  c.expect(t != nullptr, "table '{}' is NULL", name);
  if (t == nullptr) return;
  c.expect(t->struct_size >= least, "table '{}' has size {}, at least {} are needed", name,
           t->struct_size, least);
  const auto* entries = reinterpret_cast<void* const*>(t);  // one header word, then pointers
  const size_t end = std::min<size_t>(t->struct_size, sizeof(Table)) / sizeof(void*);
  for (size_t i = 1; i < end; ++i)
    c.expect(entries[i] != nullptr, "table '{}': function {} is NULL", name, i - 1);
}

void tables(Checker& c) {
  const tb_api& api = c.api();
  c.expect(api.struct_size >= TB_API_SIZE_V1, "tb_api has size {}", api.struct_size);
  c.expect(api.abi_major == TB_ABI_MAJOR, "tb_api has major {}", api.abi_major);
  table(c, api.device, "device", TB_DEVICE_API_SIZE_V1);
  table(c, api.stream, "stream", TB_STREAM_API_SIZE_V1);
  table(c, api.event, "event", TB_EVENT_API_SIZE_V1);
  table(c, api.memory, "memory", TB_MEMORY_API_SIZE_V1);
  table(c, api.transfer, "transfer", TB_TRANSFER_API_SIZE_V1);
  table(c, api.operators, "operators", TB_OPERATOR_API_SIZE_V1);
  table(c, api.generator, "generator", TB_GENERATOR_API_SIZE_V1);
  table(c, api.kernel, "kernel", TB_KERNEL_API_SIZE_V1);
  table(c, api.profiler, "profiler", TB_PROFILER_API_SIZE_V1);
  table(c, api.capture, "capture", TB_CAPTURE_API_SIZE_V1);
  table(c, api.switches, "switches", TB_SWITCH_API_SIZE_V1);
  table(c, api.interop, "interop", TB_INTEROP_API_SIZE_V1);
  if (api.struct_size > offsetof(tb_api, graph)) table(c, api.graph, "graph", TB_GRAPH_API_SIZE_V1);
}

void properties(Checker& c) {
  const auto& d = *c.api().device;
  int32_t count = -1;
  c.expect_status(TB_OK, "device.count", d.count, &count);
  c.expect(count > c.device(), "device.count is {}", count);
  tb_device_properties p{};
  p.struct_size = sizeof p;
  c.expect_status(TB_OK, "device.properties", d.properties, c.device(), &p);
  c.expect(p.name[0] != 0 && memchr(p.name, 0, sizeof p.name) != nullptr, "device has no name");
  c.expect(p.kind >= TB_DEVICE_CPU && p.kind <= TB_DEVICE_ACCELERATOR, "device kind is {}", p.kind);
  c.expect(p.global_memory > 0 && p.largest_allocation > 0 && p.recommended_memory > 0,
           "device has no memory");
  c.expect(p.compute_units > 0 && p.max_work_group_size > 0, "device has no compute units");
  c.expect(p.index == c.device(), "device {} says that its index is {}", c.device(), p.index);

  c.cite(rule::kSizes);
  p.struct_size = TB_DEVICE_PROPERTIES_SIZE_V1 - 4;
  c.expect_status(TB_E_INVALID, "device.properties into a structure that is too small",
                  d.properties, c.device(), &p);
  c.cite(rule::kDevice);
  for (const int32_t bad : {-1, count, 1 << 20}) {
    p.struct_size = sizeof p;
    ErrorBuffer error;
    const tb_status status = d.properties(bad, &p, error.get());
    c.expect(status == TB_E_INVALID || status == TB_E_UNAVAILABLE,
             "device.properties of device {}: status {}", bad, status);
    c.expect(d.synchronize(bad, nullptr) < 0, "device.synchronize of device {} succeeds", bad);
  }
  c.expect_status(TB_OK, "device.synchronize", d.synchronize, c.device());
}

// A structure of a later version of the ABI: bytes beyond the known ones stay as they are.
void larger_structures(Checker& c) {
  struct {
    tb_device_properties known;
    unsigned char later[64];
  } p{};
  p.known.struct_size = sizeof p;
  memset(p.later, 0x5a, sizeof p.later);
  c.expect_status(TB_OK, "device.properties into a larger structure", c.api().device->properties,
                  c.device(), &p.known);
  for (const unsigned char byte : p.later)
    c.expect(byte == 0x5a, "device.properties wrote beyond the fields that it knows");
}

void report(Checker& c) {
  c.trying("device.report");
  char text[4096] = {};
  const uint64_t whole = c.api().device->report(text, sizeof text);
  c.expect(whole > 0 && (whole >= sizeof text || strlen(text) == whole),
           "device.report says {} bytes, wrote {}", whole, strlen(text));
  char small[8];
  memset(small, 'x', sizeof small);
  c.api().device->report(small, 4);
  c.expect(memchr(small, 0, 4) != nullptr && small[4] == 'x',
           "device.report does not respect its capacity");
  c.expect(c.api().device->report(nullptr, 0) == whole, "device.report(NULL, 0) gives no length");
}

// Error texts are cut to the caller's buffer, and end in NUL.
void error_buffers(Checker& c) {
  char small[6];
  memset(small, 'x', sizeof small);
  tb_error e{sizeof(tb_error), TB_OK, 0, 0, 4, small};
  const tb_status status = c.api().device->synchronize(-1, &e);
  c.expect(status < 0 && e.code == status, "tb_error.code is {} after status {}", e.code, status);
  c.expect(memchr(small, 0, 4) != nullptr && small[4] == 'x',
           "an error text does not respect the capacity of tb_error");
  e.message = nullptr;
  e.capacity = 100;
  c.expect(c.api().device->synchronize(-1, &e) < 0, "tb_error without a message buffer");
}

constexpr AbiCheck kList[] = {{"tables", tables, rule::kTables},
                              {"device properties", properties, rule::kProperties},
                              {"larger structures", larger_structures, rule::kSizes},
                              {"device report", report, rule::kDevice},
                              {"error buffers", error_buffers, rule::kError}};

}  // namespace

const std::span<const AbiCheck> kTableChecks = kList;

}  // namespace ocltensor::conformance
