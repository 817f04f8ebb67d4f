// The entry points of an OpenCL layer (OPENCL_LAYERS) for tests. To be included once in its
// library, which defines replace_entries().
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <cstring>

static cl_icd_dispatch target;  // the driver's functions
static cl_icd_dispatch layer;   // those that programs get: the same but for what is replaced

// Puts functions of the layer's own into `layer`.
static void replace_entries();

extern "C" {

__attribute__((visibility("default"))) cl_int clGetLayerInfo(cl_layer_info what, size_t capacity,
                                                             void* value, size_t* size) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (size != nullptr) *size = sizeof version;
  if (value != nullptr && capacity >= sizeof version) std::memcpy(value, &version, sizeof version);
  return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int clInitLayer(cl_uint entries,
                                                          const cl_icd_dispatch* below,
                                                          cl_uint* entries_out,
                                                          const cl_icd_dispatch** above) {
  const size_t bytes = entries * sizeof(void*);
  std::memcpy(static_cast<void*>(&target), below, bytes < sizeof target ? bytes : sizeof target);
  layer = target;
  replace_entries();
  *entries_out = sizeof layer / sizeof(void*) < entries ? sizeof layer / sizeof(void*) : entries;
  *above = &layer;
  return CL_SUCCESS;
}

}  // extern "C"
