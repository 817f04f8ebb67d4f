// Reads and writes memory of the device, and shares matrices among threads.
#include "host_work.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace ocltensor::opencl::lapack {

void read_bytes(const OpCall& call, tb_address from, void* to, uint64_t bytes) {
  const Place place = resolve(from, 0, static_cast<int64_t>(bytes));
  call.stream().read(to, place.buffer, place.offset, bytes, false);
}

void write_bytes(const OpCall& call, tb_address to, const void* from, uint64_t bytes) {
  const Place place = resolve(to, 0, static_cast<int64_t>(bytes));
  call.stream().write(place.buffer, place.offset, from, bytes, false);
}

namespace {

// Below so many operations, a thread takes longer to start than to help.
constexpr double kWorthThreads = 1e6;
// Below so many operations of one matrix (about 300 rows), the library's own threads cost more
// than they save: they wait for each other actively, and take processors from the device's.
constexpr double kWorthLibraryThreads = 5e7;

class Shared {
 public:
  Shared(int64_t count, const std::function<void(int64_t)>& body) : count_(count), body_(body) {}
  void work() noexcept {
    try {
      for (int64_t i = next_++; i < count_; i = next_++) body_(i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
      next_ = count_;
    }
  }
  void raise() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  const int64_t count_;
  const std::function<void(int64_t)>& body_;
  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void for_matrices(const OpCall& call, const Library& library, int64_t count, double operations,
                  const std::function<void(int64_t)>& body) {
  const auto threads = static_cast<int64_t>(call.caps().compute_units);
  Shared shared(count, body);
  if (count < threads && operations >= kWorthLibraryThreads) {
    shared.work();
    return shared.raise();
  }
  const Library::OneThread one(library);
  const auto alone = [&] {
    const int before = library.set_threads(1);
    shared.work();
    library.set_threads(before);
  };
  {
    std::vector<std::jthread> others;
    const bool pays = count >= threads && static_cast<double>(count) * operations >= kWorthThreads;
    for (int64_t i = 1; pays && i < threads; ++i) others.emplace_back(alone);
    alone();
  }
  shared.raise();
}

}  // namespace ocltensor::opencl::lapack
