// Programs of one device, built from source at first use and shared by all threads; in memory by
// specialisation, on disk by content.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/driver/capabilities.h"
#include "runtime/driver/opencl.h"
#include "runtime/program/defines.h"
#include "runtime/program/disk_cache.h"
#include "runtime/program/source.h"

namespace ocltensor::opencl {

struct BuildCounters {
  std::atomic<uint64_t> builds{0};  // compiled from source
  std::atomic<uint64_t> loads{0};   // taken from disk
};
BuildCounters& build_counters();

// A change to programs between the compiler and the device, for instructions that a vendor's OpenCL
// C cannot express.
struct ProgramFinisher {
  bool (*wants)(const Capabilities& caps, const std::string& source);
  // Turns the program's binary into the one that is used. Throws Error(TB_E_COMPILE).
  std::string (*finish)(const std::string& binary);
};
// The finishers of all providers: the table is in plugin/opencl/providers.cpp, above this folder.
std::span<const ProgramFinisher* const> program_finishers();

class ProgramCache {
 public:
  ProgramCache(cl_context context, cl_device_id device, const Capabilities& caps, int index)
      : context_(context),
        device_(device),
        caps_(caps),
        index_(index),
        is_careful_(is_known_to_crash(caps)) {}

  // Thread-safe; two threads that need the same program build it once. Throws Error(TB_E_COMPILE)
  // with the compiler's log.
  cl_program get(const Source& source, const Defines& defines);
  // Whether get() needs no compiler, and waits for none.
  bool has(const Source& source, const Defines& defines);
  // Whether the compiler may end the process that it runs in: of builders, then, that are asked
  // first, so that get() throws Error(TB_E_COMPILE) for what has ended one.
  bool is_careful() const { return is_careful_.load(std::memory_order_relaxed); }
  // Compiles a program into the cache on disk, unless it is there or another process is building
  // it. `defines` is text as made by Defines::source(). Throws as get() does.
  void build_ahead(const Source& source, const std::string& defines);
  // Has a slow compiler load what it needs for its first program.
  void warm_up();
  // Builds a program that is not shared. A finisher is applied if it wants the program.
  Handle<cl_program> build(const std::string& text, const std::string& options, const char* what);

 private:
  struct Slot {
    std::once_flag once;
    Handle<cl_program> program;
    std::atomic<bool> is_ready{false};
  };
  struct Text {
    std::string source, options;
  };
  Text text_of(const Source& source, const std::string& defines) const;
  disk_cache::Key disk_key(const Text& text) const;
  Handle<cl_program> load_or_build(const Source& source, const std::string& defines,
                                   const Text& text);
  static bool is_known_to_crash(const Capabilities& caps);
  // Throws Error(TB_E_COMPILE) if the compiler is known to end the process that builds it.
  void refuse_crashing(const disk_cache::Key& key, const char* what);
  bool wants_builder(const disk_cache::Key& key) const;
  // With short declarations of OpenCL C's functions, where these help.
  Handle<cl_program> build_kernels(const Text& text, const char* what);
  bool takes_declarations();
  Handle<cl_program> load(const disk_cache::Key& key, const std::string& options, const char* what);
  Handle<cl_program> from_binary(const std::vector<unsigned char>& binary);  // null: refused
  void save(const disk_cache::Key& key, cl_program program);
  Handle<cl_program> finished(cl_program program, const ProgramFinisher& finisher,
                              const std::string& options, const char* what);
  void compile(cl_program program, const std::string& options, const char* what);

  cl_context context_;
  cl_device_id device_;
  const Capabilities& caps_;
  const int index_;
  std::atomic<bool> is_careful_;
  std::once_flag asked_for_declarations_;
  bool takes_declarations_ = false;
  std::mutex mutex_;
  std::unordered_map<disk_cache::Key, std::shared_ptr<Slot>, disk_cache::KeyHash> programs_;
};

}  // namespace ocltensor::opencl
