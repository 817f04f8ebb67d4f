// The functions that replace OpenCL's if captures are enabled: each calls the driver's, and updates
// the recorder's state.
#include <cstring>
#include <exception>
#include <utility>

#include "runtime/observe/recorder_state.h"

namespace ocltensor::opencl::recorder {
namespace {

const Functions& real() { return state().real; }

// Runs `body`; a failure ends the recording, never the caller.
template <typename Body>
void attempt(State& s, Body body) {
  if (!recording()) return;
  try {
    body();
  } catch (const std::exception& e) {
    give_up(s, e.what());
  }
}

// Runs a command: `before` reads memory as it was, `after` notes what was enqueued.
template <typename Before, typename Call, typename After>
cl_int command(Before before, Call call, After after) {
  State& s = state();
  {
    const std::shared_lock gate(s.gate);
    if (!recording()) return call();
  }
  const std::lock_guard gate(s.gate);
  const std::lock_guard lock(s.mutex);
  attempt(s, [&] { before(s); });
  const cl_int code = call();
  if (code == CL_SUCCESS) attempt(s, [&] { after(s); });
  return code;
}

BufferState& known(State& s, cl_command_queue queue, cl_mem buffer) {
  BufferState* found = s.touch(queue, buffer);
  check(found != nullptr, "a buffer is used that the capture does not know");
  return *found;
}

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host,
                                 cl_int* code) {
  const cl_mem buffer = real().clCreateBuffer(context, flags, bytes, host, code);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (buffer != nullptr)
    s.buffers.insert_or_assign(buffer, BufferState{s.next_id++, bytes, context});
  return buffer;
}

cl_mem CL_API_CALL create_sub_buffer(cl_mem whole, cl_mem_flags flags, cl_buffer_create_type type,
                                     const void* region, cl_int* code) {
  const cl_mem buffer = real().clCreateSubBuffer(whole, flags, type, region, code);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (buffer == nullptr) return buffer;
  const auto& part = *static_cast<const cl_buffer_region*>(region);
  const auto parent = s.buffers.find(whole);
  if (parent != s.buffers.end())
    s.buffers.insert_or_assign(
        buffer, BufferState{s.next_id++, part.size, parent->second.context, whole, part.origin});
  return buffer;
}

template <typename Object>
uint32_t& references(Object& object) {
  return object.references;
}
uint32_t& references(std::shared_ptr<ProgramText>& program) { return program->references; }

// Retains what `known` has by a call of the driver.
template <auto Call, auto Known, typename Handle>
cl_int CL_API_CALL retain(Handle handle) {
  const cl_int code = (real().*Call)(handle);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto found = (s.*Known).find(handle);
  if (code == CL_SUCCESS && found != (s.*Known).end()) ++references(found->second);
  return code;
}

// The object, if its last owner leaves it; else the end.
template <typename Known, typename Handle>
auto leave(Known& known, Handle handle) {
  const auto found = known.find(handle);
  return found != known.end() && --references(found->second) == 0 ? found : known.end();
}

template <typename Known, typename Handle>
void forget(Known& known, Handle handle) {
  if (const auto found = leave(known, handle); found != known.end()) known.erase(found);
}

cl_int CL_API_CALL release_buffer(cl_mem buffer) {
  State& s = state();
  {
    const std::lock_guard gate(s.gate);
    const std::lock_guard lock(s.mutex);
    const auto found = leave(s.buffers, buffer);
    if (found != s.buffers.end()) {
      if (found->second.written_in == s.capture)
        attempt(s, [&] { s.writer->add(file::Release{found->second.id}); });
      s.buffers.erase(found);
    }
  }
  return real().clReleaseMemObject(buffer);
}

void add_kernel(State& s, cl_program program, cl_kernel kernel, std::string name) {
  const auto found = s.programs.find(program);
  s.kernels.insert_or_assign(
      kernel,
      KernelState{
          s.next_id++, found == s.programs.end() ? nullptr : found->second, std::move(name), {}});
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* code) {
  const cl_kernel kernel = real().clCreateKernel(program, name, code);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (kernel != nullptr) add_kernel(s, program, kernel, name);
  return kernel;
}

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint count, cl_kernel* kernels,
                                  cl_uint* found) {
  const cl_int code = real().clCreateKernelsInProgram(program, count, kernels, found);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (code == CL_SUCCESS && kernels != nullptr)
    for (cl_uint i = 0; i < count; ++i) {
      char name[1024] = "";
      real().clGetKernelInfo(kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, nullptr);
      add_kernel(s, program, kernels[i], name);
    }
  return code;
}

