// Checks of the optional parts: custom kernels, profiler, capture, switches, interop, fork.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "../checks.h"

namespace ocltensor::conformance {
namespace {

void compile_errors(Checker& c) {
  const auto& k = *c.api().kernel;
  tb_library library = nullptr;
  ErrorBuffer error;
  const tb_status status =
      k.compile(c.device(), "__kernel void broken( { this is no C }", "", &library, error.get());
  if (status == TB_UNSUPPORTED) return c.decline("custom kernels: " + std::string(error.text()));
  c.expect(status == TB_E_COMPILE, "compiling nonsense: status {} ({})", status, error.text());
  c.expect(strlen(error.text()) > 10, "a failed build without the compiler's log");
}

void custom_kernel(Checker& c) {
  const auto& k = *c.api().kernel;
  tb_library library = nullptr;
  ErrorBuffer error;
  const char* source =
      "__kernel void add_to(__global float* x, ulong offset, long by) {\n"
      "  __global float* p = (__global float*)((__global char*)x + offset);\n"
      "  p[get_global_id(0)] += by;\n}\n";
  const tb_status status = k.compile(c.device(), source, "", &library, error.get());
  if (status == TB_UNSUPPORTED) return c.decline("custom kernels: " + std::string(error.text()));
  c.expect(status == TB_OK, "compile: {}", error.text());
  if (status != TB_OK) return;
  uint32_t count = 0;
  c.expect_status(TB_OK, "kernel.count", k.count, library, &count);
  c.expect(count == 1, "{} kernels instead of 1", count);
  tb_kernel kernel = nullptr;
  tb_kernel_info info{};
  info.struct_size = sizeof info;
  c.expect_status(TB_OK, "kernel.find", k.find, library, "add_to", &kernel, &info);
  c.expect(info.max_work_group_size > 0, "kernel has no work-group size");
  tb_kernel missing = nullptr;
  c.expect(k.find(library, "nothing", &missing, &info, nullptr) != TB_OK,
           "a kernel out of nowhere");
  std::vector<float> data(100, 1.5f);
  const testing::DeviceMemory memory(c.backend(), 400);
  memory.upload(data.data());
  const int64_t sizes[1] = {98}, strides[1] = {1};
  tb_tensor t{};
  t.struct_size = sizeof t;
  t.address = memory.address() + 4;
  t.base = memory.address();
  t.base_bytes = 400;
  t.dtype = {TB_DTYPE_FLOAT, 32, 1};
  t.ndim = 1;
  t.sizes = sizes;
  t.strides = strides;
  tb_value args[2] = {};
  args[0].tag = TB_TENSOR;
  args[0].as.p = &t;
  args[1].tag = TB_INT;
  args[1].as.i = 3;
  const uint64_t threads[1] = {98};
  c.expect_status(TB_OK, "kernel.launch", k.launch, c.stream(), kernel,
                  static_cast<const tb_value*>(args), 2u, 1u, static_cast<const uint64_t*>(threads),
                  static_cast<const uint64_t*>(nullptr));
  memory.download(data.data());
  for (size_t i = 0; i < data.size(); ++i)
    c.expect(data[i] == (i == 0 || i == 99 ? 1.5f : 4.5f), "custom kernel: element {} is {}", i,
             data[i]);
  c.expect_status(TB_OK, "kernel.destroy", k.destroy, library);
}

void profiler(Checker& c) {
  const auto& p = *c.api().profiler;
  int32_t enabled = 1;
  c.expect_status(TB_OK, "profiler.is_enabled", p.is_enabled, &enabled);
  c.expect(enabled == 0, "the profiler runs unasked");
  tb_counters counters{};
  counters.struct_size = sizeof counters;
  ErrorBuffer error;
  if (c.declines("profiler.counters", p.counters(&counters, error.get()), error)) return;
  c.expect_status(TB_OK, "profiler.counters", p.counters, &counters);
  const testing::DeviceMemory memory(c.backend(), 64);
  const char data[64] = {};
  memory.upload(data);
  tb_counters later{};
  later.struct_size = sizeof later;
  c.expect_status(TB_OK, "profiler.counters", p.counters, &later);
  c.expect(later.copies > counters.copies && later.copied_bytes >= counters.copied_bytes + 64,
           "a copy is not counted");
}

void switches(Checker& c) {
  const auto& s = *c.api().switches;
  uint32_t count = 0;
  c.expect_status(TB_OK, "switches.count", s.count, &count);
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    char value[256] = {};
    c.expect_status(TB_OK, "switches.at", s.at, i, &name);
    c.expect(name != nullptr && name[0] != 0, "switch {} has no name", i);
    if (name == nullptr) continue;
    c.expect(s.get(name, value, sizeof value, nullptr) == TB_OK, "switch '{}' cannot be read",
             name);
  }
  c.cite(rule::kNames);
  char value[16];
  c.expect_status(TB_UNSUPPORTED, "switches.get of an unknown name", s.get, "no such switch",
                  static_cast<char*>(value), uint64_t{sizeof value});
  c.expect_status(TB_UNSUPPORTED, "switches.set of an unknown name", s.set, "no such switch", "1");
  if (s.struct_size <= offsetof(tb_switch_api, report)) return;
  uint64_t needed = 0;
  c.expect(s.report("no such subject", nullptr, 0, &needed, nullptr) == TB_UNSUPPORTED,
           "a report of nothing is given");
  c.cite(rule::kSwitches);
  char part[4] = {1, 1, 1, 1};
  if (s.report("algorithms", part, sizeof part, &needed, nullptr) == TB_OK)
    c.expect(needed > sizeof part && part[3] == 0, "a report that does not fit has no end");
}

// Memory that others see: a backend without it says so everywhere; else what is exported and
// imported again is one memory.
void shared_memory(Checker& c) {
  const auto& i = *c.api().interop;
  if (i.struct_size <= offsetof(tb_interop_api, copy_from_library))
    return c.decline("shared memory: the backend is older");
  std::vector<uint32_t> data(1024, 7), seen(1024);
  const uint64_t bytes = data.size() * sizeof data[0];
  const testing::DeviceMemory memory(c.backend(), bytes);
  memory.upload(data.data());
  tb_shared_memory place{};
  place.struct_size = sizeof place;
  ErrorBuffer error;
  const tb_status status = i.shared_place(memory.address(), &place, error.get());
  int32_t descriptor = -1;
  tb_address there = 0;
  if (status == TB_UNSUPPORTED) {
    c.expect(strlen(error.text()) > 10, "no shared memory, and no reason");
    c.expect_status(TB_UNSUPPORTED, "interop.export_memory", i.export_memory, memory.address(),
                    &descriptor);
    c.expect_status(TB_UNSUPPORTED, "interop.import_memory", i.import_memory, c.stream(), -1, bytes,
                    &there);
    c.expect_status(TB_UNSUPPORTED, "interop.shared_synchronize", i.shared_synchronize, c.device());
    return c.decline("shared memory: " + std::string(error.text()));
  }
  c.expect(status == TB_OK, "interop.shared_place: {}", error.text());
  c.expect(place.library[0] != 0 && place.address != 0, "a place without library or address");
  c.expect(
      place.segment <= memory.address() && memory.address() + bytes <= place.segment + place.bytes,
      "the allocation is not inside its segment");
  c.expect_status(TB_OK, "interop.export_memory", i.export_memory, memory.address(), &descriptor);
  c.expect_status(TB_OK, "interop.import_memory", i.import_memory, c.stream(), descriptor,
                  place.bytes, &there);
  close(descriptor);
  const auto& stream = *c.api().stream;
  c.expect_status(TB_OK, "stream.synchronize", stream.synchronize, c.stream());
  c.expect_status(TB_OK, "transfer.to_host", c.api().transfer->to_host, c.stream(),
                  static_cast<void*>(seen.data()), there + (memory.address() - place.segment),
                  bytes, uint32_t{0});
  c.expect(seen == data, "imported memory has another content");
  c.expect_status(TB_OK, "interop.release_import", i.release_import, there);
  c.expect(i.release_import(there, nullptr) != TB_OK, "imported memory is released twice");
}

// After fork() every function fails in the child with TB_E_STATE, and nothing hangs.
void fork_state(Checker& c) {
  c.trying("memory.allocate and stream.synchronize in a forked process");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    tb_address a = 0;
    const tb_status one = c.api().memory->allocate(c.device(), 64, c.stream(), &a, nullptr);
    const tb_status two = c.api().stream->synchronize(c.stream(), nullptr);
    _exit(one == TB_E_STATE && two == TB_E_STATE ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool in_process = c.backend().name() == "cpu";
  if (in_process && WIFEXITED(status) && WEXITSTATUS(status) == 1)
    return c.decline("fork: the linked-in backend has no state that fork breaks");
  c.expect(WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "in a forked child, functions do not answer TB_E_STATE (wait status {:#x})", status);
}

constexpr AbiCheck kList[] = {{"compile errors", compile_errors, rule::kKernel},
                              {"custom kernel", custom_kernel, rule::kKernel},
                              {"profiler", profiler, rule::kProfiler},
                              {"switches", switches, rule::kSwitches},
                              {"shared memory", shared_memory, rule::kMemory},
                              {"fork", fork_state, rule::kProcess}};

}  // namespace

const std::span<const AbiCheck> kServiceChecks = kList;

}  // namespace ocltensor::conformance
