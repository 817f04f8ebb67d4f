// Files and memory as sources of a capture.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ocltensor/error.h"
#include "reader.h"

namespace ocltensor::capture_file {
namespace {

class File : public Source {
 public:
  explicit File(const std::string& path) : path_(path) {
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    check(file_ >= 0, "{} cannot be read: {}", path, std::strerror(errno));
    struct stat status {};
    const bool ordinary = ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
    if (!ordinary) ::close(file_);
    check(ordinary, "{} is not a file", path);
    size_ = static_cast<uint64_t>(status.st_size);
  }
  ~File() override { ::close(file_); }
  File(const File&) = delete;
  uint64_t size() const override { return size_; }
  void read(uint64_t offset, std::span<uint8_t> to) const override {
    while (!to.empty()) {
      const ssize_t done = ::pread(file_, to.data(), to.size(), static_cast<off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      check(done > 0, "{} cannot be read at byte {}: {}", path_, offset,
            done == 0 ? "it became shorter" : std::strerror(errno));
      offset += static_cast<uint64_t>(done);
      to = to.subspan(static_cast<size_t>(done));
    }
  }

 private:
  std::string path_;
  int file_;
  uint64_t size_;
};

class Bytes : public Source {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  void read(uint64_t offset, std::span<uint8_t> to) const override {
    if (!to.empty()) std::memcpy(to.data(), bytes_.data() + offset, to.size());
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace

std::unique_ptr<Source> open_file(const std::string& path) { return std::make_unique<File>(path); }
std::unique_ptr<Source> open_bytes(std::span<const uint8_t> bytes) {
  return std::make_unique<Bytes>(bytes);
}

}  // namespace ocltensor::capture_file
