// Builds programs before they are needed: where a driver's compiler is slow and works on one
// program at a time, separate processes (ocltensor-builder) compile into the cache on disk what a
// model of the recognised kind is likely to need next.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl {

namespace build_ahead {

// A program that models of a kind use: the kernel's source and its defines.
struct Recipe {
  const char* kind;     // "convolution", "transformer"
  const char* source;   // "conv/direct.cl"
  const char* defines;  // "NAME VALUE; NAME VALUE"
};
// Rows of each kind are in the order of first use in a training step.
std::span<const Recipe> recipes();
// Converts "NAME VALUE; NAME VALUE" to lines as Defines::source() makes them, and back.
std::string define_lines(std::string_view one_line);
std::string on_one_line(std::string_view define_lines);

// To be called when `source` must be compiled for device `index`: the first source that identifies
// a kind of model starts the builders, once for each kind, device and process. Thread-safe, never
// throws. Without builders (switched off, a driver that compiles fast, one processor, no cache
// folder, none installed) programs are compiled when they are needed.
void program_missing(const Capabilities& caps, int index, std::string_view source) noexcept;

// A program by its kernel's source and its defines on one line.
struct Item {
  std::string source, defines;
};
// Starts builders for these programs, beginning with the last one, and returns the file that they
// read, which is to be removed when no program is missing any more. Returns "" without builders (as
// above).
std::string start_builders(const Capabilities& caps, int index,
                           std::span<const Item> items) noexcept;
void remove_list(const std::string& file) noexcept;
// While an object lives, this thread's programs are on a list: no kind of model is recognised from
// them.
class Listed {
 public:
  Listed();
  ~Listed();
  Listed(const Listed&) = delete;
};

// The programs that a builder compiles: the recipes of a kind, or "@FILE" with a list of
// start_builders().
std::vector<Item> items_of(std::string_view work);

}  // namespace build_ahead
}  // namespace ocltensor::opencl
