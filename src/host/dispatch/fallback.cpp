// CPU fallback: copies the arguments to the CPU, runs there, copies the results back, and counts.
#include "fallback.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/config.h"
#include "base/log.h"
#include "dispatcher.h"
#include "host/core/storage.h"
#include "ocltensor/settings.h"
#include "pack.h"

namespace ocltensor {
namespace {

using detail::pack;

struct Counts {
  std::mutex mutex;
  std::map<std::string, uint64_t> by_name;
};
Counts& counts() {
  static Counts& c = *new Counts;  // leaked: threads may still run while the process ends
  return c;
}

// The call's arguments with every tensor replaced by a copy on the CPU.
class CpuArgs {
 public:
  explicit CpuArgs(std::span<const tb_value> args) : values_(args.begin(), args.end()) {
    lists_.resize(args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      tb_value& v = values_[i];
      if (v.tag == TB_TENSOR) v.as.p = copied(static_cast<const tb_tensor*>(v.as.p));
      if (v.tag != TB_TENSOR_LIST) continue;
      const auto* list = static_cast<const tb_tensor* const*>(v.as.p);
      for (uint32_t k = 0; k < v.count; ++k)
        lists_[i].push_back(list[k] == nullptr ? nullptr : copied(list[k]));
      v.as.p = lists_[i].data();
    }
  }
  std::span<tb_value> values() { return values_; }
  void copy_back(const Operator& op, std::span<const tb_value> args) const {
    for (size_t i = 0; i < args.size(); ++i) {
      if (!changes_argument(op, i)) continue;
      if (args[i].tag == TB_TENSOR)
        original(static_cast<const tb_tensor*>(args[i].as.p))
            .copy_(original(static_cast<const tb_tensor*>(values_[i].as.p)));
      if (args[i].tag != TB_TENSOR_LIST) continue;
      const auto* list = static_cast<const tb_tensor* const*>(args[i].as.p);
      for (uint32_t k = 0; k < args[i].count; ++k)
        if (list[k] != nullptr) original(list[k]).copy_(original(lists_[i][k]));
    }
  }

 private:
  static Tensor original(const tb_tensor* tensor) {
    const detail::TensorImpl& t = detail::impl_of(tensor);
    return detail::make_tensor(t.storage, t.shape, t.steps, t.offset, t.type);
  }
  const tb_tensor* copied(const tb_tensor* tensor) {
    kept_.push_back(original(tensor).to(Device()));
    return &kept_.back().abi();
  }
  std::vector<tb_value> values_;
  std::vector<std::vector<const tb_tensor*>> lists_;
  std::vector<Tensor> kept_;
};

// Gives a CPU generator the state of the device's generator, and the new state back, so that the
// fallback continues the device's sequence of random numbers. A device without generators takes the
// numbers of the CPU's default one.
class LentGenerator {
 public:
  LentGenerator(const Operator& op, Device device, std::span<tb_value> args) {
    if (!op.is(kRandom)) return;
    device_ = device;
    const int at = op.schema.input("generator");
    const bool given = at >= 0 && args[static_cast<size_t>(at)].tag == TB_GENERATOR;
    owner_ = given ? static_cast<tb_generator>(
                         const_cast<void*>(args[static_cast<size_t>(at)].as.p))  // NOLINT
                   : default_generator();
    if (owner_ == nullptr) return;
    substitute_ = at < 0 ? Generator::default_of(Device()) : Generator(Device());
    Generator::State state{};
    invoke_api("generator state", backend(device).api->generator->get_state, owner_,
               static_cast<void*>(state.data()), uint64_t{state.size()});
    if (at < 0) saved_ = substitute_->state();
    substitute_->set_state(state);
    if (at >= 0) args[static_cast<size_t>(at)] = pack(*substitute_);
  }
  void give_back() const {
    if (!substitute_) return;
    const Generator::State state = substitute_->state();
    invoke_api("generator state", backend(device_).api->generator->set_state, owner_,
               static_cast<const void*>(state.data()), uint64_t{state.size()});
    if (saved_) substitute_->set_state(*saved_);
  }

