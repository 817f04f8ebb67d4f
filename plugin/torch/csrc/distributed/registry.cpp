// A list of groups, and one thread while it is not empty.
#include "registry.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "group.h"
#include "lane.h"

namespace torch_ocl::distributed {
namespace {

class Registry {
 public:
  void add(const std::shared_ptr<Group>& group) {
    const std::lock_guard lock(mutex_);
    groups_.push_back(group);
    if (!std::exchange(is_watching_, true)) run_on_thread([this] { watch(); });
  }

  std::vector<std::shared_ptr<Group>> alive() {
    const std::lock_guard lock(mutex_);
    std::erase_if(groups_, [](const auto& group) { return group.expired(); });
    std::vector<std::shared_ptr<Group>> groups;
    for (const auto& group : groups_)
      if (auto locked = group.lock()) groups.push_back(std::move(locked));
    return groups;
  }

 private:
  void watch() {
    constexpr std::chrono::seconds kPeriod{1};
    for (;;) {
      std::this_thread::sleep_for(kPeriod);
      for (const auto& group : alive()) group->look_around();
      const std::lock_guard lock(mutex_);
      is_watching_ = !groups_.empty();
      if (!is_watching_) return;
    }
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<Group>> groups_;
  bool is_watching_ = false;
};

Registry& registry() {
  static auto& instance = *new Registry;  // leaked: its thread may outlive main
  return instance;
}

}  // namespace

void watch_over(const std::shared_ptr<Group>& group) { registry().add(group); }

void end_all_groups() {
  for (const auto& group : registry().alive()) group->abandon("the process ends");
}

}  // namespace torch_ocl::distributed
