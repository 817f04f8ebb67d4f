// A table of each thread: a key's hash is the slot of its plan.
#include "plans.h"

#include <cstring>

#include "base/log.h"
#include "base/pointwise.h"
#include "base/thread_owned.h"

namespace ocltensor::opencl::pointwise {
namespace {

constexpr int kTableBits = 8;

struct Entry {
  std::vector<uint64_t> key;
  PlannedCall planned;
};
struct Slot {
  uint64_t missed = 0;  // the hash of the last key that had no plan
  std::unique_ptr<Entry> entry;
};
struct Table {
  std::array<Slot, 1 << kTableBits> slots;
};

Slot& slot_of(uint64_t hash) {
  thread_local Table* own = nullptr;
  return thread_owned(own).slots[hash >> (64 - kTableBits)];
}

Strided strided(const tb_tensor& t) { return {{t.sizes, t.ndim}, {t.strides, t.ndim}}; }

const tb_tensor* tensor_in(const tb_value& value) {
  return value.tag == TB_TENSOR ? static_cast<const tb_tensor*>(value.as.p) : nullptr;
}

uint64_t word_of(const tb_tensor& tensor, uint64_t alignment_mask) {
  return TB_TENSOR | static_cast<uint64_t>(from_abi(tensor.dtype)) << 8 |
         (tensor.address & alignment_mask) << 16;
}

}  // namespace

PlanKey::PlanKey(const OpCall& call) {
  const bool usual = call.policy().default_choice && !logging::enabled(logging::Level::Debug);
  if (!usual || !fill(call)) count_ = 0;
  for (const uint64_t word : words()) hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15ull;
}

bool PlanKey::add(uint64_t word) {
  if (count_ == kMostWords) return false;
  words_[count_++] = word;
  return true;
}

// A tag with what else is short: a tensor's type, a text's length. Then a number's bits, or the
// text.
bool PlanKey::add_argument(const tb_value& value, uint64_t alignment_mask) {
  uint64_t bits = 0;
  switch (value.tag) {
    case TB_NONE: return add(TB_NONE);
    case TB_TENSOR: return add(word_of(*tensor_in(value), alignment_mask));
    case TB_BOOL:
    case TB_INT: return add(value.tag) && add(static_cast<uint64_t>(value.as.i));
    case TB_FLOAT: std::memcpy(&bits, &value.as.f, sizeof bits); return add(TB_FLOAT) && add(bits);
    case TB_STRING:
      if (value.count > sizeof bits) return false;
      if (value.count > 0) std::memcpy(&bits, value.as.p, value.count);
      return add(TB_STRING | uint64_t{value.count} << 8) && add(bits);
    default: return false;
  }
}

bool PlanKey::add_layout(const tb_tensor& tensor) {
  if (!add(tensor.ndim)) return false;
  for (uint32_t d = 0; d < tensor.ndim; ++d) {
    const int64_t size = tensor.sizes[d], stride = tensor.strides[d];
    const auto narrow = static_cast<int32_t>(stride);
    if (size > INT32_MAX || narrow != stride) return false;
    if (!add(static_cast<uint64_t>(size) << 32 | static_cast<uint32_t>(narrow))) return false;
  }
  return true;
}

bool PlanKey::fill(const OpCall& call) {
  constexpr size_t kMostTensors = 1 + kMaxOperands;
  const bool vectors_are_aligned = call.caps().style == KernelStyle::Gpu;
  const uint64_t alignment_mask = vectors_are_aligned ? 15 : 0;
  const tb_tensor& out = call.out(0).raw();
  elements_ = numel({out.sizes, out.ndim});
  if (elements_ == 0) return false;
  add(reinterpret_cast<uintptr_t>(&call.op()));
  add(reinterpret_cast<uintptr_t>(&call.policy()));
  add(call.stream().epoch());  // no two streams have the same
  add(word_of(out, alignment_mask));
  std::array<Strided, kMostTensors> tensors{strided(out)};
  size_t count = 1;
  for (const tb_value& value : call.values()) {
    if (!add_argument(value, alignment_mask)) return false;
    if (const tb_tensor* tensor = tensor_in(value)) {
      if (count == kMostTensors) return false;
      tensors[count++] = strided(*tensor);
    }
  }
  // Of flat tensors the number of elements may matter to kernels for GPUs, and whether there are
  // dimensions to some operators.
  const bool flat = is_flat(std::span(tensors).first(count));
  const uint64_t is_large = elements_ >> 31 != 0, is_scalar = out.ndim == 0;
  if (flat) return add(1 | is_large << 1 | is_scalar << 2);
  if (!add(0) || !add_layout(out)) return false;
  for (const tb_value& value : call.values())
    if (const tb_tensor* tensor = tensor_in(value))
      if (!add_layout(*tensor)) return false;
  return true;
}

PlannedCall* find_plan(const PlanKey& key) {
  if (!key.is_valid()) return nullptr;
  Entry* entry = slot_of(key.hash()).entry.get();
  return entry != nullptr && std::ranges::equal(entry->key, key.words()) ? &entry->planned
                                                                         : nullptr;
}

void repeat(const OpCall& call, const PlanKey& key, PlannedCall& planned) {
  elementwise::Addresses addresses{call.out(0).address()};
  const auto values = call.values();
  for (size_t k = 0; k < planned.arguments.size(); ++k)
    if (planned.arguments[k] >= 0)
      addresses[k + 1] = tensor_in(values[static_cast<size_t>(planned.arguments[k])])->address;
  elementwise::repeat_plan(call, planned.plan, addresses, key.elements());
}

void keep_plan(const PlanKey& key, PlannedCall&& planned) {
  if (!key.is_valid() || planned.plan.kernel->is_placeholder()) return;
  const uint64_t hash = key.hash();
  Slot& slot = slot_of(hash);
  if (std::exchange(slot.missed, hash) != hash) return;
  const auto words = key.words();
  slot.entry = std::make_unique<Entry>(Entry{{words.begin(), words.end()}, std::move(planned)});
}

}  // namespace ocltensor::opencl::pointwise
