// Builds, caches and loads programs.
#include "program.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "kernel_sources.h"
#include "ocltensor/error.h"
#include "runtime/ahead/build_requests.h"
#include "runtime/driver/caps.h"
#include "runtime/driver/process.h"
#include "runtime/driver/process_end.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/recorder.h"
#include "runtime/program/build_marks.h"

namespace ocltensor::opencl {
namespace {

std::string build_log(cl_program program, cl_device_id device) {
  size_t size = 0;
  if (cl().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
      CL_SUCCESS)
    return {};
  std::string text(size, 0);
  if (cl().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, text.data(),
                                 nullptr) != CL_SUCCESS)
    return {};
  return text.c_str();
}

// Empty if the driver provides no binary.
std::vector<unsigned char> binary_of(cl_program program) {
  size_t size = 0;
  if (cl().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
          CL_SUCCESS ||
      size == 0)
    return {};
  std::vector<unsigned char> binary(size);
  unsigned char* target = binary.data();
  if (cl().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof target, &target, nullptr) !=
      CL_SUCCESS)
    return {};
  return binary;
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::atomic<int64_t> building_ns{0};  // total time of all builds

// Logs what is being compiled, at most once a second: a model's first step may take minutes.
void tell_progress(const char* what) {
  static std::atomic<int64_t> due{0};
  const int64_t now = now_ns();
  int64_t last = due.load(std::memory_order_relaxed);
  if (now < last || !due.compare_exchange_strong(last, now + 1'000'000'000)) return;
  logging::info("program", "compiling {}, after {} programs in {:.1f} s", what,
                build_counters().builds.load(), static_cast<double>(building_ns) / 1e9);
}

constexpr const char* kWithoutDeclarations = " -D_OPENCL_H_";
const std::string& declarations() {
  static const std::string& text =
      *new std::string(text_of(kernel_sources::include_pocl_declarations_h));
  return text;
}

}  // namespace

BuildCounters& build_counters() {
  static BuildCounters counters;
  return counters;
}

void ProgramCache::compile(cl_program program, const std::string& options, const char* what) {
  const cl_int code = cl().clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr);
  if (code == CL_BUILD_PROGRAM_FAILURE || code == CL_INVALID_BUILD_OPTIONS) {
    const std::string text_of_log = build_log(program, device_);
    throw Error(TB_E_COMPILE, 0,
                fmt::format("{} did not compile for {}: {}\n{}", what, caps_.name, error_name(code),
                            text_of_log),
                code);
  }
  check_cl(code, "clBuildProgram");
  if (!logging::enabled(logging::Level::Debug)) return;
  if (const std::string said = build_log(program, device_); !said.empty())
    logging::debug("program", "the compiler says of {}: {}", what, said);
}

Handle<cl_program> ProgramCache::build(const std::string& text, const std::string& options,
                                       const char* what) {
  const profiler::HostCall traced("build", what);
  const Compiling compiling(what);
  const char* lines = text.c_str();
  const size_t length = text.size();
  cl_int code = CL_SUCCESS;
  Handle<cl_program> program(cl().clCreateProgramWithSource(context_, 1, &lines, &length, &code));
  check_cl(code, "clCreateProgramWithSource");
  tell_progress(what);
  const int64_t begin = now_ns();
  compile(program.get(), options, what);
  for (const ProgramFinisher* finisher : program_finishers())
    if (finisher->wants(caps_, text)) program = finished(program.get(), *finisher, options, what);
  recorder::describe(program.get(), text, options, what);  // custom programs come this way only
  ++build_counters().builds;
  const int64_t elapsed = now_ns() - begin;
  building_ns += elapsed;
  logging::debug("program", "built {} in {:.1f} ms", what, static_cast<double>(elapsed) / 1e6);
  return program;
}

// PoCL includes clang's declarations unless the macro by which they guard themselves is defined.
bool ProgramCache::takes_declarations() {
  std::call_once(asked_for_declarations_, [this] {
    if (!caps_.slow_declarations || caps_.fp16_arithmetic) return;  // ours have no half
    const std::string text = declarations() +  // of vectors wider than registers clang warns aloud
                             "#pragma clang diagnostic ignored \"-Wpsabi\"\n"
                             "__kernel void f(__global float *x) {\n"
                             "  const size_t i = get_global_id(0);\n"
                             "  vstore16(exp(vload16(i, x)), i, x);\n"
                             "}\n";
    const char* lines = text.c_str();
    cl_int code = CL_SUCCESS;
    const Handle<cl_program> program(
        cl().clCreateProgramWithSource(context_, 1, &lines, nullptr, &code));
    takes_declarations_ = code == CL_SUCCESS &&
                          cl().clBuildProgram(program.get(), 1, &device_,
                                              (caps_.build_options + kWithoutDeclarations).c_str(),
                                              nullptr, nullptr) == CL_SUCCESS;
    if (!takes_declarations_)
      logging::debug("program", "{} does not compile with declarations of ours", caps_.name);
  });
  return takes_declarations_;
}

Handle<cl_program> ProgramCache::build_kernels(const Text& text, const char* what) {
  if (takes_declarations()) {
    try {
      return build(declarations() + text.source, text.options + kWithoutDeclarations, what);
    } catch (const Error& error) {
      if (error.status() != TB_E_COMPILE) throw;
      logging::warning("program",
                       "{} needs what pocl_declarations.h lacks; it is compiled again without: {}",
                       what, error.what());
    }
  }
  return build(text.source, text.options, what);
}

Handle<cl_program> ProgramCache::finished(cl_program program, const ProgramFinisher& finisher,
                                          const std::string& options, const char* what) {
  const std::vector<unsigned char> compiled = binary_of(program);
  const std::string text = finisher.finish(std::string(compiled.begin(), compiled.end()));
  Handle<cl_program> result = from_binary({text.begin(), text.end()});
  check(static_cast<bool>(result), "{}: the driver does not take the changed program", what);
  compile(result.get(), options, what);
  return result;
}

Handle<cl_program> ProgramCache::from_binary(const std::vector<unsigned char>& binary) {
  const unsigned char* bytes = binary.data();
  const size_t size = binary.size();
  cl_int status = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  Handle<cl_program> program(
      cl().clCreateProgramWithBinary(context_, 1, &device_, &size, &bytes, &status, &code));
  if (code != CL_SUCCESS || status != CL_SUCCESS) return {};
  return program;
}

Handle<cl_program> ProgramCache::load(const disk_cache::Key& key, const std::string& options,
                                      const char* what) {
  std::optional<Compiling> loading;
  if (!caps_.loads_at_exit) loading.emplace(what);
  const auto binary = disk_cache::load(key);
  if (!binary) return {};
  const profiler::HostCall traced("load", what);
  Handle<cl_program> program = from_binary(*binary);
  if (!program ||
      cl().clBuildProgram(program.get(), 1, &device_, options.c_str(), nullptr,
                          nullptr) != CL_SUCCESS) {  // another driver's, or damaged: build it again
    disk_cache::remove(key);
    return {};
  }
  ++build_counters().loads;
  return program;
}

void ProgramCache::save(const disk_cache::Key& key, cl_program program) {
  if (const std::vector<unsigned char> binary = binary_of(program); !binary.empty())
    disk_cache::store(key, binary);
}

disk_cache::Key ProgramCache::disk_key(const Text& text) const {
  return disk_cache::key_of(text.source + "\n" + text.options + "\n" + caps_.identity());
}

bool ProgramCache::is_known_to_crash(const Capabilities& caps) {
  return !caps.trusted_compiler || build_marks::is_known_to_crash(caps.identity());
}

void ProgramCache::refuse_crashing(const disk_cache::Key& key, const char* what) {
  if (build_marks::past_of(key) != build_marks::Past::Crashed) return;
  build_marks::note_compiler(caps_.identity());
  is_careful_ = true;
  fail(TB_E_COMPILE,
       "{} is not compiled: the compiler of {} (driver {}, {}) ended a process that compiled it. "
       "Delete {} to try again",
       what, caps_.name, caps_.driver_version, caps_.platform_version, build_marks::path_of(key));
}

// Whether a builder is to compile a program before this process may.
bool ProgramCache::wants_builder(const disk_cache::Key& key) const {
  if (is_process_ending()) return true;
  return config::get_bool(config::Knob::BuildAhead) &&
         (is_careful() || build_marks::past_of(key) == build_marks::Past::Died);
}

Handle<cl_program> ProgramCache::load_or_build(const Source& source, const std::string& defines,
                                               const Text& text) {
  const char* what = source.path;
  const auto key = disk_key(text);
  if (auto program = load(key, text.options, what)) return program;
  refuse_crashing(key, what);
  if (wants_builder(key)) {
    build_ahead::build_elsewhere(caps_, index_, {what, build_ahead::on_one_line(defines)});
    if (auto program = load(key, text.options, what)) return program;
  }
  const disk_cache::Claim claim(key, disk_cache::Claim::kPatience);
  if (claim.waited())  // another process was building it
    if (auto program = load(key, text.options, what)) return program;
  refuse_crashing(key, what);
  const Compiling compiling(what);
  const build_marks::Mark mark(key, build_marks::Place::Process);
  auto program = build_kernels(text, what);
  save(key, program.get());
  return program;
}

ProgramCache::Text ProgramCache::text_of(const Source& source, const std::string& defines) const {
  // Every kernel may read the device's style, so launchers need not define it.
  const char* style =
      caps_.style == KernelStyle::Cpu ? "#define CPU_STYLE 1\n" : "#define CPU_STYLE 0\n";
  const bool outlined = caps_.outlined_kernels && caps_.style == KernelStyle::Cpu;
  const char* outline = outlined && is_embedded() ? "#define OUTLINED 1\n" : "";
  std::string compiler;  // what it wants
  if (caps_.steps_at_once < kAllSteps)
    compiler = fmt::format("#define STEPS_AT_ONCE {}\n", caps_.steps_at_once);
  if (!caps_.indexed_structures) compiler += "#define COPIES_STRUCTURES 1\n";
  Text text{outline + std::string(style) + compiler + defines + expand(source),
            caps_.build_options};
  text.source = without_hidden(caps_, text.source);
  // OpenCL C allows 2.5 ulp for a division, and x / x below 1: trunc(x / x) would be 0.
  if (config::get_bool(config::Knob::FastMath))
    text.options += " -cl-fast-relaxed-math";
  else if (caps_.exact_division)
    text.options += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (!caps_.structs_by_value) text.source = structures_in_memory(text.source);
  return text;
}

void ProgramCache::warm_up() {
  if (!caps_.slow_compiler) return;
  const Text text{"__kernel void first(__global float *x) { x[get_global_id(0)] = 0; }\n",
                  caps_.build_options};
  binary_of(build_kernels(text, "a first kernel").get());
}

void ProgramCache::build_ahead(const Source& source, const std::string& defines) {
  const Text text = text_of(source, defines);
  const auto key = disk_key(text);
  const disk_cache::Claim claim(key, std::chrono::milliseconds(0));
  if (!claim.held() || disk_cache::contains(key)) return;
  refuse_crashing(key, source.path);
  const build_marks::Mark mark(key, build_marks::Place::Builder);
  save(key, build_kernels(text, source.path).get());
}

bool ProgramCache::has(const Source& source, const Defines& defines) {
  const Text text = text_of(source, defines.source());
  {
    std::lock_guard lock(mutex_);
    const auto it = programs_.find(disk_cache::key_of(text.source + text.options));
    if (it != programs_.end() && it->second->is_ready) return true;
  }
  return disk_cache::contains(disk_key(text));
}

cl_program ProgramCache::get(const Source& source, const Defines& defines) {
  check_process();
  const std::string lines = defines.source();
  const Text text = text_of(source, lines);
  const auto key = disk_cache::key_of(text.source + text.options);
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    auto& entry = programs_[key];
    if (!entry) {
      entry = std::make_shared<Slot>();
      logging::debug("program", "first use of {} {}", source.path, build_ahead::on_one_line(lines));
    }
    slot = entry;
  }
  bool found = true;
  std::call_once(slot->once, [&] {
    found = false;
    slot->program = load_or_build(source, lines, text);
    slot->is_ready = true;
    // Also if a binary was loaded, because a capture contains sources.
    recorder::describe(slot->program.get(), text.source, text.options, source.path);
  });
  if (found) profiler::note("hit", source.path);
  return slot->program.get();
}

}  // namespace ocltensor::opencl
