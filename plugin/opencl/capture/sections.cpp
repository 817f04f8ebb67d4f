// Reads a capture's sections and pages: headers, checksums, unpacking.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "archive.h"
#include "reader.h"

namespace ocltensor::capture_file {
namespace {

constexpr size_t kKeptSections = 8;  // unpacked, 1 MiB each

// Verifies a header's own checksum; returns the header without it.
template <size_t N>
std::span<const uint8_t> checked(const std::array<uint8_t, N>& bytes, const char* what,
                                 uint64_t offset) {
  const std::span<const uint8_t> all(bytes);
  Decoder last(all.last(4));
  uint32_t stored = 0;
  last(stored);
  check(crc(all.first(N - 4)) == stored, "{} at byte {} is damaged: its checksum does not match",
        what, offset);
  return all.first(N - 4);
}

}  // namespace

Capture::Capture(std::unique_ptr<Source> source) : source_(std::move(source)) { read_sections(); }

void Capture::read_sections() {
  const uint64_t size = source_->size();
  std::array<uint8_t, kFileHeaderBytes> head{};
  source_->read(0, std::span(head).first(std::min<uint64_t>(size, head.size())));
  check(size >= head.size() && std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0,
        "this is no capture file: it does not begin with 'ocltcapt'");
  Decoder header(std::span<const uint8_t>(head).subspan(kMagic.size()));
  uint32_t version = 0;
  uint32_t page = 0;
  header(version, page);
  check(
      version == kVersion,
      "the capture has format version {}, this program reads version {}: use the ocltensor-replay "
      "of the version that made it",
      version, kVersion);
  (void)checked(head, "the file's header", 0);
  check(page == kPageBytes, "pages of {} bytes, expected {}", page, kPageBytes);

  uint64_t at = head.size();
  for (uint64_t count = 0;; ++count) {
    std::array<uint8_t, kSectionHeaderBytes> bytes{};
    check(size - at >= bytes.size(),
          "the capture ends at byte {} before its end mark: it was truncated, or its process ended "
          "before the capture was stopped",
          size);
    source_->read(at, bytes);
    Decoder fields(checked(bytes, "the section", at));
    SectionHeader h;
    fields(h.kind, h.packing, h.bytes, h.stored, h.checksum);
    at += bytes.size();
    check(h.stored <= size - at,
          "the capture is truncated: the section at byte {} has {} bytes, {} are left",
          at - bytes.size(), h.stored, size - at);
    check(h.bytes <= kMaxSectionBytes && h.packing <= kZlib &&
              (h.packing == kZlib ? h.bytes / kMaxRatio <= h.stored : h.bytes == h.stored),
          "the section at byte {} claims {} bytes packed into {} (packing {})", at - bytes.size(),
          h.bytes, h.stored, h.packing);
    const Section section{at, h.bytes, h.stored, page_count_ + 1, h.packing, h.checksum};
    at += h.stored;
    if (h.kind == kPages) {
      check(h.bytes > 0 && h.bytes % kPageBytes == 0 && h.bytes <= kPagesPerSection * kPageBytes,
            "the section at byte {} has {} bytes of pages", section.offset, h.bytes);
      page_sections_.push_back(section);
      page_count_ += h.bytes / kPageBytes;
    } else if (h.kind == kRecords) {
      read_records(section);
    } else {
      check(h.kind == kEnd, "the section at byte {} is of an unknown kind {}", section.offset,
            h.kind);
      const std::vector<uint8_t> payload = unpack(section);
      Decoder end(payload);
      uint64_t sections = 0;
      uint64_t pages = 0;
      end(sections, pages);
      check(sections == count && pages == page_count_ && end.done(),
            "the capture's end mark tells of {} sections and {} pages, {} and {} were found",
            sections, pages, count, page_count_);
      check(at == size, "{} bytes follow the capture's end mark", size - at);
      break;
    }
  }
  // Pages may follow the records that refer to them, so runs are checked at the end.
  for (const Record& command : commands_) {
    if (const auto* c = std::get_if<Contents>(&command)) check_runs(c->runs);
    if (const auto* w = std::get_if<Write>(&command)) check_runs(w->data.runs);
  }
  for (const Final& f : finals_)
    for (const Change& change : f.changes) check_runs({change.run});
}

std::vector<uint8_t> Capture::unpack(const Section& section) const {
  std::vector<uint8_t> stored(section.stored);
  source_->read(section.offset, stored);
  check(crc(stored) == section.checksum,
        "the section at byte {} is damaged: its checksum does not match", section.offset);
  if (section.packing == kPlain) return stored;
  std::vector<uint8_t> bytes(section.bytes);
  uLongf size = section.bytes;
  const int code = uncompress(bytes.data(), &size, stored.data(), section.stored);
  check(code == Z_OK && size == section.bytes,
        "the section at byte {} does not unpack: zlib says {}", section.offset, code);
  return bytes;
}

uint64_t Capture::check_runs(const std::vector<PageRun>& runs) const {
  uint64_t pages = 0;
  for (const PageRun& run : runs) {
    check(run.first == 0 || (run.first <= page_count_ && run.pages <= page_count_ - run.first + 1),
          "pages {} to {} are named, the file has {}", run.first, run.first + run.pages - 1,
          page_count_);
    check(run.pages <= UINT64_MAX - pages, "too many pages");
    pages += run.pages;
  }
  return pages;
}

void Capture::read_page(uint64_t number, std::span<uint8_t> to) const {
  check(to.size() <= kPageBytes && number <= page_count_, "there is no page {}", number);
  if (number == 0) {
    std::ranges::fill(to, uint8_t{0});
    return;
  }
  const auto after = std::ranges::upper_bound(page_sections_, number, {}, &Section::first_page);
  const Section* section = &*(after - 1);
  auto found = std::ranges::find(unpacked_, section, [](const auto& u) { return u.first; });
  if (found == unpacked_.end()) {
    unpacked_.emplace_front(section, unpack(*section));
    if (unpacked_.size() > kKeptSections) unpacked_.pop_back();
  } else {
    unpacked_.splice(unpacked_.begin(), unpacked_, found);
  }
  const uint8_t* from =
      unpacked_.front().second.data() + (number - section->first_page) * kPageBytes;
  std::memcpy(to.data(), from, to.size());
}

void Capture::read(const Data& data, uint64_t offset, std::span<uint8_t> to) const {
  if (data.runs.empty()) {
    check(offset <= data.bytes.size() && to.size() <= data.bytes.size() - offset,
          "data of {} bytes has no bytes {} to {}", data.bytes.size(), offset, offset + to.size());
    if (!to.empty()) std::memcpy(to.data(), data.bytes.data() + offset, to.size());
    return;
  }
  std::array<uint8_t, kPageBytes> page{};
  uint64_t begin = 0;  // of the current run
  for (const PageRun& run : data.runs) {
    const uint64_t end = begin + run.pages * kPageBytes;
    while (!to.empty() && offset < end) {
      const uint64_t index = (offset - begin) / kPageBytes;
      const uint64_t skip = (offset - begin) % kPageBytes;
      const uint64_t count = std::min<uint64_t>(kPageBytes - skip, to.size());
      read_page(run.first == 0 ? 0 : run.first + index, page);
      std::memcpy(to.data(), page.data() + skip, count);
      to = to.subspan(count);
      offset += count;
    }
    begin = end;
  }
  check(to.empty(), "data ends {} bytes too early", to.size());
}

}  // namespace ocltensor::capture_file
