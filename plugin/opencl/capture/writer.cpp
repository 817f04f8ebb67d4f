// Packs and writes sections.
#include "writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ocltensor::capture_file {
namespace {

constexpr size_t kRecordsPerSection = size_t{1} << 20;  // bytes, about

bool all_zero(std::span<const uint8_t> bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace

void append(std::vector<PageRun>& runs, uint64_t page) {
  if (!runs.empty()) {
    PageRun& last = runs.back();
    if (page == 0 ? last.first == 0 : last.first != 0 && last.first + last.pages == page) {
      ++last.pages;
      return;
    }
  }
  runs.push_back({1, page});
}

Writer::Writer(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  check(file_ >= 0, "the capture {} cannot be written: {}", path, std::strerror(errno));
  Encoder header;
  auto magic = kMagic;
  uint32_t version = kVersion;
  auto page = static_cast<uint32_t>(kPageBytes);
  uint32_t none = 0;
  header(magic, version, page, none);
  uint32_t checksum = crc(header.bytes());
  header(checksum);
  try {
    write(header.bytes().data(), header.bytes().size());
  } catch (...) {
    discard();
    throw;
  }
}

Writer::~Writer() {
  if (file_ >= 0) ::close(file_);
}

void Writer::write(const void* bytes, size_t count) {
  const auto* from = static_cast<const uint8_t*>(bytes);
  while (count > 0) {
    const ssize_t done = ::write(file_, from, count);
    if (done < 0 && errno == EINTR) continue;
    check(done > 0, "the capture {} could not be written to its end: {}", path_,
          std::strerror(errno));
    from += done;
    count -= static_cast<size_t>(done);
    written_ += static_cast<uint64_t>(done);
  }
}

void Writer::section(uint32_t kind, std::span<const uint8_t> bytes) {
  check(bytes.size() <= kMaxSectionBytes, "a record of {} bytes is too large for a capture",
        bytes.size());
  uLongf size = compressBound(bytes.size());
  packed_.resize(size);
  const int code =
      compress2(packed_.data(), &size, bytes.data(), bytes.size(), kind == kPages ? 1 : 6);
  // Weights hardly compress, and stored plainly they are read faster.
  const bool pays =
      code == Z_OK && size < bytes.size() / 32 * 31 && bytes.size() / kMaxRatio < size;
  const std::span<const uint8_t> stored =
      pays ? std::span<const uint8_t>(packed_.data(), size) : bytes;
  Encoder header;
  uint32_t packing = pays ? kZlib : kPlain;
  uint64_t plain_bytes = bytes.size();
  uint64_t stored_bytes = stored.size();
  uint32_t checksum = crc(stored);
  header(kind, packing, plain_bytes, stored_bytes, checksum);
  uint32_t own = crc(header.bytes());
  header(own);
  write(header.bytes().data(), header.bytes().size());
  write(stored.data(), stored.size());
  ++sections_;
}

void Writer::flush_records() {
  if (records_.bytes().empty()) return;
  section(kRecords, records_.bytes());
  records_.bytes().clear();
}

void Writer::flush_pages() {
  if (pages_.empty()) return;
  section(kPages, pages_);
  pages_.clear();
}

void Writer::add(Record record) {
  encode(records_, record);
  if (records_.bytes().size() >= kRecordsPerSection) flush_records();
}

uint64_t Writer::page(std::span<const uint8_t> bytes) {
  if (all_zero(bytes)) return 0;
  const size_t begin = pages_.size();
  pages_.insert(pages_.end(), bytes.begin(), bytes.end());
  pages_.resize(begin + kPageBytes);
  const XXH128_hash_t hash = XXH3_128bits(pages_.data() + begin, kPageBytes);
  const auto [known, is_new] = known_.try_emplace({hash.high64, hash.low64}, page_count_ + 1);
  if (!is_new) {
    pages_.resize(begin);
    return known->second;
  }
  ++page_count_;
  if (pages_.size() == kPagesPerSection * kPageBytes) flush_pages();
  return page_count_;
}

Data Writer::data(std::span<const uint8_t> bytes) {
  Data data;
  if (bytes.size() <= kMaxInline) {
    data.bytes.assign(bytes.begin(), bytes.end());
    return data;
  }
  for (size_t at = 0; at < bytes.size(); at += kPageBytes)
    append(data.runs, page(bytes.subspan(at, std::min<size_t>(kPageBytes, bytes.size() - at))));
  return data;
}

void Writer::finish() {
  flush_pages();
  flush_records();
  Encoder end;
  end(sections_, page_count_);
  section(kEnd, end.bytes());
  const int file = file_;
  file_ = -1;
  check(::close(file) == 0, "the capture {} could not be written to its end: {}", path_,
        std::strerror(errno));
}

void Writer::discard() noexcept {
  struct stat status {};
  const bool ordinary = file_ >= 0 && ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  if (ordinary) ::unlink(path_.c_str());
}

}  // namespace ocltensor::capture_file
