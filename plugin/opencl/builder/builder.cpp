// ocltensor-builder WORK DEVICE: compiles programs into the cache on disk: those that a kind of
// model needs, or those of a list. Started by the plugin (runtime/ahead/build_ahead.h), not by
// users: its input must be the plugin's pipe.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <span>

#include "kernel_sources.h"
#include "ocltensor/error.h"
#include "runtime/ahead/build_ahead.h"
#include "runtime/ahead/builder_process.h"
#include "runtime/device/device.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

// The last ones first, as the process that wants them begins at the other end; but for those that
// are on disk, or that another process compiles.
void build(ProgramCache& programs, std::span<const build_ahead::Item> items) {
  const auto& all = kernel_sources::all();
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    if (!build_ahead::is_wanted()) return;
    const auto source =
        std::ranges::find_if(all, [&](const Source* s) { return item->source == s->path; });
    check(source != all.end(), "there is no kernel source {}", item->source);
    programs.build_ahead(**source, build_ahead::define_lines(item->defines));
  }
}

}  // namespace
}  // namespace ocltensor::opencl

int main(int count, char** arguments) {
  using namespace ocltensor::opencl;
  if (count != 3) return 2;
  build_ahead::detach();
  int status = 0;
  try {
    const auto index = static_cast<int>(std::strtol(arguments[2], nullptr, 10));
    build(device(index).programs(), build_ahead::items_of(arguments[1]));
  } catch (const std::exception&) {
    status = 1;  // the process that wants the programs compiles them itself, and reports errors
  }
  _exit(status);  // without exit handlers, in which drivers crash
}
