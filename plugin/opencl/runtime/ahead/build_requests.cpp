// A socket of messages that a device's builders share: each message, a program, goes to one of
// them.
#include "build_requests.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
constexpr size_t kLongest = size_t{1} << 16;  // bytes of a message, without the source
constexpr size_t kWorthBuilders = 3;          // missing programs; fewer are built by who needs them

// Owns a file descriptor; -1: none.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ < 0) return;
    const int error = errno;  // of the caller
    close(descriptor_);
    errno = error;
  }
  File(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// A message: an origin and three texts that end with 0, and a file in memory with the source, which
// may be longer than a message. It is nobody's to clean up.
struct Message {
  std::string head;
  File source;
  explicit Message(const ProgramText& text)
      : source(memfd_create("ocltensor program", MFD_CLOEXEC)) {
    head += static_cast<char>(text.origin);
    for (const std::string* part : {&text.name, &text.about, &text.options}) {
      head += *part;
      head += '\0';
    }
    check(head.size() <= kLongest, "the options of {} are too long", text.name);
    check(source.get() >= 0, "memfd_create: {}", std::strerror(errno));
    for (size_t at = 0; at < text.source.size();) {
      const ssize_t bytes = write(source.get(), text.source.data() + at, text.source.size() - at);
      check(bytes > 0 || errno == EINTR, "writing to memory: {}", std::strerror(errno));
      if (bytes > 0) at += static_cast<size_t>(bytes);
    }
  }
};

// One message with its file, as the kernel takes it.
class Envelope {
 public:
  Envelope(char* bytes, size_t size) : part_{bytes, size} {
    header_.msg_iov = &part_;
    header_.msg_iovlen = 1;
    header_.msg_control = control_.data();
    header_.msg_controllen = control_.size();
  }
  void enclose(int file) {
    cmsghdr* control = CMSG_FIRSTHDR(&header_);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(control), &file, sizeof file);
  }
  // -1: none came.
  int enclosed() const {
    const cmsghdr* control = CMSG_FIRSTHDR(&header_);
    if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return -1;
    int file = -1;
    std::memcpy(&file, CMSG_DATA(control), sizeof file);
    return file;
  }
  msghdr* get() { return &header_; }

 private:
  iovec part_;
  msghdr header_{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control_{};
};

bool send_to(int socket, Message& message, int flags) {
  Envelope envelope(message.head.data(), message.head.size());
  envelope.enclose(message.source.get());
  return sendmsg(socket, envelope.get(), flags | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(message.head.size());
}

std::string whole(const File& file) {
  struct stat about {};
  check(fstat(file.get(), &about) == 0, "fstat: {}", std::strerror(errno));
  std::string text(static_cast<size_t>(about.st_size), 0);
  for (size_t at = 0; at < text.size();) {
    const ssize_t bytes =
        pread(file.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    check(bytes > 0 || (bytes < 0 && errno == EINTR), "reading a program: {}",
          std::strerror(errno));
    if (bytes > 0) at += static_cast<size_t>(bytes);
  }
  return text;
}

// The end at which a device's requests are written; -1: no builders.
class Requests {
 public:
  // Whether a builder will read it.
  bool send(const ProgramText& text) const {
    if (socket_ < 0) return false;
    Message message(text);
    return send_to(socket_, message, MSG_DONTWAIT);
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
  // Holds a program back until builders are worth starting: whether they are.
  bool hold_back(std::shared_ptr<const ProgramText> text) {
    waiting_.push_back(std::move(text));
    return waiting_.size() >= kWorthBuilders;
  }
  // Whether a builder will read any of those that were held back.
  bool send_held_back() {
    bool any = false;
    for (const auto& text : std::exchange(waiting_, {})) any = send(*text) || any;
    return any;
  }

 private:
  int socket_ = -1;
  std::vector<std::shared_ptr<const ProgramText>> waiting_;
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

bool request(const Capabilities& caps, int index, std::shared_ptr<const ProgramText> text) noexcept
    try {
  AllRequests& all = all_requests();
  const std::lock_guard lock(all.mutex);
  if (all.unavailable || !may_ask()) return false;
  Requests& requests = all.devices[index];
  errno = 0;
  if (requests.send(*text)) return true;
  // They have enough to do: too many messages, or too many files in them.
  if (requests.has_builders() && (errno == EAGAIN || errno == ETOOMANYREFS)) return true;
  if (!requests.hold_back(std::move(text))) return false;
  start(all, caps, index);
  return requests.send_held_back();
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

void build_elsewhere(const Capabilities& caps, int index, const ProgramText& text) noexcept try {
  check(!config::cache_folder().empty(), "there is no cache folder");
  Message message(text);
  std::array<int, 2> ends{};
  check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair: {}",
        std::strerror(errno));
  const File ours(ends[0]);
  {
    const File its(ends[1]);
    start_builder(caps, index, its.get());
  }
  check(send_to(ours.get(), message, 0), "the builder has ended");
  shutdown(ours.get(), SHUT_WR);  // the only request
  char byte = 0;
  while (recv(ours.get(), &byte, 1, 0) < 0 && errno == EINTR) continue;  // until the builder ends
} catch (const std::exception& why) {
  logging::info("program", "{} is not compiled elsewhere: {}", text.name, why.what());
}

std::optional<ProgramText> next_request() {
  pollfd end{STDIN_FILENO, POLLIN, 0};
  if (poll(&end, 1, kPatienceMs) <= 0) return std::nullopt;
  if ((end.revents & POLLHUP) != 0) return std::nullopt;  // whatever that process still asked for
  std::string head(kLongest, 0);
  Envelope envelope(head.data(), head.size());
  const ssize_t bytes = recvmsg(STDIN_FILENO, envelope.get(), MSG_CMSG_CLOEXEC);
  if (bytes <= 0) return std::nullopt;
  const File source(envelope.enclosed());
  if (source.get() < 0) return std::nullopt;
  ProgramText text;
  text.origin = static_cast<TextOrigin>(head[0]);
  size_t at = 1;
  for (std::string* part : {&text.name, &text.about, &text.options}) {
    *part = head.c_str() + at;
    at += part->size() + 1;
  }
  text.source = whole(source);
  return text;
}

}  // namespace ocltensor::opencl::build_ahead
