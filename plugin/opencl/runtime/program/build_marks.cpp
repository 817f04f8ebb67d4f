// Reads and writes marks: a letter ('r': it runs, 'c': the compiler crashed), the process's id and
// start, how many builders have begun with it, this one included, and whether a user's process has.
#include "build_marks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

namespace ocltensor::opencl::build_marks {
namespace {

constexpr int kMostBuilders = 2;  // the first may have been killed
constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// In clock ticks since boot, by which an id that is used again is told; 0: there is no such
// process.
uint64_t start_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  size_t at = all.rfind(')');  // the name before it may have anything
  constexpr int kFieldsBetween = 20;
  for (int i = 0; i < kFieldsBetween && at != std::string::npos; ++i) at = all.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(all.c_str() + at, nullptr, 10);
}

struct Contents {
  char state = 0;  // 0: there is no mark
  pid_t process = 0;
  uint64_t start = 0;
  int builders = 0;
  int by_user = 0;
  bool is_live() const { return state == 'r' && start_of(process) == start; }
};

Contents read(const std::string& path) {
  std::array<char, 128> text{};
  const int file = path.empty() ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t bytes = ::read(file, text.data(), text.size() - 1);
  close(file);
  Contents c;
  if (bytes <= 0 || std::sscanf(text.data(), "%c %d %" SCNu64 " %d %d", &c.state, &c.process,
                                &c.start, &c.builders, &c.by_user) != 5)
    return {};  // damaged: as if it were not there
  return c;
}

std::string folder_of_marks() {
  const std::string folder = disk_cache::usable_folder();
  return folder.empty() ? folder : folder + "/building";
}

bool is_any_dead() {
  std::error_code error;  // also if there is no such folder
  for (const auto& entry : std::filesystem::directory_iterator(folder_of_marks(), error))
    if (const Contents c = read(entry.path().string()); c.state != 0 && !c.is_live()) return true;
  return false;
}

std::string path_of_compiler(const std::string& identity) {
  const std::string folder = disk_cache::usable_folder();
  if (folder.empty()) return {};
  const disk_cache::Key key = disk_cache::key_of(identity);
  return fmt::format("{}/{:016x}{:016x}.crashes", folder, key.high, key.low);
}

// ---- in a builder -----------------------------------------------------------------------------
std::atomic<int> marked_file{-1};

void note_end() {
  const int file = marked_file.load();
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = pwrite(file, "c", 1, 0);
}

// Once: the fault comes again, and ends the process.
void note_fault(int) { note_end(); }

// Faults, on a stack of its own, as compilers overflow theirs, too; and exit(), by which LLVM ends
// a process that it gives up.
void watch_this_process() {
  static std::array<char, 16384> memory;
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
  struct sigaction ours {};
  ours.sa_handler = note_fault;
  ours.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
  for (const int fault : kFaults) sigaction(fault, &ours, nullptr);
  static std::once_flag once;
  std::call_once(once, [] { std::atexit(note_end); });
}

}  // namespace

std::string path_of(const disk_cache::Key& key) {
  const std::string folder = folder_of_marks();
  return folder.empty() ? folder : fmt::format("{}/{:016x}{:016x}", folder, key.high, key.low);
}

Past past_of(const disk_cache::Key& key) {
  const Contents c = read(build_marks::path_of(key));
  if (c.state == 'c') return Past::Crashed;
  if (c.state == 0 || c.is_live()) return Past::Nothing;
  return c.builders >= kMostBuilders ? Past::Crashed : Past::Died;
}

bool is_known_to_crash(const std::string& identity) {
  const std::string path = path_of_compiler(identity);
  return !path.empty() && (access(path.c_str(), F_OK) == 0 || is_any_dead());
}

void note_compiler(const std::string& identity) {
  const std::string path = path_of_compiler(identity);
  if (path.empty()) return;
  if (const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600); file >= 0)
    close(file);
}

Mark::Mark(const disk_cache::Key& key, Place place) : is_builder_(place == Place::Builder) {
  const std::string path = build_marks::path_of(key);
  if (path.empty()) return;
  const Contents before = read(path);
  if (before.is_live()) return;  // compiled twice: the mark is the other's
  const int builders = before.builders + (is_builder_ ? 1 : 0);
  const int by_user = is_builder_ ? before.by_user : 1;
  const std::string text =
      fmt::format("r {} {} {} {}\n", getpid(), start_of(getpid()), builders, by_user);
  (void)mkdir(folder_of_marks().c_str(), 0700);
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  path_ = path;
  [[maybe_unused]] const ssize_t written = write(file_, text.data(), text.size());
  if (!is_builder_) return;
  marked_file = file_;
  watch_this_process();
}

Mark::~Mark() {
  if (file_ < 0) return;
  if (is_builder_) {
    for (const int fault : kFaults) (void)std::signal(fault, SIG_DFL);
    marked_file = -1;
  }
  unlink(path_.c_str());
  close(file_);
}

}  // namespace ocltensor::opencl::build_marks
