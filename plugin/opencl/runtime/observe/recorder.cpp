// Starts and stops captures, and records what the runtime reports of programs, memory and
// operators.
#include "recorder.h"

#include <exception>
#include <utility>

#include "base/config.h"
#include "ocltensor/error.h"
#include "runtime/driver/process.h"
#include "runtime/observe/recorder_state.h"
#include "runtime/pool/address_space.h"

namespace ocltensor::opencl::recorder {
namespace {

std::atomic<bool> on{false};  // between start() and stop()

struct Current {
  const char* name = nullptr;
  uint64_t call = 0;
  uint64_t written_in = 0;
};
thread_local Current current;

// Notes a tensor's memory, unless it exceeds its buffer or its elements overlap.
void note(State& s, uint64_t call, uint64_t index, const tb_tensor& tensor) {
  if (tensor.address == 0 || tensor.ndim > file::kMaxRank) return;
  const runtime::Location place = runtime::address_space().resolve(tensor.address);
  const auto found = s.buffers.find(static_cast<cl_mem>(place.segment));
  if (found == s.buffers.end() || found->second.written_in != s.capture) return;
  file::Result result{call,
                      index,
                      found->second.id,
                      place.offset,
                      static_cast<uint8_t>(from_abi(tensor.dtype)),
                      {tensor.sizes, tensor.sizes + tensor.ndim},
                      {tensor.strides, tensor.strides + tensor.ndim}};
  try {
    const file::Span span = file::span_of(result);
    if (span.low == span.high) return;
  } catch (const Error&) {
    return;
  }
  s.add_tensor(found->second, std::move(result));
}

}  // namespace

void give_up(State& s, const char* reason) {
  recording_now = false;
  s.failure = reason;
  if (s.writer) s.writer->discard();
  s.writer.reset();
}

void start(const std::string& path) {
  check_process();
  if (!config::get_bool(config::Knob::CaptureEnabled))
    fail(TB_E_STATE,
         "capture is not enabled: set the environment variable OCLTENSOR_CAPTURE_ENABLED=1 before "
         "the process starts");
  (void)cl();
  State& s = state();
  if (!s.installed)
    fail(
        TB_E_STATE,
        "OCLTENSOR_CAPTURE_ENABLED was set after OpenCL had been loaded: set it before the process "
        "starts");
  const std::lock_guard gate(s.gate);
  const std::lock_guard lock(s.mutex);
  check(!on, "a capture is on already, to {}: stop it first", s.path);
  s.finish_queues();
  s.writer = std::make_unique<file::Writer>(path);
  s.path = path;
  s.failure.clear();
  s.devices.clear();
  for (auto& [handle, buffer] : s.buffers) buffer.tensors.clear();
  ++s.capture;
  on = true;
  recording_now = true;
}

void stop() {
  check_process();
  State& s = state();
  const std::lock_guard gate(s.gate);
  const std::lock_guard lock(s.mutex);
  check(on, "no capture is on: start one first");
  on = false;
  if (recording_now.exchange(false)) {
    try {
      s.finish_queues();
      s.write_results();
      s.writer->finish();
      s.writer.reset();
      return;
    } catch (const std::exception& e) {
      give_up(s, e.what());
    }
  }
  fail(TB_E_INVALID, "the capture failed: {}", s.failure);
}

bool capturing() { return on; }

void describe(cl_program program, const std::string& source, const std::string& options,
              const char* name) {
  State& s = state();
  if (!s.installed) return;
  const std::lock_guard lock(s.mutex);
  std::shared_ptr<ProgramText>& known = s.programs[program];
  const uint32_t references = known == nullptr ? 1 : known->references;
  known =
      std::make_shared<ProgramText>(ProgramText{s.next_id++, name, options, source, 0, references});
}

void allocated(uint64_t address, uint64_t bytes) {
  if (address == 0) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const runtime::Location place = runtime::address_space().resolve(address);
  const auto found = s.buffers.find(static_cast<cl_mem>(place.segment));
  if (found != s.buffers.end())
    State::forget_tensors(found->second, place.offset, place.offset + bytes);
}

uint64_t State::operator_call() {
  if (current.name == nullptr) return 0;
  if (current.written_in != capture) {
    current.call = next_id++;
    writer->add(file::Operator{current.call, current.name});
    current.written_in = capture;
  }
  return current.call;
}

OperatorCall::OperatorCall(const char* name)
    : outer_name_(std::exchange(current.name, name)),
      outer_call_(std::exchange(current.call, 0)),
      outer_written_in_(std::exchange(current.written_in, 0)) {}

OperatorCall::~OperatorCall() { current = {outer_name_, outer_call_, outer_written_in_}; }

void OperatorCall::output(uint64_t index, const tb_tensor& tensor) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (recording() && current.written_in == s.capture) note(s, current.call, index, tensor);
}

}  // namespace ocltensor::opencl::recorder

// Declared where the table is loaded, in the room below.
void ocltensor::opencl::replace_recorded_entries(Functions& table) {
  if (!config::get_bool(config::Knob::CaptureEnabled)) return;
  recorder::State& s = recorder::state();
  s.real = table;
  s.installed = true;
  recorder::replace_entries(table);
}
