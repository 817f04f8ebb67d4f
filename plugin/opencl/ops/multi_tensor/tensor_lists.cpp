// Lists of tensors as a table for the kernels, and the launches over it.
#include <algorithm>
#include <cstring>

#include "base/iteration.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "disjoint.h"
#include "kernels/defines.h"
#include "multi_tensor.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::multi_tensor {
namespace {

constexpr uint64_t kAbsent = 0;
constexpr int kBufferShift = 56;

}  // namespace

TensorLists::TensorLists(const OpCall& call, DType compute, size_t roles, size_t expected)
    : call_(call), compute_(compute), roles_(roles) {
  members_.reserve(roles * expected);
  numbers_.reserve(expected);
}

// Sizes need no check for overflow: that was done when the call came in.
TensorLists::Member TensorLists::member(const Role& role) {
  const auto sizes = role.tensor.sizes(), strides = role.tensor.strides();
  int64_t elements = 1, low = 0, high = 0;
  bool contiguous = true;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) return {role, {0, 0}, 0, true};
    if (sizes[d] == 1) continue;
    contiguous = contiguous && strides[d] == elements;
    elements *= sizes[d];
    const int64_t reach = (sizes[d] - 1) * strides[d];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t item = role.tensor.itemsize();
  const tb_address first = role.tensor.address() + static_cast<uint64_t>(low * item);
  return {role, {first, static_cast<uint64_t>((high + 1 - low) * item)}, elements, contiguous};
}

// Whether element i of every tensor lies at place i of its memory.
bool TensorLists::go_together(std::span<const Member> members) {
  const auto apply = [&](auto&& fits) {
    return std::ranges::all_of(members, [&](const Member& m) { return m.role.single || fits(m); });
  };
  if (apply([](const Member& m) { return m.contiguous; })) return true;
  const TensorView first = members[0].role.tensor;
  return apply([&](const Member& m) { return same(m.role.tensor.strides(), first.strides()); }) &&
         is_dense({first.sizes(), first.strides()});
}

uint64_t TensorLists::bits(Scalar value) const {
  uint64_t bits = 0;
  const double d = value.as_double();
  if (compute_ == DType::Float64) {
    std::memcpy(&bits, &d, sizeof d);
  } else if (compute_ == DType::Float32) {
    const auto f = static_cast<float>(d);
    std::memcpy(&bits, &f, sizeof f);
  }
  return bits;
}

void TensorLists::add(std::span<const Role> roles, Scalar number) {
  for (const Role& role : roles) members_.push_back(member(role));
  numbers_.push_back(bits(number));
}

void TensorLists::share(size_t slot, TensorView tensor) {
  shared_[slot] = {tensor.address(), static_cast<uint64_t>(tensor.itemsize())};
}

void TensorLists::set_number(size_t slot, double value) { params_.numbers[slot] = bits(value); }

void TensorLists::check_disjoint() const {
  std::vector<Used> used;
  used.reserve(members_.size() + shared_.size());
  for (size_t i = 0; i < count(); ++i) {
    const size_t first = used.size();
    for (const Member& m : entry(i)) {
      if (m.memory.bytes == 0) continue;
      const Used u{m.memory.address, m.memory.address + m.memory.bytes, m.role.written};
      // Tensors of one position may be the same: each element is read before it is written.
      size_t k = first;
      while (k < used.size() && !(used[k].begin == u.begin && used[k].end == u.end)) ++k;
      if (k == used.size())
        used.push_back(u);
      else
        used[k].written = used[k].written || u.written;
    }
  }
  for (const Memory& memory : shared_)
    if (memory.bytes > 0) used.push_back({memory.address, memory.address + memory.bytes, false});
  if (!are_disjoint(used))
    unsupported(TB_REASON_LAYOUT,
                "{}: a tensor that is written shares memory with another one of the lists",
                call_.name());
}

// Makes row-major copies of tensors that do not go together element by element.
void TensorLists::place_all() {
  for (size_t i = 0; i < count(); ++i) {
    if (go_together(entry(i))) continue;
    for (Member& m : std::span(members_).subspan(i * roles_, roles_)) {
      const Role& role = m.role;
      if (role.single || m.memory.bytes == 0 || m.contiguous) continue;
      const auto bytes = static_cast<uint64_t>(m.elements * role.tensor.itemsize());
      scratch_.push_back(call_.scratch(bytes));
      const LocalTensor local(scratch_.back().address(), role.tensor.dtype(),
                              Dims(role.tensor.sizes()));
      if (role.read) copy_tensor(call_, local.view(), role.tensor);
      if (role.written) returns_.push_back({role.tensor, local});
      m.memory = {scratch_.back().address(), bytes};
    }
  }
}

void TensorLists::copy_back() {
  for (const Return& r : returns_) copy_tensor(call_, r.to, r.from.view());
}

// Consecutive tensors whose memory lies in at most MULTI_TENSOR_BUFFERS driver buffers, and their
// table.
struct TensorLists::Group {
  std::vector<decltype(Place::buffer)> buffers;
  std::vector<uint64_t> table;
  MultiTensorParams params{};

