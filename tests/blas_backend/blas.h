// What the files of the BLAS backend share: refusals as exceptions, memory, counters.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "tensor_backend/stubs.h"

struct tb_stream_s {
  std::mutex order;  // calls that name one stream run one after the other
};

namespace blas {

struct Refusal {
  tb_status status;
  uint32_t reason;
  std::string text;
};
[[noreturn]] void invalid(const std::string& text);
[[noreturn]] void decline(uint32_t reason, const std::string& text);

extern std::atomic<bool> forked;

// Runs a function of the ABI: what it throws becomes its status.
template <typename Body>
tb_status guarded(tb_error* error, Body&& body) noexcept {
  try {
    if (forked) throw Refusal{TB_E_STATE, TB_REASON_NONE, "this process was forked from another"};
    body();
    return TB_OK;
  } catch (const Refusal& r) {
    return tb_stub_answer(error, r.status, r.reason, r.text.c_str());
  } catch (const std::bad_alloc&) {
    return tb_stub_answer(error, TB_E_OUT_OF_MEMORY, 0, "the host has no memory left");
  } catch (...) {
    return tb_stub_answer(error, TB_E_INTERNAL, 0, "a defect of the BLAS backend");
  }
}

void check_device(int32_t device);
tb_stream_s& check_stream(tb_stream stream);
template <typename T>
T& check_handle(T* handle) {
  if (handle == nullptr) invalid("a handle is NULL");
  return *handle;
}
template <typename T>
void check_size(const T* structure, uint32_t least) {
  if (structure == nullptr || structure->struct_size < least)
    invalid("a structure is NULL, or smaller than its first version");
}

// The host memory behind [address, address + bytes), which lies in one live allocation.
char* translate(tb_address address, uint64_t bytes);

struct Counters {
  std::atomic<uint64_t> operators{0}, copies{0}, copied_bytes{0};
};
extern Counters counters;

void fill_memory(tb_plugin_api& plugin);
void fill_streams(tb_plugin_api& plugin);
void fill_operators(tb_operator_api& table);

}  // namespace blas
