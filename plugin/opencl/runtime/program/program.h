// Programs of one device, known by their content: in memory, on disk, and in builder processes.
// Built at first use and shared by all threads.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/ahead/program_text.h"
#include "runtime/driver/capabilities.h"
#include "runtime/driver/opencl.h"
#include "runtime/program/defines.h"
#include "runtime/program/disk_cache.h"
#include "runtime/program/parameters.h"
#include "runtime/program/source.h"

namespace ocltensor::opencl {

struct BuildCounters {
  std::atomic<uint64_t> builds{0};  // compiled from source
  std::atomic<uint64_t> loads{0};   // taken from disk
};
BuildCounters& build_counters();

// A change to programs between the compiler and the device, for what a vendor's OpenCL C cannot
// express.
struct ProgramFinisher {
  bool (*wants)(const Capabilities& caps, const std::string& source);
  // Turns the program's binary into the one that is used; the same one changes nothing. Throws
  // Error(TB_E_COMPILE).
  std::string (*finish)(const std::string& binary);
};
// The finishers of all providers: the table is in plugin/opencl/providers.cpp, above this folder.
std::span<const ProgramFinisher* const> program_finishers();

// A program of a device. Its text is made once, with its key, and let go when it has been built.
// ProgramCache makes and builds it; thread-safe.
class Program {
 public:
  Program(std::shared_ptr<const ProgramText> text, const disk_cache::Key& key)
      : name_(text->name), key_(key), text_(std::move(text)) {}
  Program(const Program&) = delete;
  const std::string& name() const { return name_; }  // for messages
  const disk_cache::Key& key() const { return key_; }
  bool is_built() const { return is_built_.load(std::memory_order_acquire); }
  // Of the kernels of a built program whose text was given; empty for the plugin's own.
  const ProgramParameters& parameters() const { return parameters_; }

 private:
  friend class ProgramCache;
  const std::string name_;
  const disk_cache::Key key_;
  std::atomic<std::shared_ptr<const ProgramText>> text_;  // null once it is built
  std::once_flag once_;
  std::atomic<bool> is_built_{false};
  std::shared_ptr<cl::Program> program_;
  ProgramParameters parameters_;
};

class ProgramCache {
 public:
  ProgramCache(cl_context context, cl_device_id device, const Capabilities& caps, int index)
      : context_(context),
        device_(device),
        caps_(caps),
        index_(index),
        is_careful_(is_known_to_crash(caps)) {}

  // The program of a kernel source with these defines. It lives as long as this. Throws
  // Error(TB_E_COMPILE) if a header is missing.
  std::shared_ptr<Program> find(const Source& source, const Defines& defines);
  // The program of a text that a user or a generator wrote, by OpenCL C's names and the plugin's
  // headers, as `#include "ocltensor/types.h"`. `options` are added to the device's own.
  std::shared_ptr<Program> find(const std::string& source, const std::string& options);

  // Two threads that need the same program build it once. Throws Error(TB_E_COMPILE) with the
  // compiler's log; the next call tries again.
  cl_program get(Program& program);
  // Whether get() needs no compiler, and waits for none.
  bool has(const Program& program);
  // Asks builder processes to compile it into the cache on disk, unless it is there; get() then
  // loads it. Returns whether there are builders. Never throws.
  bool request(const Program& program) noexcept;

  // Whether the compiler may end the process that it runs in: of builders, then, that are asked
  // first, so that get() throws Error(TB_E_COMPILE) for what has ended one.
  bool is_careful() const { return is_careful_.load(std::memory_order_relaxed); }
  // For builders: compiles a program into the cache on disk, unless it is there or another process
  // is building it. Throws as get() does.
  void build_ahead(const ProgramText& text);
  // Has a slow compiler load what it needs for its first program.
  void warm_up();
  // Builds a program that is neither shared nor kept. A finisher is applied if it wants it.
  cl::Program build(const std::string& text, const std::string& options, const char* what);

 private:
  // A kernel source's program, without its text.
  struct Name {
    const Source* source;
    Defines defines;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    size_t operator()(const Name& name) const {
      return name.defines.hash() ^ (reinterpret_cast<uintptr_t>(name.source) >> 4);
    }
  };
  ProgramText text_of(const Source& source, const Defines& defines) const;
  ProgramText text_of(const std::string& given, const std::string& options) const;
  std::string prefix() const;
  disk_cache::Key key_of(const ProgramText& text) const;
  std::shared_ptr<Program> known(ProgramText text);

  void make(Program& program);
  cl::Program load_or_build(const disk_cache::Key& key, const ProgramText& text,
                            ProgramParameters& parameters);
  static bool is_known_to_crash(const Capabilities& caps);
  // Throws Error(TB_E_COMPILE) if the compiler is known to end the process that builds it.
  void refuse_crashing(const disk_cache::Key& key, const char* what);
  bool wants_builder(const disk_cache::Key& key) const;
  // With short declarations of OpenCL C's functions, where these help.
  cl::Program build_kernels(const ProgramText& text);
  bool takes_declarations();
  // Null if it is not on disk, or what is there cannot be used.
  cl::Program load(const disk_cache::Key& key, const ProgramText& text,
                   ProgramParameters& parameters);
  cl::Program from_binary(const std::vector<unsigned char>& binary);  // null: refused
  ProgramParameters asked(const ProgramText& text, cl_program program) const;
  void save(const disk_cache::Key& key, const ProgramText& text, cl_program program,
            const ProgramParameters& parameters);
  cl::Program finished(cl::Program program, const ProgramFinisher& finisher,
                       const std::string& options, const char* what);
  void compile(cl_program program, const std::string& options, const char* what);

  cl_context context_;
  cl_device_id device_;
  const Capabilities& caps_;
  const int index_;
  std::atomic<bool> is_careful_;
  std::once_flag asked_for_declarations_;
  bool takes_declarations_ = false;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<Name, std::shared_ptr<Program>, NameHash> by_name_;
  // Given texts go with their last user.
  std::unordered_map<disk_cache::Key, std::weak_ptr<Program>, disk_cache::KeyHash> by_content_;
};

}  // namespace ocltensor::opencl
