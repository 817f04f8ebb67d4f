// One operator call: describes its tensors to base/call_plan.h, calls the backend, and falls back
// to the CPU if the backend declines.
#include "dispatcher.h"

#include <fmt/format.h>

#include <list>

#include "base/layouts.h"
#include "fallback.h"
#include "host/core/named_errors.h"
#include "host/core/storage.h"
#include "pack.h"
#include "record.h"

namespace ocltensor {
namespace detail {

void note_use(const TensorImpl& t, const Stream& stream) {
  if (t.storage->stream == stream || t.base == 0 || t.storage->is_pinned()) [[likely]]
    return;
  invoke_api("record_use", backend(t.device).api->memory->record_use, t.base, stream.handle());
}

tb_status invoke(Backend& backend, const Operator& op, const Stream& stream,
                 std::span<const tb_value> args, std::span<const tb_tensor* const> outs,
                 Resizer* resizer, ErrorBuffer& error) {
  const tb_op found = backend.find(op);
  if (found == nullptr) {
    return report(error.get(), TB_UNSUPPORTED, TB_REASON_OPERATOR, 0,
                  fmt::format("the {} backend has no operator {}", backend.type, op.name).c_str());
  }
  const tb_resize_out resize = [](void* context, uint32_t index, const int64_t* sizes,
                                  uint32_t ndim, tb_tensor* tensor) {
    return guarded(nullptr, [&] {
      auto& r = *static_cast<Resizer*>(context);
      check(index < r.outs.size(), "there is no output {}", index);
      Tensor& out = r.outs[index];
      out = allocate_tensor(Dims(std::span(sizes, ndim)), {}, out.dtype(), *r.stream);
      const uint32_t size = std::min<uint32_t>(tensor->struct_size, sizeof(tb_tensor));
      std::memcpy(tensor, &out.abi(), size == 0 ? sizeof(tb_tensor) : size);
      tensor->struct_size = size == 0 ? sizeof(tb_tensor) : size;
    });
  };
  tb_call call{};
  call.struct_size = sizeof call;
  call.op = found;
  call.stream = stream.handle();
  call.args = args.data();
  call.outs = outs.data();
  call.arg_count = static_cast<uint32_t>(args.size());
  call.out_count = static_cast<uint32_t>(outs.size());
  call.resize_out = resizer == nullptr ? nullptr : resize;
  call.resize_context = resizer;
  return backend.api->operators->invoke(&call, error.get());
}

std::string describe(const Operator& op, std::span<const tb_value> args) {
  std::string text;
  for_each_tensor(args, [&](size_t, const TensorImpl& t) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name(t.type), to_string(t.shape));
  });
  return fmt::format("{}({})", op.name, text);
}

}  // namespace detail

namespace {

using detail::for_each_tensor;
using detail::TensorImpl;

// The device of the call: that of its tensors, else of a given output, else options.device.
// `mixed`: scalar tensors have to be copied there.
Device device_of(const Operator& op, std::span<const tb_value> args, std::span<const Tensor> outs,
                 const CallOptions& options, bool* mixed) {
  const TensorImpl* first = nullptr;
  bool scalars = false;
  for_each_tensor(args, [&](size_t, const TensorImpl& t) {
    if (t.device.is_cpu() && t.ndim == 0 && takes_scalar_tensors(op))
      scalars = true;
    else if (first == nullptr)
      first = &t;
    else if (first->device != t.device)
      refuse_devices(op.name, first->device.text(), t.device.text());
  });
  Device device;
  if (first != nullptr)
    device = first->device;
  else if (!outs.empty() && outs[0].defined())
    device = outs[0].device();
  else if (!scalars)
    device = options.device ? *options.device : default_device();
  *mixed = scalars && !device.is_cpu();
  return device;
}

// Refuses a generator of another device: the backend would use its handle as one of its own.
void check_generators(const Operator& op, std::span<const tb_value> args, Device device) {
  if (!op.is(kRandom)) [[likely]]
    return;
  for (const tb_value& v : args) {
    if (v.tag != TB_GENERATOR || v.count == detail::device_mark(device)) continue;
    const auto owner = Device::from_backend(static_cast<uint8_t>((v.count - 1) >> 16),
                                            static_cast<int>((v.count - 1) & 0xffff));
    fail(TB_E_INVALID, "{}: the generator is of {}, the call runs on {}: use a generator of {}",
         op.name, owner.text(), device.text(), device.text());
  }
}

// The arguments, with scalar tensors replaced by numbers or by tensors on `device`.
class LocalArgs {
 public:
  LocalArgs(std::span<const tb_value> args, Device device) : values_(args.begin(), args.end()) {
    ScalarTensorRule rule;
    for_each_tensor(args, [&](size_t, const TensorImpl& t) {
      if (!t.device.is_cpu()) rule.add(t.ndim, t.type);
    });
    for (tb_value& v : values_) {
      if (v.tag != TB_TENSOR) continue;
      const TensorImpl& t = detail::impl_of(static_cast<const tb_tensor*>(v.as.p));
      if (!t.device.is_cpu()) continue;
      const Tensor scalar = detail::make_tensor(t.storage, t.shape, t.steps, t.offset, t.type);
      if (rule.is_number(t.type))
        v = numbers_.emplace_back(scalar.item()).to_value();
      else
        v.as.p = &kept_.emplace_back(scalar.to(device)).abi();
    }
  }
  std::span<const tb_value> values() const { return values_; }

