// Copies between host and device, between devices, and on one device.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "operator.h"
#include "runtime/allocator.h"
#include "runtime/graphs.h"
#include "runtime/stream.h"

namespace torch_ocl {
namespace {

tb_address address_of(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
}

bool is_plain(const at::Tensor& tensor) { return !tensor.is_conj() && !tensor.is_neg(); }

// A new contiguous tensor with the sizes, dtype and device of `like`.
at::Tensor contiguous_like(const at::Tensor& like) {
  return make_tensor(like.sizes(), {}, like.scalar_type(), like.device().index());
}

// Keeps pinned memory reserved until the stream has finished the copy.
void keep_pinned(const at::Tensor& host, const c10::Stream& stream) {
  at::getHostAllocator(kOcl)->record_event(host.mutable_data_ptr(),
                                           host.storage().data_ptr().get_context(), stream);
}

void upload(const at::Tensor& target, const at::Tensor& source, bool non_blocking) {
  // Converting on the host first keeps types that the device lacks off the device.
  const at::Tensor host = source.to(target.scalar_type())
                              .resolve_conj()
                              .resolve_neg()
                              .expand(target.sizes())
                              .contiguous();
  const at::Tensor staging =
      target.is_contiguous() && is_plain(target) ? target : contiguous_like(target);
  const c10::Stream stream = current_stream(target.device().index());
  // A copy to the host may still be writing to this pinned memory. Work of the same stream is
  // ordered after it, but the processor would read too early.
  const bool pinned =
      host.const_data_ptr() == source.const_data_ptr() && is_pinned(host.const_data_ptr());
  const bool asynchronous = non_blocking && pinned;
  if (pinned && !asynchronous && is_pinned_memory_in_flight(host.const_data_ptr(), stream))
    call_api("synchronize", api().stream->synchronize, handle_of(stream));
  call_api("copy to ocl", api().transfer->to_device, handle_of(stream),
           reinterpret_cast<uintptr_t>(staging.mutable_data_ptr()), host.const_data_ptr(),
           static_cast<uint64_t>(host.nbytes()), asynchronous ? uint32_t{TB_COPY_ASYNC} : 0u);
  if (asynchronous && !is_recording()) keep_pinned(host, stream);
  if (!staging.is_same(target)) copy_on_device(target, staging);
}

void download(const at::Tensor& target, const at::Tensor& source, bool non_blocking) {
  const at::Tensor device = source.resolve_conj().resolve_neg().expand(target.sizes()).contiguous();
  const c10::Stream stream = current_stream(source.device().index());
  const bool direct =
      target.is_contiguous() && is_plain(target) && target.scalar_type() == source.scalar_type();
  const at::Tensor host =
      direct ? target : at::empty(target.sizes(), device.options().device(at::kCPU));
  const bool asynchronous = non_blocking && direct && is_pinned(host.const_data_ptr());
  call_api("copy from ocl", api().transfer->to_host, handle_of(stream), host.mutable_data_ptr(),
           address_of(device), static_cast<uint64_t>(host.nbytes()),
           asynchronous ? uint32_t{TB_COPY_ASYNC} : 0u);
  if (asynchronous) keep_pinned(host, stream);
  if (!direct) target.copy_(host);
}

void between_devices(const at::Tensor& target, const at::Tensor& source) {
  const at::Tensor from = source.resolve_conj()
                              .resolve_neg()
                              .expand(target.sizes())
                              .to(target.scalar_type())
                              .contiguous();
  const at::Tensor staging =
      target.is_contiguous() && is_plain(target) ? target : contiguous_like(target);
  call_api("copy between ocl devices", api().transfer->on_device,
           current_handle(target.device().index()),
           reinterpret_cast<uintptr_t>(staging.mutable_data_ptr()),
           current_handle(source.device().index()), address_of(from),
           static_cast<uint64_t>(from.nbytes()));
  if (!staging.is_same(target)) copy_on_device(target, staging);
}

void check_has_memory(const char* direction, const at::Tensor& other) {
  TORCH_CHECK_NOT_IMPLEMENTED(!other.is_meta(), "ocl: cannot copy ", direction, " ",
                              other.device());
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  if (target.numel() == 0) return target;
  const bool from_ocl = source.device().type() == kOcl;
  const bool to_ocl = target.device().type() == kOcl;
  // As in ATen's own copies: for overlapping elements it is undefined which value would stay.
  at::assert_no_internal_overlap(target);
  if (source.device() == target.device()) at::assert_no_partial_overlap(target, source);
  if (from_ocl && to_ocl) {
    if (source.device() != target.device())
      between_devices(target, source);
    else if (source.is_alias_of(target) && !source.is_same(target))
      copy_on_device(target, source.clone());
    else
      copy_on_device(target, source);
  } else if (to_ocl) {
    check_has_memory("from", source);
    // Another accelerator's memory is out of reach: its tensors go through the CPU.
    upload(target, source.is_cpu() ? source : source.to(at::kCPU), non_blocking);
  } else if (target.is_cpu()) {
    download(target, source, non_blocking);
  } else {
    check_has_memory("to", target);
    target.copy_(source.to(at::kCPU));
  }
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, false);
}

at::Scalar local_scalar_dense(const at::Tensor& lazy) {
  const at::Tensor self = lazy.resolve_conj().resolve_neg();
  const at::Tensor host = at::empty({}, self.options().device(at::kCPU));
  call_api("item", api().transfer->to_host, current_handle(self.device().index()),
           host.mutable_data_ptr(), address_of(self), static_cast<uint64_t>(self.itemsize()), 0u);
  return at::_local_scalar_dense(host);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

// Copies receive conjugated and negated views unresolved, because resolving one is a copy itself.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace torch_ocl
