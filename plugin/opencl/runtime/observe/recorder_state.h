// The recorder's knowledge of every OpenCL object, and the records that it writes. Internal to the
// recorder.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/reader.h"
#include "capture/writer.h"
#include "runtime/observe/recorder.h"

namespace ocltensor::opencl::recorder {

namespace file = capture_file;

// `written_in`: the number (from 1) of the capture whose file contains this object already.
// `references`: of its owners, which are copied; it is forgotten with the last one.
struct ProgramText {
  uint64_t id;
  std::string name, options, source;
  uint64_t written_in = 0;
  uint32_t references = 1;
};
struct ArgumentState {
  bool set = false, local = false;
  uint64_t local_bytes = 0;
  std::vector<uint8_t> bytes;
};
struct KernelState {
  uint64_t id;
  std::shared_ptr<ProgramText> program;
  std::string name;
  std::vector<ArgumentState> arguments;
  uint64_t written_in = 0;
  uint32_t references = 1;
};
struct QueueState {
  uint64_t id;
  cl_context context;
  cl_device_id device;
  uint32_t references = 1;
};
struct BufferState {
  uint64_t id;
  uint64_t bytes;
  cl_context context;
  cl_mem parent = nullptr;
  uint64_t origin = 0;
  uint64_t written_in = 0;
  bool changed = false;               // a recorded command has written it
  std::vector<file::PageRun> before;  // contents before its first use
  std::vector<file::Result> tensors;  // tensors that its bytes are known to be, oldest first
  uint32_t references = 1;
};
struct Mapping {
  cl_mem buffer;
  uint64_t offset, bytes;
  bool writes;
};

class State {
 public:
  // Enqueuing functions hold it shared while nothing is recorded. Recording, and starting or
  // stopping it, hold it exclusively, as the file has the commands in the order in which they were
  // enqueued.
  std::shared_mutex gate;
  std::mutex mutex;  // guards what follows; taken after `gate`
  Functions real{};
  bool installed = false;
  uint64_t next_id = 1;
  std::unordered_map<cl_program, std::shared_ptr<ProgramText>> programs;
  std::unordered_map<cl_kernel, KernelState> kernels;
  std::unordered_map<cl_mem, BufferState> buffers;
  std::unordered_map<cl_command_queue, QueueState> queues;
  std::unordered_map<void*, Mapping> mappings;

  // The current capture. The functions below throw errors of Writer and of the driver.
  std::unique_ptr<file::Writer> writer;
  uint64_t capture = 0;
  std::string path, failure;
  std::vector<cl_device_id> devices;  // devices that the file describes

  // Writes the buffer's contents to the file if they are not there yet; nullptr if the buffer is
  // not known.
  BufferState* touch(cl_command_queue queue, cl_mem buffer);
  BufferState& owner(BufferState& buffer);  // the buffer itself, or its parent
  void launch(cl_command_queue queue, cl_kernel kernel, cl_uint rank, const size_t* offset,
              const size_t* global, const size_t* local);
  void touch_arguments(cl_command_queue queue, cl_kernel kernel);
  void copied(const file::Copy& copy, BufferState& source, BufferState& target);
  void add_tensor(BufferState& buffer, file::Result tensor);
  static void forget_tensors(BufferState& buffer, uint64_t begin, uint64_t end);
  void finish_queues();
  void write_results();
  uint64_t queue_id(cl_command_queue queue);
  uint64_t operator_call();  // the id of this thread's operator call, which the file describes

 private:
  void write_contents(cl_command_queue queue, cl_mem handle, BufferState& buffer);
  void write_final(cl_command_queue queue, cl_mem handle, BufferState& buffer);
  template <typename Body>
  void read_pages(cl_command_queue queue, cl_mem handle, uint64_t bytes, Body body);
  cl_mem buffer_argument(const ArgumentState& argument);
};
State& state();

// Ends the recording, not the program: stop() reports the reason. The caller holds both locks.
void give_up(State& s, const char* reason);

// Installs the functions that record (recorder_calls.cpp).
void replace_entries(Functions& table);

}  // namespace ocltensor::opencl::recorder