 private:
  tb_generator default_generator() const {  // nullptr: the backend has no generators
    tb_generator found = nullptr;
    ErrorBuffer error;
    const tb_status status = backend(device_).api->generator->default_generator(
        static_cast<int32_t>(device_.index()), &found, error.get());
    if (status == TB_UNSUPPORTED) return nullptr;
    error.raise_if_failed(status);
    return found;
  }
  Device device_;
  tb_generator owner_ = nullptr;
  std::optional<Generator> substitute_;
  std::optional<Generator::State> saved_;  // of the CPU's default generator, restored at the end
};

}  // namespace

void detail::check_fallback_allowed(const std::string& name, Device device,
                                    const Declined& declined, const std::string& what) {
  const char* variable = config::name(config::Knob::EnableFallback);
  if (!config::get_bool(config::Knob::EnableFallback))
    unsupported(declined.reason,
                "{} cannot run {} ({}): {}. Set {}=1 to run what the device lacks on the CPU",
                device.text(), name, what, declined.text, variable);
}

void detail::count_fallback(const std::string& name, Device device, const Declined& declined,
                            const std::string& what) {
  bool first;
  {
    const std::lock_guard lock(counts().mutex);
    first = ++counts().by_name[name] == 1;
  }
  if (first)
    logging::warning("fallback", "{} runs on the CPU, because {} declined it ({}): {}", name,
                     device.text(), what, declined.text);
}

detail::TracedFallback::TracedFallback(const std::string& name, Device device) {
  const tb_profiler_api* profiler = backend(device).api->profiler;
  if (profiler->struct_size >= offsetof(tb_profiler_api, statistics) &&
      profiler->begin_call("fallback", name.c_str(), nullptr) == TB_OK)
    profiler_ = profiler;
}

detail::TracedFallback::~TracedFallback() {
  if (profiler_ != nullptr) (void)profiler_->end_call(nullptr);
}

void detail::fall_back(const Operator& op, Device device, std::span<const tb_value> args,
                       std::span<Tensor> outs, const Declined& declined) {
  if (device.is_cpu())
    unsupported(declined.reason, "the CPU cannot run {}: {}", describe(op, args), declined.text);
  if (const char* obstacle = fallback_obstacle(op))
    unsupported(declined.reason,
                "{} cannot run {} ({}): {}. It cannot run on the CPU instead, because {}",
                device.text(), op.name, describe(op, args), declined.text, obstacle);
  const std::string what = describe(op, args);
  check_fallback_allowed(op.name, device, declined, what);
  const TracedFallback traced(op.name, device);
  CpuArgs cpu(args);
  LentGenerator generator(op, device, cpu.values());
  std::vector<Tensor> results(outs.size());
  CallOptions options{.device = Device()};  // whatever the thread's default device is
  bool has_tensor = false;
  for_each_tensor(args, [&](size_t, const TensorImpl&) { has_tensor = true; });
  if (!has_tensor && !outs.empty()) options.dtype = outs[0].dtype();
  call(op, cpu.values(), results, options);
  generator.give_back();
  cpu.copy_back(op, args);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (std::ranges::equal(outs[i].sizes(), results[i].sizes()))
      outs[i].copy_(results[i]);
    else
      outs[i] = results[i].to(device);
  }
  count_fallback(op.name, device, declined, what);
}

std::vector<FallbackCount> fallback_counts() {
  std::vector<FallbackCount> result;
  {
    const std::lock_guard lock(counts().mutex);
    for (const auto& [name, count] : counts().by_name) result.push_back({name, count});
  }
  std::ranges::stable_sort(result, std::ranges::greater(), &FallbackCount::count);
  return result;
}

void reset_fallback_counts() {
  const std::lock_guard lock(counts().mutex);
  counts().by_name.clear();
}

}  // namespace ocltensor