cl_int CL_API_CALL release_kernel(cl_kernel kernel) {
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    forget(s.kernels, kernel);
  }
  return real().clReleaseKernel(kernel);
}

cl_int CL_API_CALL release_program(cl_program program) {
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    forget(s.programs, program);
  }
  return real().clReleaseProgram(program);
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
  const cl_int code = real().clSetKernelArg(kernel, index, bytes, value);
  if (code != CL_SUCCESS) return code;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto found = s.kernels.find(kernel);
  if (found == s.kernels.end()) return code;
  auto& arguments = found->second.arguments;
  if (arguments.size() <= index) arguments.resize(index + 1);
  ArgumentState& argument = arguments[index];
  argument.set = true;
  argument.local = value == nullptr;
  argument.local_bytes = bytes;
  const auto* from = static_cast<const uint8_t*>(value);
  if (value != nullptr) argument.bytes.assign(from, from + bytes);
  return code;
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int* code) {
  const cl_command_queue queue = real().clCreateCommandQueue(context, device, properties, code);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (queue != nullptr) s.queues.insert_or_assign(queue, QueueState{s.next_id++, context, device});
  return queue;
}

cl_int CL_API_CALL release_queue(cl_command_queue queue) {
  {
    State& s = state();
    const std::lock_guard gate(s.gate);
    const std::lock_guard lock(s.mutex);
    forget(s.queues, queue);
  }
  return real().clReleaseCommandQueue(queue);
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint rank,
                          const size_t* offset, const size_t* global, const size_t* local,
                          cl_uint waits, const cl_event* wait, cl_event* event) {
  return command([&](State& s) { s.touch_arguments(queue, kernel); },
                 [&] {
                   return real().clEnqueueNDRangeKernel(queue, kernel, rank, offset, global, local,
                                                        waits, wait, event);
                 },
                 [&](State& s) { s.launch(queue, kernel, rank, offset, global, local); });
}

cl_int CL_API_CALL read(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                        size_t bytes, void* target, cl_uint waits, const cl_event* wait,
                        cl_event* event) {
  return command([&](State& s) { known(s, queue, buffer); },
                 [&] {
                   return real().clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, target,
                                                     waits, wait, event);
                 },
                 [&](State& s) {
                   s.writer->add(file::Read{s.buffers.at(buffer).id, offset, bytes,
                                            s.queue_id(queue), s.operator_call()});
                 });
}

void record_write(State& s, cl_command_queue queue, cl_mem buffer, uint64_t offset,
                  std::span<const uint8_t> bytes) {
  BufferState& target = s.buffers.at(buffer);
  s.owner(target).changed = true;
  s.writer->add(file::Write{target.id, offset, bytes.size(), s.queue_id(queue), s.operator_call(),
                            s.writer->data(bytes)});
}

cl_int CL_API_CALL write(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                         size_t bytes, const void* source, cl_uint waits, const cl_event* wait,
                         cl_event* event) {
  return command(
      [&](State& s) { known(s, queue, buffer); },
      [&] {
        return real().clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, source, waits,
                                           wait, event);
      },
      [&](State& s) {
        record_write(s, queue, buffer, offset, {static_cast<const uint8_t*>(source), bytes});
      });
}

