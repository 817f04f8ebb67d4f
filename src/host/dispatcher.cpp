// One operator call: device, inference, outputs, the backend, and fallback where it declines.
#include "dispatcher.h"

#include <fmt/format.h>

#include "base/promotion.h"
#include "fallback.h"
#include "pack.h"
#include "storage.h"

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
using detail::Overlap;
using detail::TensorImpl;

constexpr size_t kMaxOuts = 8;

bool is_pointwise(const Operator& op) { return op.family == std::string_view("pointwise"); }

// The device of the call. 0-dimensional CPU tensors of pointwise operators go where the others
// are; `mixed` tells that there are some.
Device device_of(const Operator& op, std::span<const tb_value> args, const CallOptions& options,
                 bool* mixed) {
  const TensorImpl* first = nullptr;
  const TensorImpl* scalar = nullptr;  // a 0-dimensional CPU tensor
  for_each_tensor(args, [&](size_t, const TensorImpl& t) {
    if (is_pointwise(op) && t.ndim == 0 && t.device.is_cpu())
      scalar = &t;
    else if (first == nullptr)
      first = &t;
    else
      check(first->device == t.device,
            "{}: all tensors must be on one device, got one on {} and one on {}", op.name,
            first->device.text(), t.device.text());
  });
  if (first == nullptr)
    return scalar != nullptr ? scalar->device : options.device.value_or(Device());
  *mixed = scalar != nullptr && !first->device.is_cpu();
  return first->device;
}

// A generator of another device is a handle that the call's backend would take for one of its own.
void check_generators(const Operator& op, std::span<const tb_value> args, Device device) {
  if ((op.flags & kRandom) == 0) [[likely]]
    return;
  for (const tb_value& v : args) {
    if (v.tag != TB_GENERATOR || v.count == detail::device_mark(device)) continue;
    const auto owner = Device::from_backend(static_cast<uint8_t>((v.count - 1) >> 16),
                                            static_cast<int>((v.count - 1) & 0xffff));
    fail(TB_E_INVALID, "{}: the generator is of {}, the call runs on {}: use a generator of {}",
         op.name, owner.text(), device.text(), device.text());
  }
}

// The arguments with 0-dimensional CPU tensors brought to `device`: as a number where promotion
// cannot tell the difference, else as a tensor.
class LocalArgs {
 public:
  LocalArgs(std::span<const tb_value> args, Device device) {
    bool all_dimensioned = true, floating = false;
    for_each_tensor(args, [&](size_t, const TensorImpl& t) {
      if (t.device.is_cpu()) return;
      all_dimensioned &= t.ndim > 0;
      floating |= is_floating(t.type) || is_complex(t.type);
    });
    values_.assign(args.begin(), args.end());
    for (tb_value& v : values_) {
      if (v.tag != TB_TENSOR) continue;
      const TensorImpl& t = detail::impl_of(static_cast<const tb_tensor*>(v.as.p));
      if (!t.device.is_cpu()) continue;
      const Tensor scalar = detail::make_tensor(t.storage, t.shape, t.steps, t.offset, t.type);
      const bool same_promotion =
          all_dimensioned && (t.type == DType::Bool || t.type == DType::Int64 ||
                              t.type == DType::Float32 || (t.type == DType::Float64 && floating));
      if (same_promotion) {
        v = scalar.item().to_value();
      } else {
        kept_.push_back(scalar.to(device));
        v.as.p = &kept_.back().abi();
      }
    }
  }
  std::span<const tb_value> values() const { return values_; }

 private:
  std::vector<tb_value> values_;
  std::vector<Tensor> kept_;  // handles may move, the tensors they hold do not
};

// May the operator write into `out` directly? False: into a temporary. Throws where the result
// would depend on the order of execution.
bool may_write(const Operator& op, const Tensor& out, const TensorSpec& spec,
               std::span<const tb_value> args) {
  const TensorImpl& o = *out.impl();
  check(!has_internal_overlap(o.shape, o.steps),
        "{}: the output of shape {} and strides {} names an element twice: clone() it first",
        op.name, to_string(o.shape), to_string(o.steps));
  bool direct = o.type == spec.dtype;
  for_each_tensor(args, [&](size_t i, const TensorImpl& t) {
    switch (detail::overlap(o, t)) {
      case Overlap::None: break;
      case Overlap::Same: direct &= is_pointwise(op); break;
      case Overlap::Maybe: direct = false; break;
      case Overlap::Partial:
        fail(TB_E_INVALID,
             "{}: the output overlaps a part of argument '{}': clone() one of them first", op.name,
             op.schema.inputs[i].name);
    }
  });
  return direct;
}

