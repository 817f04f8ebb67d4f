// Reads and writes cached program binaries.
#include "disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/config.h"
#include "base/log.h"

namespace ocltensor::opencl::disk_cache {
namespace {

namespace fs = std::filesystem;

struct Header {
  char magic[8];
  uint32_t format;
  uint32_t reserved;
  uint64_t bytes;
  uint64_t checksum;
  Key key;
};
constexpr char kMagic[8] = {'o', 'c', 'l', 't', 'p', 'r', 'o', 'g'};
constexpr uint32_t kFormat = 1;

// Why a folder cannot hold the cache; empty if it can. The folder is created if necessary.
std::string problem_of(const std::string& folder) {
  if (folder.empty())
    return "none of OCLTENSOR_CACHE_DIR, XDG_CACHE_HOME and HOME is an absolute path";
  const fs::path parent = fs::path(folder).parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return fmt::format("'{}' cannot be made: {}", parent.string(), error.message());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fmt::format("'{}' cannot be made: {}", folder, std::strerror(errno));
  struct stat st {};
  const char* what = nullptr;
  if (stat(folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    what = "no folder";
  else if (st.st_uid != geteuid())
    what = "owned by another user";
  else if ((st.st_mode & 0022) != 0)
    what = "writable by others";
  else if (access(folder.c_str(), W_OK) != 0)
    what = "not writable";
  return what == nullptr ? "" : fmt::format("'{}' is {}", folder, what);
}

// The cache's folder. A problem with it disables the cache for the process.
const State& folder() {
  static const State& s = *new State([] {
    State opened;
    opened.folder = config::cache_folder();
    opened.problem = problem_of(opened.folder);
    if (!opened.problem.empty())
      logging::warning("cache",
                       "programs are not kept on disk, each process compiles them anew: {}. Set "
                       "OCLTENSOR_CACHE_DIR to a folder of your own",
                       opened.problem);
    return opened;
  }());
  return s;
}

}  // namespace

std::string path_of(const Key& key) {
  return fmt::format("{}/{:016x}{:016x}.bin", folder().folder, key.high, key.low);
}

Key key_of(const std::string& content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return {hash.high64, hash.low64};
}

std::optional<std::vector<unsigned char>> load(const Key& key) {
  if (!folder().problem.empty()) return std::nullopt;
  const int file = open(path_of(key).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  Header header{};
  std::vector<unsigned char> binary;
  bool good = read(file, &header, sizeof header) == static_cast<ssize_t>(sizeof header) &&
              std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 && header.format == kFormat &&
              header.key == key;
  struct stat st {};
  good = good && fstat(file, &st) == 0 &&
         static_cast<uint64_t>(st.st_size) == sizeof header + header.bytes;
  if (good) {
    binary.resize(header.bytes);
    size_t got = 0;
    while (got < binary.size()) {
      const ssize_t n = read(file, binary.data() + got, binary.size() - got);
      if (n <= 0) break;
      got += static_cast<size_t>(n);
    }
    good = got == binary.size() && XXH3_64bits(binary.data(), binary.size()) == header.checksum;
  }
  close(file);
  if (good) return binary;
  logging::warning("cache", "{} is damaged; it will be built again", path_of(key));
  remove(key);
  return std::nullopt;
}

void store(const Key& key, const std::vector<unsigned char>& binary) {
  if (!folder().problem.empty()) return;
  static std::atomic<unsigned> serial{0};
  const std::string path = path_of(key);
  const std::string temporary = fmt::format("{}.{}.{}", path, getpid(), serial++);
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return;
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format = kFormat;
  header.bytes = binary.size();
  header.checksum = XXH3_64bits(binary.data(), binary.size());
  header.key = key;
  const bool good =
      write(file, &header, sizeof header) == static_cast<ssize_t>(sizeof header) &&
      write(file, binary.data(), binary.size()) == static_cast<ssize_t>(binary.size());
  close(file);
  if (!good || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

void remove(const Key& key) { unlink(path_of(key).c_str()); }

bool contains(const Key& key) {
  return folder().problem.empty() && access(path_of(key).c_str(), R_OK) == 0;
}

// Locks one byte of a file for each entry. A lock of an open file description (OFD) belongs to that
// description alone, also among threads, and ends with it.
Claim::Claim(const Key& key, std::chrono::milliseconds patience) {
  if (!folder().problem.empty()) return;
  file_ = open((folder().folder + "/building.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(key.low >> 2);
  byte.l_len = 1;
  const auto begin = std::chrono::steady_clock::now();
  while (fcntl(file_, F_OFD_SETLK, &byte) != 0) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return;  // no locks on this disk
    if (std::chrono::steady_clock::now() - begin >= patience) return;
    waited_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  held_ = true;
}

Claim::~Claim() {
  if (file_ >= 0) close(file_);
}

std::string usable_folder() { return folder().problem.empty() ? folder().folder : std::string(); }

State state() {
  State s = folder();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(s.folder, error)) {
    if (entry.path().extension() != ".bin") continue;
    ++s.entries;
    s.bytes += entry.file_size(error);
  }
  return s;
}

}  // namespace ocltensor::opencl::disk_cache
