// Reads capture files, trusting nothing in them: every bound, reference and checksum is verified;
// broken data raises an Error(TB_E_INVALID) that says what is wrong and where.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "format.h"

namespace ocltensor::capture_file {

// Where a capture's bytes come from: a file or memory.
class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t size() const = 0;
  virtual void read(uint64_t offset, std::span<uint8_t> to) const = 0;  // within size()
};
std::unique_ptr<Source> open_file(const std::string& path);
std::unique_ptr<Source> open_bytes(std::span<const uint8_t> bytes);  // `bytes` must outlive it

// A capture in memory, except its pages, which are read from the source. Not thread-safe.
class Capture {
 public:
  // Reads and checks everything but the pages, which are checked when they are read.
  explicit Capture(std::unique_ptr<Source> source);

  uint64_t file_bytes() const { return source_->size(); }
  const std::string& version() const { return version_; }
  const std::vector<DeviceInfo>& devices() const { return devices_; }
  const std::vector<Program>& programs() const { return programs_; }
  // Buffer, Contents, Launch, Write, Read, Copy, Fill, Release: in the order of execution.
  const std::vector<Record>& commands() const { return commands_; }
  const std::vector<Result>& results() const { return results_; }
  const std::vector<Final>& finals() const { return finals_; }

  const Program& program(uint64_t id) const { return programs_[program_places_.at(id)]; }
  const Kernel& kernel(uint64_t id) const { return kernels_.at(id); }
  const std::unordered_map<uint64_t, Kernel>& kernels() const { return kernels_; }
  const Buffer& buffer(uint64_t id) const { return buffers_.at(id); }
  const std::unordered_map<uint64_t, Buffer>& buffers() const { return buffers_; }
  std::string operator_name(uint64_t call) const;  // empty: outside of operators

  // Page `number` of the file, kPageBytes of it; 0: zeros.
  void read_page(uint64_t number, std::span<uint8_t> to) const;
  // Reads the bytes [offset, offset + to.size()) of data that has `bytes` bytes in all.
  void read(const Data& data, uint64_t offset, std::span<uint8_t> to) const;

 private:
  struct Section {
    uint64_t offset, bytes, stored, first_page;
    uint32_t packing, checksum;
  };
  void read_sections();
  std::vector<uint8_t> unpack(const Section& section) const;
  void read_records(const Section& section);
  void check_data(const Data& data, uint64_t bytes) const;
  uint64_t check_runs(const std::vector<PageRun>& runs) const;  // returns the number of pages
  void check_range(uint64_t buffer, uint64_t offset, uint64_t bytes) const;
  void check_call(uint64_t call) const;
  void take(Info& r);
  void take(DeviceInfo& r);
  void take(Program& r);
  void take(Kernel& r);
  void take(Buffer& r);
  void take(Contents& r);
  void take(Operator& r);
  void take(Launch& r);
  void take(Write& r);
  void take(Read& r);
  void take(Copy& r);
  void take(Fill& r);
  void take(Release& r);
  void take(Result& r);
  void take(Final& r);

  std::unique_ptr<Source> source_;
  std::vector<Section> page_sections_;
  uint64_t page_count_ = 0;
  std::string version_;
  std::vector<DeviceInfo> devices_;
  std::vector<Program> programs_;
  std::unordered_map<uint64_t, size_t> program_places_;
  std::unordered_map<uint64_t, Kernel> kernels_;
  std::unordered_map<uint64_t, Buffer> buffers_;
  std::unordered_map<uint64_t, bool> live_;  // by buffer: whether it exists at this point
  std::unordered_set<uint64_t> ended_;       // buffers with a Final
  std::unordered_map<uint64_t, std::string> operators_;
  std::vector<Record> commands_;
  std::vector<Result> results_;
  std::vector<Final> finals_;
  // The most recently unpacked sections, newest first.
  mutable std::list<std::pair<const Section*, std::vector<uint8_t>>> unpacked_;
};

// The bytes that a tensor's elements span, relative to its first one.
struct Span {
  int64_t low = 0, high = 0;  // [low, high); both 0 where it has no elements
};
// Throws if numbers overflow or elements overlap.
Span span_of(const Result& tensor);

inline uint64_t pages_of(uint64_t bytes) {
  return bytes / kPageBytes + (bytes % kPageBytes != 0 ? 1 : 0);
}

}  // namespace ocltensor::capture_file
