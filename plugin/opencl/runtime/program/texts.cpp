// What the compiler is given for a program: a kernel source with its defines, or a user's text.
#include <fmt/format.h>

#include "base/config.h"
#include "kernel_reads.h"
#include "program.h"
#include "runtime/driver/caps.h"
#include "source.h"

namespace ocltensor::opencl {
// What the plugin's headers and kernels are told of the device, so that launchers need not.
std::string ProgramCache::prefix() const {
  std::string lines =
      caps_.style == KernelStyle::Cpu ? "#define CPU_STYLE 1\n" : "#define CPU_STYLE 0\n";
  if (caps_.steps_at_once < kAllSteps)
    lines += fmt::format("#define STEPS_AT_ONCE {}\n", caps_.steps_at_once);
  lines += fmt::format("#define COPIES_STRUCTURES {:d}\n", !caps_.indexed_structures);
  return lines;
}

ProgramText ProgramCache::text_of(const Source& source, const Defines& defines) const {
  const bool outlined = caps_.outlined_kernels && caps_.style == KernelStyle::Cpu && is_embedded();
  const std::string lines = defines.source();
  const std::string head = fmt::format("#define OUTLINED {:d}\n", outlined) + prefix() + lines;
  if (checks_defines()) {
    refuse_unread(source, lines);
    refuse_missing(source, head);
  }
  ProgramText text{source.path, defines.line(), without_hidden(caps_, head + expand(source)),
                   caps_.build_options, TextOrigin::Plugin};
  // OpenCL C allows 2.5 ulp for a division, and x / x below 1: trunc(x / x) would be 0.
  if (config::get_bool(config::Knob::FastMath))
    text.options += " -cl-fast-relaxed-math";
  else if (caps_.exact_division)
    text.options += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (!caps_.structs_by_value) text.source = structures_in_memory(text.source);
  return text;
}

ProgramText ProgramCache::text_of(const std::string& given, const std::string& options) const {
  const GivenText text = expand_given(given, prefix());
  const bool has_files = text.includes_files || options.find("-include") != std::string::npos;
  return {kGivenText, options, without_hidden(caps_, text.source),
          caps_.build_options + " -cl-kernel-arg-info" + (options.empty() ? "" : " ") + options,
          has_files ? TextOrigin::WithFiles : TextOrigin::Given};
}

}  // namespace ocltensor::opencl
