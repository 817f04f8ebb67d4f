// ocltensor-builder WORK DEVICE: compiles programs into the cache on disk: those that a kind of
// model needs, or those of a list. Started by the plugin (runtime/ahead/build_ahead.h), not by
// users: its input must be the plugin's pipe.
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "runtime/ahead/build_ahead.h"
#include "runtime/ahead/builder_process.h"
#include "runtime/device/device.h"

int main(int count, char** arguments) {
  using namespace ocltensor::opencl;
  if (count != 3) return 2;
  build_ahead::detach();
  int status = 0;
  try {
    const auto index = static_cast<int>(std::strtol(arguments[2], nullptr, 10));
    build_ahead::build(device(index).programs(), build_ahead::items_of(arguments[1]),
                       build_ahead::is_wanted);
  } catch (const std::exception&) {
    status = 1;  // whoever wants the programs compiles them, and reports
  }
  _exit(status);  // drivers crash in exit handlers
}
