// Checks a capture's records against those before them, and keeps them.
#include "archive.h"
#include "ocltensor/dtype.h"
#include "reader.h"

namespace ocltensor::capture_file {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 48;  // of a buffer: no sum overflows

template <typename Map, typename Value>
void insert(Map& map, uint64_t id, Value value, const char* what) {
  check(id != 0 && map.emplace(id, std::move(value)).second, "{} {} is there twice", what, id);
}

}  // namespace

void Capture::read_records(const Section& section) {
  const std::vector<uint8_t> bytes = unpack(section);
  Decoder decoder(bytes);
  try {
    while (!decoder.done()) {
      Record record = decode(decoder);
      std::visit([this](auto& r) { take(r); }, record);
    }
  } catch (const Error& e) {
    fail(TB_E_INVALID, "in the section at byte {}: {}", section.offset, e.what());
  }
}

std::string Capture::operator_name(uint64_t call) const {
  const auto found = operators_.find(call);
  return found == operators_.end() ? std::string() : found->second;
}

void Capture::check_call(uint64_t call) const {
  check(call == 0 || operators_.contains(call), "there is no operator call {}", call);
}

void Capture::check_range(uint64_t buffer, uint64_t offset, uint64_t bytes) const {
  const auto live = live_.find(buffer);
  check(live != live_.end() && live->second, "there is no buffer {}, or no more", buffer);
  const uint64_t size = buffers_.at(buffer).bytes;
  check(offset <= size && bytes <= size - offset,
        "bytes from {} on, {} of them, are not all in buffer {} of {} bytes", offset, bytes, buffer,
        size);
}

// Checks the number of pages alone: which pages exist is known at the end of the file only.
void Capture::check_data(const Data& data, uint64_t bytes) const {
  if (data.runs.empty()) {
    check(data.bytes.size() == bytes, "{} bytes of data, expected {}", data.bytes.size(), bytes);
    return;
  }
  uint64_t left = pages_of(bytes);
  for (const PageRun& run : data.runs) {
    check(run.pages > 0 && run.pages <= left, "data of {} bytes has too many pages", bytes);
    left -= run.pages;
  }
  check(left == 0 && data.bytes.empty(), "data of {} bytes lacks {} pages", bytes, left);
}

