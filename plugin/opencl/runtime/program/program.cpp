// Builds, caches and loads programs.
#include "program.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "compiler_log.h"
#include "kernel_sources.h"
#include "ocltensor/error.h"
#include "runtime/ahead/build_requests.h"
#include "runtime/driver/caps.h"
#include "runtime/driver/clhpp.h"
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

// Names must be such that the driver can use them: with too long ones PoCL ends the process that
// makes a binary, and NVIDIA's driver damages the memory of the one that compiles them.
void refuse_long_names(const Capabilities& caps, const std::vector<std::string>& names) {
  const size_t longest = caps.longest_kernel_name;
  for (const std::string& name : names)
    if (longest != 0 && name.size() > longest)
      fail(TB_E_COMPILE,
           "a kernel's name has at most {} characters with {}, and this one has {}: {}; give it a "
           "shorter one",
           longest, caps.platform, name.size(), name);
}

// Under which the parameters of the program's kernels are kept.
disk_cache::Key parameters_key(const disk_cache::Key& key) {
  return disk_cache::key_of(fmt::format("parameters {:x} {:x}", key.high, key.low));
}

}  // namespace

;

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

cl::Program ProgramCache::build(const std::string& text, const std::string& options,
                                const char* what) {
  const profiler::HostCall traced("build", what);
  const Compiling compiling(what);
  const char* lines = text.c_str();
  const size_t length = text.size();
  cl_int code = CL_SUCCESS;
  cl::Program program(cl().clCreateProgramWithSource(context_, 1, &lines, &length, &code));
  check_cl(code, "clCreateProgramWithSource");
  tell_progress(what);
  const int64_t begin = now_ns();
  compile(program(), options, what);
  for (const ProgramFinisher* finisher : program_finishers())
    if (finisher->wants(caps_, text))
      program = finished(std::move(program), *finisher, options, what);
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
    const cl::Program program(cl().clCreateProgramWithSource(context_, 1, &lines, nullptr, &code));
    takes_declarations_ = code == CL_SUCCESS &&
                          cl().clBuildProgram(program(), 1, &device_,
                                              (caps_.build_options + kWithoutDeclarations).c_str(),
                                              nullptr, nullptr) == CL_SUCCESS;
    if (!takes_declarations_)
      logging::debug("program", "{} does not compile with declarations of ours", caps_.name);
  });
  return takes_declarations_;
}

cl::Program ProgramCache::build_kernels(const ProgramText& text) {
  const char* what = text.name.c_str();
  // Declarations that lack a form of a function would have another one called silently, so that
  // they serve texts alone that were tried with them.
  if (text.origin == TextOrigin::Plugin && takes_declarations()) {
    try {
      return build(declarations() + text.source, text.options + kWithoutDeclarations, what);
    } catch (const Error& error) {
      if (error.status() != TB_E_COMPILE) throw;
      logging::warning("program",
                       "{} needs what pocl_declarations.h lacks; it is compiled again without: {}",
                       what, error.what());
    }
  }
  try {
    return build(text.source, text.options, what);
  } catch (const Error& error) {
    if (error.status() != TB_E_COMPILE || text.origin == TextOrigin::Plugin) throw;
    const std::string line = line_in_question(error.what(), text.source);
    if (line.empty()) throw;
    throw Error(TB_E_COMPILE, 0, fmt::format("{}\n{}", line, error.what()), error.native());
  }
}

cl::Program ProgramCache::finished(cl::Program program, const ProgramFinisher& finisher,
                                   const std::string& options, const char* what) {
  const std::vector<unsigned char> compiled = binary_of(program());
  const std::string before(compiled.begin(), compiled.end()), text = finisher.finish(before);
  if (text == before) return program;
  cl::Program result = from_binary({text.begin(), text.end()});
  check(result() != nullptr, "{}: the driver does not take the changed program", what);
  compile(result(), options, what);
  return result;
}

cl::Program ProgramCache::from_binary(const std::vector<unsigned char>& binary) {
  const unsigned char* bytes = binary.data();
  const size_t size = binary.size();
  cl_int status = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  cl::Program program(
      cl().clCreateProgramWithBinary(context_, 1, &device_, &size, &bytes, &status, &code));
  if (code != CL_SUCCESS || status != CL_SUCCESS) return {};
  return program;
}

cl::Program ProgramCache::load(const disk_cache::Key& key, const ProgramText& text,
                               ProgramParameters& parameters) {
  if (text.origin == TextOrigin::WithFiles) return {};
  const char* what = text.name.c_str();
  std::optional<Compiling> loading;
  if (!caps_.loads_at_exit) loading.emplace(what);
  const auto binary = disk_cache::load(key);
  if (!binary) return {};
  const profiler::HostCall traced("load", what);
  cl::Program program = from_binary(*binary);
  if (program() == nullptr ||
      cl().clBuildProgram(program(), 1, &device_, text.options.c_str(), nullptr,
                          nullptr) != CL_SUCCESS) {  // another driver's, or damaged: build it again
    disk_cache::remove(key);
    return {};
  }
  if (text.origin == TextOrigin::Given) {
    parameters = ask_parameters(program());
    if (!are_known(parameters)) {
      const auto kept = disk_cache::load(parameters_key(key));
      auto known =
          kept ? parameters_from({reinterpret_cast<const char*>(kept->data()), kept->size()})
               : std::nullopt;
      if (!known) return {};
      parameters = std::move(*known);
    }
  }
  ++build_counters().loads;
  return program;
}

