// Marks, in a folder `building` of the cache's, of programs that are being compiled. A mark whose
// process is dead tells that the compiler may have ended it: drivers' compilers crash inside
// clBuildProgram.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/program/disk_cache.h"

namespace ocltensor::opencl::build_marks {

// Who compiles. A builder notes what ends it, so that a crash is told from a killing (by a user,
// for want of memory); in a user's process signals are the user's.
enum class Place : uint8_t { Builder, Process };

enum class Past : uint8_t {
  Nothing,  // also: it is being compiled
  Died,     // a process died meanwhile, for whatever reason: a builder is to find out
  Crashed   // the compiler ended a builder, or two builders have died with it
};
// Thread-safe, as all functions here. Without a cache folder it is Nothing.
Past past_of(const disk_cache::Key& key);

// The file to delete so that the program is compiled again; empty without a cache folder.
std::string path_of(const disk_cache::Key& key);

// Whether the compiler of the device of this identity (Capabilities::identity) is known to have
// crashed, or any process died while it compiled; and notes that it has crashed.
bool is_known_to_crash(const std::string& identity);
void note_compiler(const std::string& identity);

// Marks a program while it exists. Without a cache folder it does nothing. A builder has one at a
// time, and makes it in the thread that compiles.
class Mark {
 public:
  Mark(const disk_cache::Key& key, Place place);
  ~Mark();
  Mark(const Mark&) = delete;

 private:
  std::string path_;
  int file_ = -1;
  bool is_builder_;
};

}  // namespace ocltensor::opencl::build_marks
