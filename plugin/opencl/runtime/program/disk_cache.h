// Program binaries on disk: one file per content key under $OCLTENSOR_CACHE_DIR, else
// $XDG_CACHE_HOME/ocltensor, else ~/.cache/ocltensor (mode 0700). Files are written under a
// temporary name and renamed; a checksum is verified when they are read. Any problem with an entry
// or the folder means "not cached", never an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ocltensor::opencl::disk_cache {

struct Key {
  uint64_t high, low;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const { return key.low; }
};

Key key_of(const std::string& content);
std::optional<std::vector<unsigned char>> load(const Key& key);
void store(const Key& key, const std::vector<unsigned char>& binary);
void remove(const Key& key);
bool contains(const Key& key);  // it may still turn out to be damaged

// The right to build an entry, held by one holder at a time among all threads and processes that
// share the folder; released by the destructor, or by the end of the process.
class Claim {
 public:
  static constexpr std::chrono::seconds kPatience{60};  // after that it is built twice
  // Waits up to `patience` for another holder. Without a cache folder there is nothing to hold.
  Claim(const Key& key, std::chrono::milliseconds patience);
  ~Claim();
  Claim(const Claim&) = delete;
  bool held() const { return held_; }
  bool waited() const { return waited_; }

 private:
  int file_ = -1;
  bool held_ = false;
  bool waited_ = false;
};

// The file to delete so that an entry is made again.
std::string path_of(const Key& key);

// The folder; empty if there is none or it must not be used, which has been logged.
std::string usable_folder();

// For ocltensor-info: the folder in use and why it is unusable, if it is.
struct State {
  std::string folder;
  std::string problem;
  uint64_t entries = 0;
  uint64_t bytes = 0;
};
State state();

}  // namespace ocltensor::opencl::disk_cache
