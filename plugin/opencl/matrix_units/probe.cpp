// Asks a driver's compiler for a unit's built-in functions, by a program of one product of
// fragments for each kind. What it answered is kept on disk.
#include "device_facts.h"
#include "kernels/matrix_units.h"
#include "runtime/driver/clhpp.h"
#include "runtime/program/disk_cache.h"
#include "unit_defines.h"

namespace ocltensor::opencl::matrix_units {
namespace {

bool compiles(const cl::Context& context, const cl::Device& device, const std::string& text,
              const std::string& options) {
  cl_int code = CL_SUCCESS;
  const cl::Program program(context, text, false, &code);
  return code == CL_SUCCESS && program.build(device, options.c_str()) == CL_SUCCESS;
}

}  // namespace

Kinds probe(const cl::Device& device, const Capabilities& caps, const Architecture& architecture) {
  cl_int code = CL_SUCCESS;
  cl::Context context;  // made where the cache does not know the answer
  Kinds known = 0;
  for (size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    if (!has(architecture.kinds, kind)) continue;
    constexpr int64_t kFragment = 32;  // of MFMA, which has others where it has these
    Defines d;
    set_unit(d, architecture, false, kFragment, kind);
    const std::string text = d.source() + expand(kernel_sources::matrix_units_probe);
    const std::string of = caps.identity() + "\n" + text;
    const disk_cache::Key yes = disk_cache::key_of("compiles\n" + of);
    const disk_cache::Key no = disk_cache::key_of("does not compile\n" + of);
    bool is_known = disk_cache::contains(yes);
    if (!is_known && !disk_cache::contains(no)) {
      if (context() == nullptr) context = cl::Context(device, nullptr, nullptr, nullptr, &code);
      if (code != CL_SUCCESS) return 0;
      is_known = compiles(context, device, text, caps.build_options);
      disk_cache::store(is_known ? yes : no, {'o', 'k'});
    }
    if (is_known) known |= set_of(kind);
  }
  return known;
}

}  // namespace ocltensor::opencl::matrix_units
