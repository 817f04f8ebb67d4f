// A socket of messages that a device's builders share: each message, a program, goes to one of
// them.
#include "build_requests.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/ahead/builder_process.h"

namespace ocltensor::opencl::build_ahead {
namespace {

constexpr int kMostBuilders = 12;
constexpr uint64_t kMemoryOfOne = uint64_t{4} << 30;  // a builder's context takes up to a tenth
constexpr int kPatienceMs = 20000;
constexpr size_t kLongest = size_t{1} << 16;  // bytes of a message; longer ones are not sent
constexpr size_t kWorthBuilders = 3;          // missing programs; fewer are built by who needs them

// The end at which a device's requests are written; -1: no builders.
class Requests {
 public:
  // Whether a builder will read it.
  bool send(const std::string& message) const {
    return socket_ >= 0 && ::send(socket_, message.data(), message.size(),
                                  MSG_DONTWAIT | MSG_NOSIGNAL) == ssize_t(message.size());
  }
  bool has_builders() const { return socket_ >= 0; }
  // Starts builders in place of those that have ended, if any.
  void start(const Capabilities& caps, int index) {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
    const auto by_memory = static_cast<int>(std::min<uint64_t>(
        caps.global_memory / kMemoryOfOne, static_cast<uint64_t>(kMostBuilders)));
    // As many as there are processors: the launch thread mostly waits for one of them.
    const int processors = usable_processors();
    const int count = processors == 1 ? 0 : std::clamp(processors, 1, std::max(by_memory, 1));
    if (count == 0) return;
    std::array<int, 2> ends{};
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair: {}",
          std::strerror(errno));
    try {
      for (int i = 0; i < count; ++i) start_builder(caps, index, ends[1]);
    } catch (...) {
      close(ends[0]);
      close(ends[1]);
      throw;
    }
    close(ends[1]);  // so that send() fails once all builders have ended
    socket_ = ends[0];
    logging::debug("program", "{} builder(s) compile what launches wait for", count);
  }
  // Keeps a message until builders are worth starting: whether they are.
  bool keep(const std::string& message) {
    few_.push_back(message);
    return few_.size() >= kWorthBuilders;
  }
  // Whether a builder will read any of those that were kept.
  bool send_kept() {
    bool any = false;
    for (const std::string& message : std::exchange(few_, {})) any = send(message) || any;
    return any;
  }

 private:
  int socket_ = -1;
  std::vector<std::string> few_;
};

// Those of all devices.
struct AllRequests {
  std::mutex mutex;
  std::map<int, Requests> devices;
  bool unavailable = false;
};
AllRequests& all_requests() {
  static AllRequests& all = *new AllRequests;  // leaked: threads may outlive exit handlers
  return all;
}

std::atomic<bool> expected{false};

bool may_ask() {
  return config::get_bool(config::Knob::BuildAhead) && !config::cache_folder().empty();
}

// To be called with the lock.
void start(AllRequests& all, const Capabilities& caps, int index) {
  all.unavailable = true;  // if it throws
  all.devices[index].start(caps, index);
  all.unavailable = false;
}

}  // namespace

bool request(const Capabilities& caps, int index, const Item& item) noexcept try {
  AllRequests& all = all_requests();
  const std::string message = item.source + '\t' + item.defines;
  const std::lock_guard lock(all.mutex);
  if (all.unavailable || !may_ask() || message.size() > kLongest) return false;
  Requests& requests = all.devices[index];
  if (requests.send(message)) return true;
  if (requests.has_builders() && errno == EAGAIN) return true;  // which have enough to do
  if (!requests.keep(message)) return false;
  start(all, caps, index);
  return requests.send_kept();
} catch (const std::exception& why) {
  logging::debug("program", "no builders: {}", why.what());
  return false;
}

void expect_requests(const Capabilities& caps, int index) noexcept try {
  AllRequests& all = all_requests();
  const std::lock_guard lock(all.mutex);
  if (all.unavailable || !may_ask() || all.devices.contains(index)) return;
  start(all, caps, index);
  if (all.devices[index].has_builders()) expected.store(true, std::memory_order_relaxed);
} catch (const std::exception& why) {
  logging::debug("program", "no builders: {}", why.what());
}

bool are_expected() { return expected.load(std::memory_order_relaxed); }

void build_elsewhere(const Capabilities& caps, int index, const Item& item) noexcept try {
  const std::string message = item.source + '\t' + item.defines;
  check(!config::cache_folder().empty(), "there is no cache folder");
  check(message.size() <= kLongest, "its defines are too long");
  std::array<int, 2> ends{};
  check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair: {}",
        std::strerror(errno));
  const std::unique_ptr<int, void (*)(int*)> ours(&ends[0], [](int* end) { close(*end); });
  {
    const std::unique_ptr<int, void (*)(int*)> its(&ends[1], [](int* end) { close(*end); });
    start_builder(caps, index, ends[1]);
  }
  check(send(ends[0], message.data(), message.size(), MSG_NOSIGNAL) == ssize_t(message.size()),
        "the builder has ended");
  shutdown(ends[0], SHUT_WR);  // the only request
  char byte = 0;
  while (recv(ends[0], &byte, 1, 0) < 0 && errno == EINTR) continue;  // its end ends the connection
} catch (const std::exception& why) {
  logging::info("program", "{} is not compiled elsewhere: {}", item.source, why.what());
}

std::optional<Item> next_request() {
  pollfd end{STDIN_FILENO, POLLIN, 0};
  if (poll(&end, 1, kPatienceMs) <= 0) return std::nullopt;
  if ((end.revents & POLLHUP) != 0) return std::nullopt;  // whatever that process still asked for
  std::string message(kLongest, 0);
  const ssize_t bytes = recv(STDIN_FILENO, message.data(), message.size(), 0);
  if (bytes <= 0) return std::nullopt;
  message.resize(static_cast<size_t>(bytes));
  const size_t tab = message.find('\t');
  if (tab == std::string::npos) return std::nullopt;
  return Item{message.substr(0, tab), message.substr(tab + 1)};
}

}  // namespace ocltensor::opencl::build_ahead