 private:
  std::vector<tb_value> values_;
  std::list<Scalar> numbers_;  // complex values point to them
  std::vector<Tensor> kept_;   // values point to what these hold, which stays in place
};

// What run_with_outputs() needs from this host.
class HostCall {
 public:
  HostCall(const Operator& op, const Stream& stream, std::span<const tb_value> args,
           std::span<Tensor> outs)
      : op_(op), stream_(stream), args_(args), outs_(outs) {}

  const tb_tensor* given(size_t i) const {
    if (!outs_[i].defined()) return nullptr;
    const Device device = stream_.device();
    if (outs_[i].device() != device)
      refuse_output_device(op_.name, outs_[i].device().text(), device.text());
    return &outs_[i].abi();
  }
  bool is_writable(size_t) const { return true; }
  void resize(size_t i, const TensorSpec& spec) {
    outs_[i].resize_(spec.sizes);
    TensorImpl& t = *outs_[i].impl();
    if (!spec.strides.empty())
      detail::reset_tensor(t, t.storage, spec.sizes, spec.strides, t.offset, t.type);
  }
  void use(size_t i) {
    targets_[i] = outs_[i];
    detail::note_use(*targets_[i].impl(), stream_);
  }
  void make(size_t i, const TensorSpec& spec) {
    targets_[i] = detail::allocate_tensor(spec.sizes, spec.strides, spec.dtype, stream_);
  }
  void run();
  std::span<const int64_t> target_sizes(size_t i) const { return targets_[i].sizes(); }
  void store(size_t i) { outs_[i].copy_(targets_[i]); }
  void take(size_t i) { outs_[i] = std::move(targets_[i]); }

 private:
  const Operator& op_;
  const Stream& stream_;
  std::span<const tb_value> args_;
  std::span<Tensor> outs_;
  Tensor targets_[kMostOutputs];  // what the backend writes to
};

void HostCall::run() {
  for_each_tensor(args_, [&](size_t, const TensorImpl& t) { detail::note_use(t, stream_); });
  const std::span<Tensor> targets(targets_, outs_.size());
  const tb_tensor* abi[kMostOutputs];
  for (size_t i = 0; i < targets.size(); ++i) abi[i] = &targets[i].abi();
  // A resized output replaces its entry in `targets_`, while `abi` still points to the first one.
  const bool dynamic = op_.is(kDataDependentShape);
  Tensor first[kMostOutputs];
  if (dynamic) std::ranges::copy(targets, first);
  detail::Resizer resizer{targets, &stream_};
  const Device device = stream_.device();
  ErrorBuffer error;
  const tb_status status =
      detail::invoke(backend(device), op_, stream_, args_, {abi, targets.size()},
                     dynamic ? &resizer : nullptr, error);
  if (status == TB_UNSUPPORTED)
    detail::fall_back(op_, device, args_, targets, {error.reason(), error.text()});
  else if (status != TB_OK)
    raise(status, error.reason(),
          fmt::format("{} on {}: {}", detail::describe(op_, args_), device.text(), error.text()),
          error.get()->native);
}

void run(const Operator& op, const Stream& stream, std::span<const tb_value> args,
         std::span<Tensor> outs, const CallOptions& options) {
  std::vector<TensorSpec> specs =
      detail::naming(op.name, [&] { return op.infer(Args(op.schema, args)); });
  check(outs.size() == op.schema.outputs.size() && specs.size() == outs.size() &&
            outs.size() <= kMostOutputs,
        "{} has {} outputs, got {}", op.name, op.schema.outputs.size(), outs.size());
  if (options.dtype)
    for (TensorSpec& spec : specs) spec.dtype = *options.dtype;
  const auto is_given = [](const Tensor& out) { return out.defined(); };
  if (std::ranges::none_of(outs, is_given)) lay_out(op, Args(op.schema, args), specs);
  detail::count_changes(op, args, outs);
  HostCall host(op, stream, args, outs);
  run_with_outputs(op, options.in_place ? OutputMode::Keep : OutputMode::Resize, args, specs, host);
}

}  // namespace

void call(const Operator& op, const Stream& stream, std::span<const tb_value> args,
          std::span<Tensor> outs, const CallOptions& options) {
  if (detail::may_record() && detail::needs_recording(args)) [[unlikely]] {
    detail::Recording recording(op, args, outs, options.in_place);
    {
      const NoGrad off;
      call(op, stream, args, outs, options);
    }
    return recording.finish(outs);
  }
  bool mixed = false;
  const Device device = device_of(op, args, outs, options, &mixed);
  check(args.size() == op.schema.inputs.size(), "{} takes {} arguments, got {}", op.name,
        op.schema.inputs.size(), args.size());
  check_generators(op, args, device);
  const Stream& used = stream ? stream : current_stream(device);
  check(used.device() == device, "{}: the stream is of {}, the arguments are on {}", op.name,
        used.device().text(), device.text());
  if (mixed) [[unlikely]] {
    const LocalArgs local(args, device);
    return run(op, used, local.values(), outs, options);
  }
  run(op, used, args, outs, options);
}

void call(const Operator& op, std::span<const tb_value> args, std::span<Tensor> outs,
          const CallOptions& options) {
  call(op, Stream(), args, outs, options);
}

}  // namespace ocltensor