// What is known of a given program's kernels.
ProgramParameters ProgramCache::asked(const ProgramText& text, cl_program program) const {
  if (text.origin == TextOrigin::Plugin) return {};
  refuse_long_names(caps_, kernel_names(program));
  return ask_parameters(program);
}

void ProgramCache::save(const disk_cache::Key& key, const ProgramText& text, cl_program program,
                        const ProgramParameters& parameters) {
  if (text.origin == TextOrigin::WithFiles) return;
  const std::vector<unsigned char> binary = binary_of(program);
  if (binary.empty()) return;
  // First, as who finds the binary looks for them.
  if (const std::string lines = to_text(parameters); !lines.empty())
    disk_cache::store(parameters_key(key), {lines.begin(), lines.end()});
  disk_cache::store(key, binary);
}

disk_cache::Key ProgramCache::key_of(const ProgramText& text) const {
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

cl::Program ProgramCache::load_or_build(const disk_cache::Key& key, const ProgramText& text,
                                        ProgramParameters& parameters) {
  const char* what = text.name.c_str();
  if (auto program = load(key, text, parameters); program() != nullptr) return program;
  if (text.origin != TextOrigin::Plugin) refuse_long_names(caps_, declared_kernels(text.source));
  refuse_crashing(key, what);
  if (wants_builder(key) && text.origin != TextOrigin::WithFiles) {
    build_ahead::build_elsewhere(caps_, index_, text);
    if (auto program = load(key, text, parameters); program() != nullptr) return program;
  }
  const disk_cache::Claim claim(key, disk_cache::Claim::kPatience);
  if (claim.waited())  // another process was building it
    if (auto program = load(key, text, parameters); program() != nullptr) return program;
  refuse_crashing(key, what);
  const Compiling compiling(what);
  const build_marks::Mark mark(key, build_marks::Place::Process);
  auto program = build_kernels(text);
  parameters = asked(text, program());
  save(key, text, program(), parameters);
  return program;
}

void ProgramCache::warm_up() {
  if (!caps_.slow_compiler) return;
  binary_of(build_kernels({"a first kernel", "",
                           "__kernel void first(__global float *x) { x[get_global_id(0)] = 0; }\n",
                           caps_.build_options, TextOrigin::Plugin})());
}

void ProgramCache::build_ahead(const ProgramText& text) {
  const auto key = key_of(text);
  const disk_cache::Claim claim(key, std::chrono::milliseconds(0));
  if (!claim.held() || disk_cache::contains(key)) return;
  refuse_crashing(key, text.name.c_str());
  const build_marks::Mark mark(key, build_marks::Place::Builder);
  const auto program = build_kernels(text);
  save(key, text, program(), asked(text, program()));
}

std::shared_ptr<Program> ProgramCache::known(ProgramText text) {
  const disk_cache::Key key = key_of(text);
  if (text.origin == TextOrigin::WithFiles)  // what it includes may have changed
    return std::make_shared<Program>(std::make_shared<const ProgramText>(std::move(text)), key);
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Program>& place = by_content_[key];
  if (auto program = place.lock()) return program;
  std::erase_if(by_content_,
                [&](const auto& entry) { return entry.second.expired() && !(entry.first == key); });
  logging::debug("program", "first use of {} {}", text.name, text.about);
  auto program =
      std::make_shared<Program>(std::make_shared<const ProgramText>(std::move(text)), key);
  by_content_[key] = program;
  return program;
}

std::shared_ptr<Program> ProgramCache::find(const Source& source, const Defines& defines) {
  check_process();
  const Name name{&source, defines};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  }
  std::shared_ptr<Program> program = known(text_of(source, defines));
  const std::lock_guard lock(mutex_);
  return by_name_[name] = program;
}

std::shared_ptr<Program> ProgramCache::find(const std::string& source, const std::string& options) {
  check_process();
  return known(text_of(source, options));
}

bool ProgramCache::has(const Program& program) {
  return program.is_built() || disk_cache::contains(program.key());
}

bool ProgramCache::request(const Program& program) noexcept {
  const std::shared_ptr<const ProgramText> text = program.text_.load();
  if (text == nullptr || text->origin == TextOrigin::WithFiles) return false;
  if (disk_cache::usable_folder().empty()) return false;
  return build_ahead::request(caps_, index_, text);
}

cl_program ProgramCache::get(Program& program) {
  check_process();
  bool found = true;
  std::call_once(program.once_, [&] {
    found = false;
    make(program);
  });
  if (found) profiler::note("hit", program.name().c_str());
  return (*program.program_)();
}

void ProgramCache::make(Program& program) {
  const std::shared_ptr<const ProgramText> text = program.text_.load();
  program.program_ =
      std::make_shared<cl::Program>(load_or_build(program.key(), *text, program.parameters_));
  // Also if a binary was loaded, because a capture contains sources.
  recorder::describe((*program.program_)(), text->source, text->options, text->name.c_str());
  program.is_built_.store(true, std::memory_order_release);
  program.text_.store(nullptr);
}

}  // namespace ocltensor::opencl
