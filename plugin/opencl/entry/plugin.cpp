// The plugin's two exports.
#include "base/config.h"
#include "base/log.h"
#include "entry.h"
#include "ocltensor/error.h"
#include "runtime/observe/profile_settings.h"
#include "switch_checks.h"

#define TB_EXPORT extern "C" __attribute__((visibility("default")))

namespace ocltensor::opencl {
namespace {

constexpr tb_api kApi{
    .struct_size = sizeof(tb_api),
    .abi_major = TB_ABI_MAJOR,
    .abi_minor = TB_ABI_MINOR,
    .device = &kDeviceApi,
    .stream = &kStreamApi,
    .event = &kEventApi,
    .memory = &kMemoryApi,
    .transfer = &kTransferApi,
    .operators = &kOperatorApi,
    .generator = &kGeneratorApi,
    .kernel = &kKernelApi,
    .profiler = &kProfilerApi,
    .capture = &kCaptureApi,
    .switches = &kSwitchApi,
    .interop = &kInteropApi,
    .graph = &kGraphApi,
};

}  // namespace
}  // namespace ocltensor::opencl

TB_EXPORT const tb_plugin_descriptor_t tb_plugin_descriptor = {TB_PLUGIN_MAGIC,
                                                               sizeof(tb_plugin_descriptor_t),
                                                               TB_ABI_MAJOR,
                                                               TB_ABI_MINOR,
                                                               "ocl",
                                                               "ocltensor",
                                                               OCLTENSOR_VERSION};

TB_EXPORT tb_status tb_plugin_get_api(uint32_t abi_major, const tb_host_api* host, tb_error* error,
                                      const tb_api** api) {
  using namespace ocltensor;
  return guarded(error, [&] {
    opencl::required(api, "api");
    *api = nullptr;
    if (abi_major != TB_ABI_MAJOR)
      fail(TB_E_ABI, "this plugin serves ABI major {}, the host asks for {}", TB_ABI_MAJOR,
           abi_major);
    if (host != nullptr) {
      if (host->struct_size < TB_HOST_API_SIZE_V1 || host->abi_major != TB_ABI_MAJOR)
        fail(TB_E_ABI,
             "the host's table has struct_size {} and ABI major {}, expected at least {} and {}",
             host->struct_size, host->abi_major, TB_HOST_API_SIZE_V1, TB_ABI_MAJOR);
      if (host->log != nullptr) logging::set_sink(host->log, host->context);
    }
    config::validate();
    opencl::check_lists();
    opencl::profiler::apply_environment();
    *api = &opencl::kApi;
  });
}