// Checks a given output and gives it its shape.
void prepare_out(const Operator& op, const Tensor& out, const TensorSpec& spec, Device device,
                 const CallOptions& options) {
  check(out.device() == device, "{}: the output is on {}, the arguments are on {}", op.name,
        out.device().text(), device.text());
  check(can_cast(spec.dtype, out.dtype()),
        "{}: the result of type {} cannot be written to an output of type {}", op.name,
        name(spec.dtype), name(out.dtype()));
  if (std::ranges::equal(out.sizes(), spec.sizes)) return;
  check(!options.in_place, "{}: the result of shape {} does not fit in place into shape {}",
        op.name, to_string(spec.sizes), to_string(out.sizes()));
  out.resize_(spec.sizes);
}

void check_apart(const Operator& op, std::span<const Tensor> outs) {
  for (size_t i = 0; i < outs.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (outs[i].defined() && outs[k].defined())
        check(detail::overlap(*outs[i].impl(), *outs[k].impl()) == Overlap::None,
              "{}: outputs {} and {} share memory", op.name, k, i);
}

void run(const Operator& op, const Stream& stream, std::span<const tb_value> args,
         std::span<Tensor> outs, const CallOptions& options) {
  const Device device = stream.device();
  std::vector<TensorSpec> specs = op.infer(Args(op.schema, args));
  const bool dynamic = (op.flags & kDataDependentShape) != 0;
  Tensor targets[kMaxOuts];  // what the backend writes to
  const tb_tensor* abi[kMaxOuts];
  check(outs.size() == op.schema.outputs.size() && specs.size() == outs.size() &&
            outs.size() <= kMaxOuts,
        "{} has {} outputs, got {}", op.name, op.schema.outputs.size(), outs.size());
  check_apart(op, outs);
  for (size_t i = 0; i < outs.size(); ++i) {
    TensorSpec& spec = specs[i];
    if (options.dtype) spec.dtype = *options.dtype;
    if (dynamic && !spec.sizes.empty()) spec.sizes[0] = 0;  // until the backend knows
    if (outs[i].defined() && !dynamic) prepare_out(op, outs[i], spec, device, options);
    if (outs[i].defined() && !dynamic && may_write(op, outs[i], spec, args))
      targets[i] = outs[i];
    else
      targets[i] = detail::allocate_tensor(spec.sizes, spec.strides, spec.dtype, stream);
    detail::note_use(*targets[i].impl(), stream);
    abi[i] = &targets[i].abi();
  }
  for_each_tensor(args, [&](size_t, const TensorImpl& t) { detail::note_use(t, stream); });

  // Resized outputs replace their entries while `abi` still points to the first ones.
  Tensor first[kMaxOuts];
  if (dynamic) std::copy(targets, targets + outs.size(), first);
  detail::Resizer resizer{{targets, outs.size()}, &stream};
  ErrorBuffer error;
  Backend& where = backend(device);
  const tb_status status = detail::invoke(where, op, stream, args, {abi, outs.size()},
                                          dynamic ? &resizer : nullptr, error);
  if (status == TB_UNSUPPORTED) {
    detail::fall_back(op, device, args, {targets, outs.size()}, {error.reason(), error.text()});
  } else if (status != TB_OK) {
    throw Error(
        status, error.reason(),
        fmt::format("{} on {}: {}", detail::describe(op, args), device.text(), error.text()),
        error.get()->native);
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!outs[i].defined()) {
      outs[i] = std::move(targets[i]);
    } else if (outs[i].impl() != targets[i].impl()) {
      if (dynamic) {
        specs[i].sizes = Dims(targets[i].sizes());
        prepare_out(op, outs[i], specs[i], device, options);
      }
      outs[i].copy_(targets[i]);
    }
  }
}

}  // namespace

void call(const Operator& op, const Stream& stream, std::span<const tb_value> args,
          std::span<Tensor> outs, const CallOptions& options) {
  bool mixed = false;
  const Device device = device_of(op, args, options, &mixed);
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