  // Finds the kernel's address of a tensor's memory; false if there is no room for its buffer.
  bool find(const Memory& memory, uint64_t& address) {
    if (memory.bytes == 0) return address = kAbsent, true;
    const Place place = resolve(memory.address, 0, static_cast<int64_t>(memory.bytes));
    size_t k = 0;
    while (k < buffers.size() && buffers[k] != place.buffer) ++k;
    if (k == MULTI_TENSOR_BUFFERS) return false;
    if (k == buffers.size()) buffers.push_back(place.buffer);
    address = static_cast<uint64_t>(k) << kBufferShift | place.offset;
    return true;
  }
};

namespace {

void run_sweep(const OpCall&, const Sweep& sweep) { sweep.lists.run_chunks(sweep); }

constinit const AlgorithmFor<Sweep> kChunks(
    {.id = "multi_tensor.chunks",
     .description = "chunks of all tensors that a launch reaches, by a table",
     .last_resort = true},
    Steps<takes_all<Sweep>, run_sweep>());

struct Traits {
  static std::string describe(const OpCall& call, const Sweep& sweep) {
    return fmt::format("{} {} tensors", call.name(), sweep.lists.count());
  }
};
using Algorithms = AlgorithmList<Sweep, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("multi_tensor", foreach_operators(), {&kChunks});  // leaked
  return list;
}

}  // namespace

const AlgorithmFamily& multi_tensor_algorithms() { return algorithms().family(); }

void TensorLists::run(const ListKernel& kernel, const Defines& defines) {
  algorithms().run(call_, {*this, defines, &kernel, nullptr, nullptr});
}
void TensorLists::run(const PartialKernel& kernel, const PartialKernel& finish,
                      const Defines& defines) {
  algorithms().run(call_, {*this, defines, nullptr, &kernel, &finish});
}

void TensorLists::run_chunks(const Sweep& sweep) {
  place_all();
  Defines defines = sweep.defines;
  int64_t total = 0;
  for (size_t i = 0; i < count(); ++i) total += entry(i)[0].elements;
  params_.chunk = by_style<int64_t>(call_, 4096, total > (int64_t{1} << 21) ? 4096 : 1024);
  defines.type(define::COMPUTE, compute_)
      .set(define::FLOATING, is_floating(compute_))
      .set(define::ROLES, static_cast<int64_t>(roles_));

  size_t at = 0;
  while (at < count()) {
    Group group;
    group.table.reserve((count() - at) * (3 + roles_));
    group.params = params_;
    for (size_t k = 0; k < shared_.size(); ++k)
      (void)group.find(shared_[k], group.params.shared[k]);
    for (; at < count(); ++at) {
      const size_t buffers = group.buffers.size();
      const size_t words = group.table.size();
      const int64_t elements = entry(at)[0].elements;
      group.table.push_back(static_cast<uint64_t>(group.params.chunks));
      group.table.push_back(static_cast<uint64_t>(elements));
      group.table.push_back(numbers_[at]);
      bool fits = true;
      for (size_t r = 0; r < roles_ && fits; ++r) {
        uint64_t address = 0;
        fits = group.find(entry(at)[r].memory, address);
        group.table.push_back(address);
      }
      if (!fits) {
        group.buffers.resize(buffers);
        group.table.resize(words);
        break;
      }
      group.params.chunks += divide_up(elements, params_.chunk);
      ++group.params.tensors;
    }
    launch(group, sweep, defines);
  }
  copy_back();
}

void TensorLists::launch(const Group& group, const Sweep& sweep, const Defines& defines) {
  MultiTensorParams p = group.params;
  if (group.buffers.empty() || (p.chunks == 0 && sweep.finish == nullptr)) return;
  const uint64_t bytes = group.table.size() * sizeof(uint64_t);
  const Scratch table = call_.scratch(bytes);
  const Place place = resolve(table.address(), 0, static_cast<int64_t>(bytes));
  call_.stream().write(place.buffer, place.offset, group.table.data(), bytes, false);
  constexpr int64_t kItems = 64, kLightChunks = 16;
  const auto span = std::min<int64_t>(256, call_.caps().max_work_group_size);
  const auto local = by_style<int64_t>(call_, 1, span);
  p.per_item = std::max(divide_up(p.chunks, kItems), std::min(p.chunks, kLightChunks) / 8);
  p.per_item = std::max<int64_t>(p.per_item, 1);
  std::array<cl_mem, MULTI_TENSOR_BUFFERS> buffers;
  for (size_t k = 0; k < buffers.size(); ++k)
    buffers[k] = group.buffers[k < group.buffers.size() ? k : 0];
  const auto run = [&](Launch launch, int64_t items) {
    launch.run({items * local, 1, 1}, {local, 1, 1});
  };
  const int64_t items = by_style(call_, divide_up(p.chunks, p.per_item), p.chunks);
  Defines all = defines;
  all.set(define::SPAN, span);
  if (sweep.whole != nullptr)
    return run(call_.launch(*sweep.whole, all, {.b = buffers, .table = table, .p = p}), items);
  const Scratch partial = call_.scratch(static_cast<uint64_t>(p.chunks + 1) * 8);
  for (const auto& [kernel, count] : {std::pair{sweep.partial, items}, {sweep.finish, p.tensors}})
    run(call_.launch(*kernel, all, {.b = buffers, .table = table, .partial = partial, .p = p}),
        count);
}

}  // namespace ocltensor::opencl::multi_tensor
