// ocltensor-builder DEVICE IDENTITY: compiles programs into the cache on disk, as it is asked for
// them. Started by the plugin (runtime/ahead/build_requests.h), not by users: its input must be the
// plugin's socket.
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "ocltensor/error.h"
#include "runtime/ahead/build_requests.h"
#include "runtime/ahead/builder_process.h"
#include "runtime/device/device.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

// A program that does not compile is the affair of the process that asked for it.
void build_requests(ProgramCache& programs) {
  while (const auto text = build_ahead::next_request()) try {
      programs.build_ahead(*text);
    } catch (const std::exception&) {
      continue;
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
    const auto index = static_cast<int>(std::strtol(arguments[1], nullptr, 10));
    ocltensor::check(device(index).caps().identity() == arguments[2],
                     "device {} is another one here", index);
    device(index).programs().warm_up();
    build_requests(device(index).programs());
  } catch (const std::exception&) {
    status = 1;  // the process that wants the programs compiles them itself, and reports errors
  }
  _exit(status);  // without exit handlers, in which drivers crash
}
