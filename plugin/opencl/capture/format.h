// The layout of capture files: constants and records, shared by writer and reader. README.md says
// what they mean. A change of any field needs a new kVersion.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ocltensor::capture_file {

inline constexpr std::array<char, 8> kMagic = {'o', 'c', 'l', 't', 'c', 'a', 'p', 't'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kPageBytes = 16384;
inline constexpr uint64_t kPagesPerSection = 64;
inline constexpr uint64_t kMaxSectionBytes = uint64_t{64} << 20;  // before packing
// A section unpacks to at most this many times its size in the file, so that a small file never
// needs much memory.
inline constexpr uint64_t kMaxRatio = 64;
inline constexpr uint64_t kMaxInline = 2048;  // data up to this size is stored in its record
inline constexpr uint64_t kMaxRank = 64;      // of a tensor

enum SectionKind : uint32_t { kRecords = 1, kPages = 2, kEnd = 3 };
enum Packing : uint32_t { kPlain = 0, kZlib = 1 };

inline constexpr uint64_t kFileHeaderBytes = 24;     // magic, version, page bytes, 0, CRC of these
inline constexpr uint64_t kSectionHeaderBytes = 32;  // see SectionHeader

struct SectionHeader {
  uint32_t kind = 0, packing = 0;
  uint64_t bytes = 0;     // unpacked
  uint64_t stored = 0;    // in the file, after this header
  uint32_t checksum = 0;  // CRC-32 of the stored bytes; in the file, that of this header follows
};

// Consecutive pages of data. `first` is 0 if all are zero, else the number of the first page,
// counted through the file from 1.
struct PageRun {
  uint64_t pages = 0, first = 0;
};
// Bytes: stored in place, or as pages, the last of which is filled up with zeros.
struct Data {
  std::vector<uint8_t> bytes;
  std::vector<PageRun> runs;
};

// Ids of programs, kernels, buffers, queues and operator calls are unique within a file.
struct Info {
  std::string version;  // of ocltensor
};
struct DeviceInfo {
  std::string name, platform, driver, language;
};
struct Program {
  uint64_t id = 0;
  std::string name, options, source;
};
struct Kernel {
  uint64_t id = 0, program = 0;
  std::string name;
};
struct Buffer {
  uint64_t id = 0, bytes = 0;
  uint64_t parent = 0, origin = 0;  // parent 0: not a sub-buffer
};
struct Contents {  // of a buffer before its first use, from page `page` on
  uint64_t buffer = 0, page = 0;
  std::vector<PageRun> runs;
};
struct Operator {
  uint64_t call = 0;
  std::string name;
};
enum class ArgumentKind : uint8_t { Unset, Bytes, Buffer, Local };
struct Argument {
  ArgumentKind kind = ArgumentKind::Unset;
  uint64_t value = 0;  // a buffer, or bytes of local memory
  std::vector<uint8_t> bytes;
};
struct Launch {
  uint64_t kernel = 0, queue = 0, call = 0;  // call 0: outside of operators
  uint64_t rank = 1;
  std::array<uint64_t, 3> offset{}, global{}, local{};  // local 0: the driver's choice
  std::vector<Argument> arguments;
};
struct Write {
  uint64_t buffer = 0, offset = 0, bytes = 0, queue = 0, call = 0;
  Data data;
};
struct Read {
  uint64_t buffer = 0, offset = 0, bytes = 0, queue = 0, call = 0;
};
struct Copy {
  uint64_t source = 0, source_offset = 0, target = 0, target_offset = 0, bytes = 0;
  uint64_t queue = 0, call = 0;
};
struct Fill {
  uint64_t buffer = 0, offset = 0, bytes = 0, queue = 0, call = 0;
  std::vector<uint8_t> pattern;
};
struct Release {
  uint64_t buffer = 0;
};
// A tensor that the bytes of a written buffer are at the end.
struct Result {
  uint64_t call = 0, output = 0;
  uint64_t buffer = 0, offset = 0;  // bytes, of the first element
  uint8_t dtype = 0;                // ocltensor::DType
  std::vector<int64_t> sizes, strides;
};
struct Change {
  uint64_t page = 0;
  PageRun run;
};
struct Final {  // a written buffer's pages at the end that differ from its contents
  uint64_t buffer = 0;
  std::vector<Change> changes;
};

// A record's tag in the file is its position here, counted from 1.
using Record = std::variant<Info, DeviceInfo, Program, Kernel, Buffer, Contents, Operator, Launch,
                            Write, Read, Copy, Fill, Release, Result, Final>;

// The fields of each record in the file's order; A writes or reads them.
// clang-format off
template <typename A> void fields(A& a, PageRun& r) { a(r.pages, r.first); }
template <typename A> void fields(A& a, Data& r) { a(r.bytes, r.runs); }
template <typename A> void fields(A& a, Info& r) { a(r.version); }
template <typename A> void fields(A& a, DeviceInfo& r) { a(r.name, r.platform, r.driver, r.language); }
template <typename A> void fields(A& a, Program& r) { a(r.id, r.name, r.options, r.source); }
template <typename A> void fields(A& a, Kernel& r) { a(r.id, r.program, r.name); }
template <typename A> void fields(A& a, Buffer& r) { a(r.id, r.bytes, r.parent, r.origin); }
template <typename A> void fields(A& a, Contents& r) { a(r.buffer, r.page, r.runs); }
template <typename A> void fields(A& a, Operator& r) { a(r.call, r.name); }
template <typename A> void fields(A& a, Argument& r) { a(r.kind, r.value, r.bytes); }
template <typename A> void fields(A& a, Launch& r) {
  a(r.kernel, r.queue, r.call, r.rank, r.offset, r.global, r.local, r.arguments);
}
template <typename A> void fields(A& a, Write& r) { a(r.buffer, r.offset, r.bytes, r.queue, r.call, r.data); }
template <typename A> void fields(A& a, Read& r) { a(r.buffer, r.offset, r.bytes, r.queue, r.call); }
template <typename A> void fields(A& a, Copy& r) {
  a(r.source, r.source_offset, r.target, r.target_offset, r.bytes, r.queue, r.call);
}
template <typename A> void fields(A& a, Fill& r) { a(r.buffer, r.offset, r.bytes, r.queue, r.call, r.pattern); }
template <typename A> void fields(A& a, Release& r) { a(r.buffer); }
template <typename A> void fields(A& a, Result& r) {
  a(r.call, r.output, r.buffer, r.offset, r.dtype, r.sizes, r.strides);
}
template <typename A> void fields(A& a, Change& r) { a(r.page, r.run); }
template <typename A> void fields(A& a, Final& r) { a(r.buffer, r.changes); }
// clang-format on

}  // namespace ocltensor::capture_file
