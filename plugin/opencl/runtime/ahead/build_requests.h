// Programs that launches wait for, asked of builder processes as the host meets them: they compile
// side by side while the host goes on.
#pragma once

#include <memory>
#include <optional>

#include "runtime/ahead/program_text.h"
#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl::build_ahead {

// Asks a builder to compile a program into the cache on disk. The third request of a device starts
// its builders, which end when nothing has been asked of them for some seconds. Returns whether
// there are builders: none if they are switched off, on a single processor, without a cache folder,
// or if they cannot be run. Thread-safe, never throws.
bool request(const Capabilities& caps, int index, std::shared_ptr<const ProgramText> text) noexcept;

// Starts the device's builders before the first request, as their contexts take a while. Returns at
// once if there can be none. Thread-safe, never throws.
void expect_requests(const Capabilities& caps, int index) noexcept;
// Whether expect_requests() has started builders.
bool are_expected();

// Has a builder of its own compile a program into the cache on disk, and waits until it has: for
// the end of the process, when nothing is compiled in it. What went wrong is logged. Never throws.
void build_elsewhere(const Capabilities& caps, int index, const ProgramText& text) noexcept;

// For the builder: waits for the next request; empty if none came for some seconds, or the process
// that asked has ended.
std::optional<ProgramText> next_request();

}  // namespace ocltensor::opencl::build_ahead
