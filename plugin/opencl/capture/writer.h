// Writes a capture file incrementally: records and pages are packed section by section; only the
// pages' hashes stay in memory. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "archive.h"

namespace ocltensor::capture_file {

void append(std::vector<PageRun>& runs, uint64_t page);

class Writer {
 public:
  // Throws Error(TB_E_INVALID) if the file cannot be written.
  explicit Writer(const std::string& path);
  ~Writer();
  Writer(const Writer&) = delete;

  // These throw Error(TB_E_INVALID) with the system's reason, e.g. a full disk.
  void add(Record record);
  // The number of a page with these bytes (at most kPageBytes; zeros follow), which is written if
  // it is new; 0 if all bytes are zero.
  uint64_t page(std::span<const uint8_t> bytes);
  Data data(std::span<const uint8_t> bytes);
  void finish();
  // Closes the file, and removes it if it is an ordinary one, as its content is useless.
  void discard() noexcept;

  uint64_t bytes_written() const { return written_; }

 private:
  struct Hash {
    uint64_t high, low;
    bool operator==(const Hash&) const = default;
  };
  struct HashHash {
    size_t operator()(const Hash& h) const { return h.low; }
  };
  void flush_records();
  void flush_pages();
  void section(uint32_t kind, std::span<const uint8_t> bytes);
  void write(const void* bytes, size_t count);

  std::string path_;
  int file_ = -1;
  uint64_t written_ = 0;
  uint64_t sections_ = 0;
  Encoder records_;
  std::vector<uint8_t> pages_;
  std::vector<uint8_t> packed_;
  uint64_t page_count_ = 0;
  std::unordered_map<Hash, uint64_t, HashHash> known_;
};

}  // namespace ocltensor::capture_file
