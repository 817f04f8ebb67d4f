// Files that are read and written as a whole.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "ocltensor/dims.h"
#include "ocltensor/dtype.h"
#include "ocltensor/error.h"

namespace ocltensor::detail {

// A file to read, with its size.
class InputFile {
 public:
  explicit InputFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
    check(file_ != nullptr, "'{}' cannot be read: {}", path, std::strerror(errno));
    check(std::fseek(file_.get(), 0, SEEK_END) == 0, "'{}' is no file to read from", path);
    size_ = static_cast<uint64_t>(std::ftell(file_.get()));
    seek(0);
  }
  uint64_t size() const { return size_; }
  void seek(uint64_t at) {
    check(std::fseek(file_.get(), static_cast<long>(at), SEEK_SET) == 0, "'{}' cannot be read: {}",
          path_, std::strerror(errno));
  }
  void read(void* to, size_t bytes) {
    check(std::fread(to, 1, bytes, file_.get()) == bytes, "'{}' ends too early, or cannot be read",
          path_);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t size_ = 0;
};

// The bytes of a tensor that a file describes.
inline uint64_t bytes_of(const std::string& path, const Dims& sizes, DType type) {
  int64_t bytes = size_of(type);
  for (const int64_t size : sizes)
    check(size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes),
          "'{}' has a tensor of the impossible shape {}", path, to_string(sizes));
  return static_cast<uint64_t>(bytes);
}

// A file to write: it has its name once it is finished, else it is removed.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path)
      : path_(path),
        temporary_(path + "." + std::to_string(getpid())),
        file_(std::fopen(temporary_.c_str(), "wb")) {
    check(file_ != nullptr, "'{}' cannot be written: {}", path, std::strerror(errno));
  }
  OutputFile(const OutputFile&) = delete;
  ~OutputFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(temporary_.c_str());
  }
  void write(const void* from, size_t bytes) {
    check(std::fwrite(from, 1, bytes, file_) == bytes, "'{}' cannot be written: {}", path_,
          std::strerror(errno));
  }
  void finish() {
    const bool good = std::fclose(file_) == 0;
    file_ = nullptr;
    if (good && std::rename(temporary_.c_str(), path_.c_str()) == 0) return;
    const int why = errno;
    std::remove(temporary_.c_str());
    fail(TB_E_INVALID, "'{}' cannot be written: {}", path_, std::strerror(why));
  }

 private:
  std::string path_, temporary_;
  std::FILE* file_;
};

}  // namespace ocltensor::detail