cl_int CL_API_CALL copy(cl_command_queue queue, cl_mem source, cl_mem target, size_t source_offset,
                        size_t target_offset, size_t bytes, cl_uint waits, const cl_event* wait,
                        cl_event* event) {
  return command(
      [&](State& s) {
        known(s, queue, source);
        known(s, queue, target);
      },
      [&] {
        return real().clEnqueueCopyBuffer(queue, source, target, source_offset, target_offset,
                                          bytes, waits, wait, event);
      },
      [&](State& s) {
        BufferState& from = s.buffers.at(source);
        BufferState& to = s.buffers.at(target);
        s.owner(to).changed = true;
        const file::Copy copy{from.id,           source_offset,    to.id, target_offset, bytes,
                              s.queue_id(queue), s.operator_call()};
        s.writer->add(copy);
        s.copied(copy, from, to);
      });
}

cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem buffer, const void* pattern,
                        size_t pattern_bytes, size_t offset, size_t bytes, cl_uint waits,
                        const cl_event* wait, cl_event* event) {
  return command([&](State& s) { known(s, queue, buffer); },
                 [&] {
                   return real().clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes, offset,
                                                     bytes, waits, wait, event);
                 },
                 [&](State& s) {
                   BufferState& target = s.buffers.at(buffer);
                   s.owner(target).changed = true;
                   const auto* from = static_cast<const uint8_t*>(pattern);
                   s.writer->add(file::Fill{target.id,
                                            offset,
                                            bytes,
                                            s.queue_id(queue),
                                            s.operator_call(),
                                            {from, from + pattern_bytes}});
                 });
}

void* CL_API_CALL map(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                      size_t offset, size_t bytes, cl_uint waits, const cl_event* wait,
                      cl_event* event, cl_int* code) {
  void* memory = nullptr;
  (void)command([&](State& s) { known(s, queue, buffer); },
                [&] {
                  memory = real().clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes,
                                                     waits, wait, event, code);
                  return memory == nullptr ? CL_MAP_FAILURE : CL_SUCCESS;
                },
                [](State&) {});
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (memory != nullptr)
    s.mappings.insert_or_assign(memory,
                                Mapping{buffer, offset, bytes, (flags & ~CL_MAP_READ) != 0});
  return memory;
}

// Writes of the host through a mapping reach the device here.
cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void* memory, cl_uint waits,
                         const cl_event* wait, cl_event* event) {
  const cl_int code = command(
      [&](State& s) {
        known(s, queue, buffer);
        const auto mapping = s.mappings.find(memory);
        if (mapping == s.mappings.end() || !mapping->second.writes) return;
        record_write(s, queue, buffer, mapping->second.offset,
                     {static_cast<const uint8_t*>(memory), mapping->second.bytes});
      },
      [&] { return real().clEnqueueUnmapMemObject(queue, buffer, memory, waits, wait, event); },
      [](State&) {});
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (code == CL_SUCCESS) s.mappings.erase(memory);
  return code;
}

}  // namespace

void replace_entries(Functions& table) {
  table.clCreateBuffer = create_buffer;
  table.clCreateSubBuffer = create_sub_buffer;
  table.clRetainMemObject = retain<&Functions::clRetainMemObject, &State::buffers>;
  table.clReleaseMemObject = release_buffer;
  table.clCreateKernel = create_kernel;
  table.clCreateKernelsInProgram = create_kernels;
  table.clRetainKernel = retain<&Functions::clRetainKernel, &State::kernels>;
  table.clReleaseKernel = release_kernel;
  table.clRetainProgram = retain<&Functions::clRetainProgram, &State::programs>;
  table.clReleaseProgram = release_program;
  table.clSetKernelArg = set_argument;
  table.clCreateCommandQueue = create_queue;
  table.clRetainCommandQueue = retain<&Functions::clRetainCommandQueue, &State::queues>;
  table.clReleaseCommandQueue = release_queue;
  table.clEnqueueNDRangeKernel = launch;
  table.clEnqueueReadBuffer = read;
  table.clEnqueueWriteBuffer = write;
  table.clEnqueueCopyBuffer = copy;
  table.clEnqueueFillBuffer = fill;
  table.clEnqueueMapBuffer = map;
  table.clEnqueueUnmapMemObject = unmap;
}

}  // namespace ocltensor::opencl::recorder
