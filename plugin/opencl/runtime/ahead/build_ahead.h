// Building ahead of need: where a driver's compiler is slow and works on one program at a time,
// processes of their own (ocltensor-builder) compile what a model of the kind that has just begun
// is likely to ask for next, into the cache on disk.
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
// Each kind in the order of a training step's first use.
std::span<const Recipe> recipes();
// "NAME VALUE; NAME VALUE" as Defines::source() gives it, and back.
std::string define_lines(std::string_view one_line);
std::string on_one_line(std::string_view define_lines);

// To be called when `source` must be compiled for device `index`: the first one that tells what
// kind of model this is starts the builders, once for each kind, device and process. Thread-safe,
// never throws. Without builders (switched off, a driver that compiles fast, one processor, no
// cache folder, none installed) programs are compiled when they are needed, as ever.
void program_missing(const Capabilities& caps, int index, std::string_view source) noexcept;

// A program by its kernel's source and its defines on one line.
struct Item {
  std::string source, defines;
};
// Starts builders for these programs, the first of them last, and returns the file that they read,
// to be removed when nothing is missing any more. Without builders (as above): nothing, and "".
std::string start_builders(const Capabilities& caps, int index,
                           std::span<const Item> items) noexcept;
void remove_list(const std::string& file) noexcept;
// While one lives, this thread asks for what is on a list: no kind of model is guessed from it.
class Listed {
 public:
  Listed();
  ~Listed();
  Listed(const Listed&) = delete;
};

// What a builder is to compile: the recipes of a kind, or "@FILE" with a list of start_builders().
std::vector<Item> items_of(std::string_view work);

}  // namespace build_ahead
}  // namespace ocltensor::opencl