void Capture::take(Info& r) { version_ = std::move(r.version); }
void Capture::take(DeviceInfo& r) { devices_.push_back(std::move(r)); }
void Capture::take(Program& r) {
  insert(program_places_, r.id, programs_.size(), "program");
  programs_.push_back(std::move(r));
}
void Capture::take(Kernel& r) {
  check(program_places_.contains(r.program), "kernel {} is of program {}, which is missing", r.id,
        r.program);
  const uint64_t id = r.id;
  insert(kernels_, id, std::move(r), "kernel");
}
void Capture::take(Buffer& r) {
  check(r.bytes > 0 && r.bytes < kMostBytes, "buffer {} has {} bytes", r.id, r.bytes);
  if (r.parent != 0) {
    check_range(r.parent, r.origin, r.bytes);
    check(buffers_.at(r.parent).parent == 0, "buffer {} is part of a part", r.id);
  }
  insert(buffers_, r.id, r, "buffer");
  live_[r.id] = true;
  commands_.emplace_back(r);
}
void Capture::take(Contents& r) {
  check_range(r.buffer, 0, 0);
  const Buffer& buffer = buffers_.at(r.buffer);
  check(buffer.parent == 0, "buffer {} is a part and has contents of its own", r.buffer);
  uint64_t left = pages_of(buffer.bytes);
  check(r.page <= left, "buffer {} has no page {}", r.buffer, r.page);
  left -= r.page;
  for (const PageRun& run : r.runs) {
    check(run.pages > 0 && run.pages <= left, "buffer {} has too many pages", r.buffer);
    left -= run.pages;
  }
  commands_.emplace_back(std::move(r));
}
void Capture::take(Operator& r) {
  const uint64_t call = r.call;
  insert(operators_, call, std::move(r.name), "operator call");
}
void Capture::take(Launch& r) {
  check(kernels_.contains(r.kernel), "there is no kernel {}", r.kernel);
  check_call(r.call);
  check(r.rank >= 1 && r.rank <= 3, "a launch of {} dimensions", r.rank);
  for (const Argument& a : r.arguments) {
    check(a.kind <= ArgumentKind::Local, "an argument of kind {}", static_cast<int>(a.kind));
    if (a.kind == ArgumentKind::Buffer) check_range(a.value, 0, 0);
    check(a.bytes.empty() == (a.kind != ArgumentKind::Bytes), "an argument of {} bytes, kind {}",
          a.bytes.size(), static_cast<int>(a.kind));
  }
  commands_.emplace_back(std::move(r));
}
void Capture::take(Write& r) {
  check_range(r.buffer, r.offset, r.bytes);
  check_call(r.call);
  check_data(r.data, r.bytes);
  commands_.emplace_back(std::move(r));
}
void Capture::take(Read& r) {
  check_range(r.buffer, r.offset, r.bytes);
  check_call(r.call);
  commands_.emplace_back(r);
}
void Capture::take(Copy& r) {
  check_range(r.source, r.source_offset, r.bytes);
  check_range(r.target, r.target_offset, r.bytes);
  check_call(r.call);
  commands_.emplace_back(r);
}
void Capture::take(Fill& r) {
  check_range(r.buffer, r.offset, r.bytes);
  check_call(r.call);
  const size_t n = r.pattern.size();
  check(n > 0 && n <= 128 && (n & (n - 1)) == 0 && r.bytes % n == 0 && r.offset % n == 0,
        "a fill of {} bytes at {} with a pattern of {}", r.bytes, r.offset, n);
  commands_.emplace_back(std::move(r));
}
void Capture::take(Release& r) {
  check_range(r.buffer, 0, 0);
  live_[r.buffer] = false;
  commands_.emplace_back(r);
}
void Capture::take(Result& r) {
  check_range(r.buffer, r.offset, 0);
  check_call(r.call);
  check(r.dtype < kDTypeCount, "there is no element type {}", r.dtype);
  check(r.sizes.size() == r.strides.size() && r.sizes.size() <= kMaxRank,
        "a tensor with {} sizes and {} strides", r.sizes.size(), r.strides.size());
  const Span span = span_of(r);
  const auto offset = static_cast<int64_t>(r.offset);
  check(offset >= 0 && span.low >= -offset, "a tensor begins before its buffer");
  check_range(r.buffer, static_cast<uint64_t>(offset + span.low),
              static_cast<uint64_t>(span.high - span.low));
  results_.push_back(std::move(r));
}
void Capture::take(Final& r) {
  check_range(r.buffer, 0, 0);
  uint64_t next = 0;
  const uint64_t pages = pages_of(buffers_.at(r.buffer).bytes);
  for (const Change& c : r.changes) {
    check(c.page >= next && c.page <= pages && c.run.pages > 0 && c.run.pages <= pages - c.page,
          "buffer {} has no pages {} to {}, or not in order", r.buffer, c.page,
          c.page + c.run.pages - 1);
    next = c.page + c.run.pages;
  }
  check(ended_.insert(r.buffer).second, "buffer {} ends twice", r.buffer);
  finals_.push_back(std::move(r));
}

Span span_of(const Result& tensor) {
  constexpr int64_t kMost = int64_t{1} << 60;  // no sum of two overflows
  int64_t low = 0;
  int64_t high = 0;
  const int64_t item = size_of(static_cast<DType>(tensor.dtype));
  int64_t count = 1;
  for (const int64_t size : tensor.sizes) {
    check(size >= 0, "a tensor's size is {}", size);
    if (size == 0) return {};
    check(!__builtin_mul_overflow(count, size, &count) && count < kMost,
          "a tensor has too many elements");
  }
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    int64_t reach = 0;
    check(!__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &reach) &&
              !__builtin_mul_overflow(reach, item, &reach) && reach < kMost && reach > -kMost,
          "a tensor's strides are too large");
    (reach < 0 ? low : high) += reach;
    check(low > -kMost && high < kMost, "a tensor's strides are too large");
  }
  check(count <= (high - low) / item + 1, "a tensor's elements share memory");
  return {low, high + item};
}

}  // namespace ocltensor::capture_file
