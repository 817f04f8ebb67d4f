// What follows when a call fails, takes too long, or waits for ranks that do not come.
#include <algorithm>
#include <utility>

#include "group.h"

namespace torch_ocl::distributed {
namespace {

// ", [2, 3], [3]": of the first tensors.
std::string shapes_of(const std::vector<Use>& uses) {
  constexpr size_t kMany = 4;
  std::string text;
  for (size_t k = 0; k < std::min(uses.size(), kMany); ++k)
    text += c10::str(k == 0 ? " of shape " : ", ", uses[k].tensor.sizes());
  return text + (uses.size() > kMany ? ", ..." : "");
}

}  // namespace

std::exception_ptr error_of(const std::string& text) {
  return std::make_exception_ptr(
      c10::DistBackendError({__func__, __FILE__, uint32_t{__LINE__}}, text));
}

std::string Group::failed(const Submitted& call, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return call.text + " was not done: the group has ended: " + failure_;
  }
  std::string text = call.text + " failed: " + reason;
  if (!call.call.peer) {
    notices_.came_to(call.number);
    const std::string missing = notices_.missing(call.number);
    if (!missing.empty()) text += "; ranks that had not come: " + missing;
  }
  // Told before it holds here: then this rank gives up its engine, whose closed connections are all
  // that the others' engines know of the reason.
  notices_.tell_failure(text);
  if (const auto first = notices_.heard_failure(); first && *first != text)
    text += "; another rank says: " + *first;
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = text;
  return text;
}

void Group::look_around() {
  constexpr std::chrono::seconds kLong{1}, kGrace{5};  // in which the engine's own error comes
  if (is_forked()) return;
  std::vector<std::shared_ptr<Lane>> lanes{lane_};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, lane] : message_lanes_) lanes.push_back(lane);
  }
  for (const auto& lane : lanes) lane->release_late();
  std::vector<uint64_t> numbers;
  std::string own;
  std::optional<std::string> late;
  std::vector<std::pair<uint64_t, std::string>> slow;
  {
    const std::lock_guard lock(mutex_);
    if (unfinished_.empty()) return;
    own = failure_;
    for (auto& [work, started] : running_) {
      const Submitted& call = *started.call;
      const auto taken = std::chrono::duration_cast<Engine::Limit>(Clock::now() - started.begin);
      if (taken - kGrace > call.call.limit)
        late = "collective " + std::to_string(call.number) + " has not ended within " +
               std::to_string(call.call.limit.count()) + " ms";
      if (taken >= options_.patience && !std::exchange(started.is_warned, true))
        slow.emplace_back(call.number, call.text + shapes_of(call.call.uses));
      if (taken >= kLong && !std::exchange(started.is_told, true)) numbers.push_back(call.number);
    }
  }
  for (const uint64_t number : numbers) notices_.came_to(number);
  for (const auto& [number, text] : slow) warn_of(number, text);
  if (!own.empty())
    abandon(own);
  else if (const auto failure = notices_.heard_failure())
    abandon("another rank says: " + *failure);
  else if (late)
    abandon(*late);
}

void Group::warn_of(uint64_t number, const std::string& text) {
  const std::string missing = notices_.missing(number);
  {
    const std::lock_guard lock(mutex_);
    const bool runs = std::any_of(running_.begin(), running_.end(), [number](const auto& entry) {
      return entry.second.call->number == number;
    });
    if (!runs || !failure_.empty()) return;
  }
  TORCH_WARN(text, " has been waiting for ",
             std::chrono::duration_cast<std::chrono::seconds>(options_.patience).count(), " s",
             missing.empty() ? "; all ranks are in it" : "; ranks that have not been seen in it: ",
             missing);
}

void Group::abandon(const std::string& why) {
  if (is_forked()) return;
  std::set<WorkPtr> works;
  std::shared_ptr<Engine> engine;  // ends without the lock; calls that are inside have it, too
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
    works.swap(unfinished_);
    engine.swap(engine_);
  }
  if (options_.device_engine) options_.device_engine->abort(why);
  for (const WorkPtr& work : works)
    if (work->fail(error_of("ocl: a call of group '" + options_.name + "', rank " +
                            std::to_string(options_.rank) + ", was given up: " + why)))
      work->complete_future();
}

}  // namespace torch_ocl::distributed
