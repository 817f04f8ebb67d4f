// Custom kernels at the C boundary.
#include <cstring>
#include <optional>

#include "entry.h"
#include "handles.h"
#include "operator_log.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/kernels/library.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/recorder.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

Library& library_of(tb_library handle) {
  check(handle != nullptr, "'library' must not be NULL");
  return *reinterpret_cast<Library*>(handle);
}

void answer(CustomKernel& found, tb_kernel* kernel, tb_kernel_info* info) {
  required(kernel, "kernel") = reinterpret_cast<tb_kernel>(&found);
  if (info != nullptr) fill_struct(info, found.info(), TB_KERNEL_INFO_SIZE_V1);
}

tb_status compile(int32_t index, const char* source, const char* options, tb_library* library,
                  tb_error* error) {
  return guarded(error, [&] {
    check_process();
    required(library, "library");
    library[0] = reinterpret_cast<tb_library>(
        new Library(device(index), &required(source, "source"), options == nullptr ? "" : options));
  });
}

tb_status request(int32_t index, const char* const* sources, uint32_t count, const char* options,
                  uint32_t* asked, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    if (count > 0) required(sources, "sources");
    ProgramCache& programs = device(index).programs();
    uint32_t missing = 0;
    bool has_builders = false;  // the first programs are kept until builders are worth starting
    for (uint32_t i = 0; i < count; ++i) {
      const auto program =
          programs.find(&required(sources[i], "a source"), options == nullptr ? "" : options);
      if (programs.has(*program)) continue;
      ++missing;
      has_builders = programs.request(*program) || has_builders;
    }
    if (asked != nullptr) *asked = has_builders ? missing : 0;
  });
}

tb_status destroy(tb_library library, tb_error* error) {
  return guarded(error, [&] {
    if (library != nullptr) delete &library_of(library);
  });
}

tb_status count(tb_library library, uint32_t* count, tb_error* error) {
  return guarded(error, [&] {
    required(count, "count") = static_cast<uint32_t>(library_of(library).kernels().size());
  });
}

tb_status at(tb_library library, uint32_t index, tb_kernel* kernel, tb_kernel_info* info,
             tb_error* error) {
  return guarded(error, [&] {
    const auto kernels = library_of(library).kernels();
    check(index < kernels.size(), "the library has {} kernels, there is no {}", kernels.size(),
          index);
    answer(*kernels[index], kernel, info);
  });
}

tb_status find(tb_library library, const char* name, tb_kernel* kernel, tb_kernel_info* info,
               tb_error* error) {
  return guarded(error, [&] {
    required(name, "name");
    std::string known;
    for (const auto& candidate : library_of(library).kernels()) {
      if (std::strcmp(candidate->name(), name) == 0) return answer(*candidate, kernel, info);
      known += (known.empty() ? "" : ", ") + std::string(candidate->name());
    }
    fail(TB_E_INVALID, "the library has no kernel '{}'; it has: {}", name,
         known.empty() ? "none" : known);
  });
}

// The sizes come from the user: errors for which a driver would return just a code are explained
// here.
Range range_of(uint32_t rank, const uint64_t* threads, const uint64_t* group,
               const CustomKernel& kernel) {
  check(rank >= 1 && rank <= 3, "a range has 1 to 3 dimensions, got {}", rank);
  required(threads, "threads");
  Range range{rank, {1, 1, 1}, {0, 0, 0}};
  uint64_t items = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    range.global[i] = static_cast<size_t>(threads[i]);
    if (group == nullptr) continue;
    check(group[i] > 0 && threads[i] % group[i] == 0,
          "kernel {}: {} threads in dimension {} are no multiple of the group size {}; round the "
          "number of threads up and leave the surplus ones idle in the kernel",
          kernel.name(), threads[i], i, group[i]);
    range.local[i] = static_cast<size_t>(group[i]);
    items *= group[i];
  }
  const uint64_t most = kernel.info().max_work_group_size;
  check(group == nullptr || items <= most,
        "kernel {}: a group of {} work-items is larger than this kernel's limit of {}",
        kernel.name(), items, most);
  if (group != nullptr)
    for (uint32_t i = rank; i < 3; ++i) range.local[i] = 1;
  return range;
}

// Launches with the profiler or a capture on.
void launch_observed(Stream& stream, CustomKernel& kernel, std::span<const tb_value> args,
                     const Range& range) {
  std::optional<profiler::HostCall> traced;
  if (profiler::recording()) traced.emplace("operator", kernel.name());
  std::optional<recorder::OperatorCall> recorded;
  if (recorder::recording()) recorded.emplace(kernel.name());
  kernel.launch(stream, args, range);
  if (recorded)
    for (uint32_t i = 0; i < args.size(); ++i)  // a custom kernel may write any of its buffers
      if (args[i].tag == TB_TENSOR)
        recorded->output(i, *static_cast<const tb_tensor*>(args[i].as.p));
  if (!traced) return;
  log_operator(*traced, kernel.name(), args, {});
  stream.finish_operator();
}

tb_status launch(tb_stream stream, tb_kernel handle, const tb_value* args, uint32_t arg_count,
                 uint32_t rank, const uint64_t* threads, const uint64_t* group, tb_error* error) {
  return guarded(error, [&] {
    check(handle != nullptr, "'kernel' must not be NULL");
    auto& kernel = *reinterpret_cast<CustomKernel*>(handle);
    if (arg_count > 0) required(args, "args");
    const Range range = range_of(rank, threads, group, kernel);
    if (range.global[0] * range.global[1] * range.global[2] == 0) return;
    Stream& s = stream_of(stream);
    if (!profiler::recording() && !recorder::recording()) [[likely]]
      return kernel.launch(s, {args, arg_count}, range);
    launch_observed(s, kernel, {args, arg_count}, range);
  });
}

}  // namespace

const tb_kernel_api kKernelApi{
    .struct_size = sizeof(tb_kernel_api),
    .compile = compile,
    .destroy = destroy,
    .count = count,
    .at = at,
    .find = find,
    .launch = launch,
    .request = request,
};

}  // namespace ocltensor::opencl
