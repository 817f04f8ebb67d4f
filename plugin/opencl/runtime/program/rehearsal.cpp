// Notes missing programs, and builds them.
#include "rehearsal.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>

#include "ocltensor/error.h"
#include "runtime/ahead/build_ahead.h"
#include "runtime/ahead/build_requests.h"
#include "runtime/ahead/builder_process.h"
#include "runtime/device/device.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

constexpr int kMostThreads = 8;  // that compile at the same time

}  // namespace

Rehearsal::~Rehearsal() { forget_list(); }

void Rehearsal::forget_list() {
  build_ahead::remove_list(list_);
  list_.clear();
}

void Rehearsal::begin() {
  const std::lock_guard lock(mutex_);
  if (is_on()) throw Error(TB_E_STATE, 0, "this stream is rehearsing already");
  missing_.clear();
  forget_list();
  helped_ = are_asked_ = false;
  state_ = State::On;
}

uint32_t Rehearsal::end() {
  const std::lock_guard lock(mutex_);
  state_ = State::Off;
  return static_cast<uint32_t>(missing_.size());
}

void Rehearsal::check_results() const {
  if (has_stopped()) [[unlikely]]
    throw Error(TB_E_STATE, 0,
                "the rehearsal of this stream came to a result that has not been computed: build "
                "what is missing, and rehearse again");
}

void Rehearsal::note(const Source& source, const Defines& defines) {
  const std::lock_guard lock(mutex_);
  if (!is_on()) return;  // the rehearsal has ended meanwhile
  state_ = State::Stopped;
  if (std::ranges::none_of(
          missing_, [&](const Wanted& w) { return w.source == &source && w.defines == defines; }))
    missing_.push_back({&source, defines});
}

// Sets whether builders compile, too.
void Rehearsal::start_builders(Device& device) {
  std::vector<build_ahead::Item> items;
  for (const Wanted& w : missing_)
    items.push_back({w.source->path, build_ahead::on_one_line(w.defines.source())});
  if (device.caps().launch_thread) {  // in the order in which this process builds them
    for (const build_ahead::Item& item : items)
      are_asked_ = build_ahead::request(device.caps(), device.index(), item);
    return;
  }
  list_ = build_ahead::start_builders(device.caps(), device.index(), items);
}

uint32_t Rehearsal::build_some(Device& device) {
  const std::lock_guard lock(mutex_);
  if (is_on()) throw Error(TB_E_STATE, 0, "this stream is still rehearsing");
  if (!helped_) start_builders(device);
  helped_ = true;
  const int threads = device.caps().slow_compiler || are_asked_
                          ? 1
                          : std::min(kMostThreads, build_ahead::usable_processors());
  const size_t count = std::min(missing_.size(), static_cast<size_t>(threads));
  const std::vector<Wanted> now(missing_.begin(), missing_.begin() + static_cast<ptrdiff_t>(count));
  missing_.erase(missing_.begin(), missing_.begin() + static_cast<ptrdiff_t>(count));
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> builds;
    for (size_t i = 0; i < count; ++i)
      builds.emplace_back([&, i] {
        const build_ahead::Listed listed;
        try {
          (void)device.programs().get(*now[i].source, now[i].defines);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
  }
  if (missing_.empty()) forget_list();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return static_cast<uint32_t>(missing_.size());
}

}  // namespace ocltensor::opencl
