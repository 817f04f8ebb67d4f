// Makes tensors and calls.
#include "work.h"

#include <cstring>

#include "ops/registry.h"

namespace ocltensor::opencl::tuning {
namespace {

// A linear congruential generator is random enough to show numbers in wrong places.
float next_number(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return static_cast<float>(state >> 8) * 0x1p-23f - 1;
}

std::vector<std::byte> random_bytes(DType type, int64_t count, uint32_t seed) {
  std::vector<std::byte> bytes(static_cast<size_t>(count * size_of(type)));
  const auto fill = [&](auto convert) {
    auto at = bytes.begin();
    for (int64_t i = 0; i < count; ++i) {
      const auto number = convert(next_number(seed));
      std::memcpy(&*at, &number, sizeof number);
      at += sizeof number;
    }
  };
  switch (type) {
    case DType::Float16: fill([](float x) { return float_to_half(x); }); break;
    case DType::BFloat16: fill([](float x) { return float_to_bfloat16(x); }); break;
    case DType::Float64: fill([](float x) { return static_cast<double>(x); }); break;
    default: fill([](float x) { return x; });
  }
  return bytes;
}

}  // namespace

Work::Work(Device& device) : device_(device), stream_(device.create_stream()) {}

Work::~Work() {
  memory_.clear();
  try {
    stream_.synchronize(false);
    device_.destroy_stream(stream_);
  } catch (const Error&) {  // the device is lost: its streams are, too
  }
}

TensorView Work::allocate(DType type, const Dims& sizes, const Dims& strides) {
  memory_.emplace_back(stream_, static_cast<uint64_t>(numel(sizes) * size_of(type)));
  tensors_.emplace_back(memory_.back().address(), type, sizes,
                        strides.empty() ? contiguous_strides(sizes) : strides);
  return tensors_.back().view();
}

TensorView Work::random(DType type, const Dims& sizes, const Dims& strides) {
  const TensorView tensor = allocate(type, sizes, strides);
  const std::vector<std::byte> bytes = random_bytes(type, numel(sizes), seed_++);
  const Place place = resolve(tensor.address(), 0, static_cast<int64_t>(bytes.size()));
  stream_.write(place.buffer, place.offset, bytes.data(), bytes.size(), false);
  return tensor;
}

std::vector<TensorView> Work::call(std::string_view name, std::span<const tb_value> arguments,
                                   const Policy& policy) {
  const tb_op_s* entry = find_in_registry(name);
  check(entry != nullptr, "there is no operator {}", name);
  std::vector<TensorView> outs;
  std::vector<const tb_tensor*> raw;
  for (const TensorSpec& spec : entry->op->infer({entry->op->schema, arguments})) {
    outs.push_back(allocate(spec.dtype, spec.sizes, spec.strides));
    raw.push_back(&outs.back().raw());
  }
  const tb_call call{.struct_size = sizeof(tb_call),
                     .flags = 0,
                     .op = entry,
                     .stream = nullptr,
                     .args = arguments.data(),
                     .outs = raw.data(),
                     .arg_count = static_cast<uint32_t>(arguments.size()),
                     .out_count = static_cast<uint32_t>(raw.size()),
                     .resize_out = nullptr,
                     .resize_context = nullptr};
  OpCall op_call(call, *entry->op, stream_, false, *entry, policy);
  entry->run(op_call);
  stream_.synchronize();
  return outs;
}

}  // namespace ocltensor::opencl::tuning
