// Building ahead of need: where a driver's compiler is slow and works on one program at a time,
// processes of their own (ocltensor-builder) compile what a model of the kind that has just begun
// is likely to ask for next, into the cache on disk.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "capabilities.h"

namespace ocltensor::opencl {

class ProgramCache;

namespace build_ahead {

// A program that models of a kind use: the kernel's source and its defines.
struct Recipe {
  const char* kind;     // "convolution", "transformer"
  const char* source;   // "conv/direct.cl"
  const char* defines;  // "NAME VALUE; NAME VALUE"
};
// Each kind in the order of a training step's first use.
std::span<const Recipe> recipes();
// As Defines::source() gives them.
std::string define_lines(const Recipe& recipe);

// To be called when `source` must be compiled for device `index`: the first one that tells what
// kind of model this is starts the builders, once for each kind, device and process. Thread-safe,
// never throws. Without builders (switched off, a driver that compiles fast, one processor, no
// cache folder, none installed) programs are compiled when they are needed, as ever.
void program_missing(const Capabilities& caps, int index, std::string_view source) noexcept;

// What a builder does: compiles the recipes of a kind, last ones first (the process that wants them
// comes from the other end), but for those that are on disk or that another process compiles, for
// as long as `wanted` says so.
void build(ProgramCache& programs, std::string_view kind, bool (*wanted)());

}  // namespace build_ahead
}  // namespace ocltensor::opencl
