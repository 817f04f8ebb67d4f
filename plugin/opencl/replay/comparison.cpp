// Compares pages first, and tensors only where one of their pages differs.
#include "comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ocltensor/error.h"

namespace ocltensor::replay {
namespace {

namespace file = capture_file;
constexpr uint64_t kPage = file::kPageBytes;
constexpr uint64_t kChunk = 256 * kPage;

// A written buffer: its captured pages, and which of them differ now.
struct Written {
  uint64_t bytes = 0;
  std::vector<uint64_t> pages;  // numbers in the file
  std::vector<bool> differs;
};
using Buffers = std::unordered_map<uint64_t, Written>;

void put(std::vector<uint64_t>& pages, uint64_t at, const file::PageRun& run) {
  for (uint64_t i = 0; i < run.pages; ++i) pages.at(at + i) = run.first == 0 ? 0 : run.first + i;
}

Buffers expected_pages(const file::Capture& capture, const Replayer& replayer) {
  Buffers buffers;
  for (const file::Final& f : capture.finals()) {
    if (!replayer.alive(f.buffer)) continue;
    Written& w = buffers[f.buffer];
    w.bytes = capture.buffer(f.buffer).bytes;
    w.pages.resize(file::pages_of(w.bytes));
    w.differs.resize(w.pages.size());
  }
  for (const file::Record& command : capture.commands()) {
    const auto* contents = std::get_if<file::Contents>(&command);
    const auto found = contents == nullptr ? buffers.end() : buffers.find(contents->buffer);
    if (found == buffers.end()) continue;
    uint64_t at = contents->page;
    for (const file::PageRun& run : contents->runs) {
      put(found->second.pages, at, run);
      at += run.pages;
    }
  }
  for (const file::Final& f : capture.finals())
    if (const auto found = buffers.find(f.buffer); found != buffers.end())
      for (const file::Change& change : f.changes)
        put(found->second.pages, change.page, change.run);
  return buffers;
}

void read_expected(const file::Capture& capture, const Written& w, uint64_t offset,
                   std::span<uint8_t> to) {
  std::array<uint8_t, kPage> page{};
  while (!to.empty()) {
    const uint64_t skip = offset % kPage;
    const uint64_t count = std::min<uint64_t>(kPage - skip, to.size());
    capture.read_page(w.pages[offset / kPage], page);
    std::memcpy(to.data(), page.data() + skip, count);
    offset += count;
    to = to.subspan(count);
  }
}

struct Range {
  uint64_t begin, end;
};

// How many bytes differ, from `begin` on; those outside of known ranges are counted in `unknown`,
// too.
uint64_t count_different(const uint8_t* a, const uint8_t* b, uint64_t begin, uint64_t bytes,
                         const std::vector<Range>& known, uint64_t& unknown) {
  uint64_t different = 0;
  auto range = std::ranges::lower_bound(known, begin, {}, &Range::end);
  for (uint64_t i = 0; i < bytes; ++i) {
    if (a[i] == b[i]) continue;
    ++different;
    const uint64_t at = begin + i;
    while (range != known.end() && range->end <= at) ++range;
    if (range == known.end() || at < range->begin) ++unknown;
  }
  return different;
}

// The bytes that tensors of a buffer span, sorted and merged.
std::vector<Range> known_ranges(const file::Capture& capture, uint64_t buffer) {
  std::vector<Range> all;
  for (const file::Result& r : capture.results()) {
    if (r.buffer != buffer) continue;
    const file::Span span = file::span_of(r);
    all.push_back(
        {r.offset + static_cast<uint64_t>(span.low), r.offset + static_cast<uint64_t>(span.high)});
  }
  std::ranges::sort(all, {}, &Range::begin);
  std::vector<Range> merged;
  for (const Range& range : all)
    if (!merged.empty() && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  return merged;
}

void compare_pages(const file::Capture& capture, Replayer& replayer, uint64_t id, Written& w,
                   Verdict& verdict) {
  const std::vector<Range> known = known_ranges(capture, id);
  std::vector<uint8_t> expected(std::min(w.bytes, kChunk));
  std::vector<uint8_t> got(expected.size());
  for (uint64_t at = 0; at < w.bytes; at += kChunk) {
    const uint64_t count = std::min(kChunk, w.bytes - at);
    read_expected(capture, w, at, {expected.data(), count});
    replayer.read(id, at, {got.data(), count});
    if (std::memcmp(expected.data(), got.data(), count) == 0) continue;
    for (uint64_t page = 0; page < count; page += kPage) {
      const uint64_t n = std::min(kPage, count - page);
      const uint64_t different =
          count_different(&expected[page], &got[page], at + page, n, known, verdict.unknown_bytes);
      w.differs[(at + page) / kPage] = different != 0;
      verdict.different_bytes += different;
    }
  }
  verdict.written_bytes += w.bytes;
}

// One element as one number, or two if it is complex.
struct Numbers {
  double real = 0, imaginary = 0;
};
template <typename T>
double as(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}
uint16_t half_at(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}
Numbers number_at(DType dtype, const uint8_t* at) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8: return {as<uint8_t>(at)};
    case DType::Int8: return {as<int8_t>(at)};
    case DType::Int16: return {as<int16_t>(at)};
    case DType::Int32: return {as<int32_t>(at)};
    case DType::Int64: return {as<int64_t>(at)};
    case DType::Float16: return {half_to_float(half_at(at))};
    case DType::BFloat16: return {bfloat16_to_float(half_at(at))};
    case DType::Float32: return {as<float>(at)};
    case DType::Float64: return {as<double>(at)};
    case DType::Complex64: return {as<float>(at), as<float>(at + 4)};
    case DType::Complex128: return {as<double>(at), as<double>(at + 8)};
    case DType::Complex32: return {half_to_float(half_at(at)), half_to_float(half_at(at + 2))};
    case DType::UInt16: return {as<uint16_t>(at)};
    case DType::UInt32: return {as<uint32_t>(at)};
    case DType::UInt64: return {as<uint64_t>(at)};
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0FNU: return {float8_to_float(*at, dtype)};
  }
  return {};
}

double difference(double expected, double got) {
  if (expected == got || (std::isnan(expected) && std::isnan(got))) return 0;
  const double d = std::abs(expected - got);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

double finite(double value) { return std::isfinite(value) ? std::abs(value) : 0; }

// Calls body(byte offset from the first element) for each element.
template <typename Body>
void each_element(const file::Result& r, Body body) {
  const int64_t item = size_of(static_cast<DType>(r.dtype));
  if (std::ranges::find(r.sizes, 0) != r.sizes.end()) return;
  std::vector<int64_t> index(r.sizes.size());
  int64_t offset = 0;
  for (;;) {
    body(offset * item);
    size_t d = r.sizes.size();
    for (; d-- > 0;) {
      if (++index[d] < r.sizes[d]) {
        offset += r.strides[d];
        break;
      }
      offset -= r.strides[d] * (r.sizes[d] - 1);
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

void compare_elements(const file::Capture& capture, Replayer& replayer, const Written& w,
                      Tensor& t) {
  const file::Result& r = *t.result;
  const file::Span span = file::span_of(r);
  const uint64_t begin = r.offset + static_cast<uint64_t>(span.low);
  std::vector<uint8_t> expected(static_cast<uint64_t>(span.high - span.low));
  std::vector<uint8_t> got(expected.size());
  read_expected(capture, w, begin, expected);
  replayer.read(r.buffer, begin, got);
  const auto item = static_cast<size_t>(size_of(t.dtype));
  each_element(r, [&](int64_t offset) {
    const uint8_t* a = &expected[static_cast<size_t>(offset - span.low)];
    const uint8_t* b = &got[static_cast<size_t>(offset - span.low)];
    const Numbers want = number_at(t.dtype, a);
    t.magnitude = std::max({t.magnitude, finite(want.real), finite(want.imaginary)});
    if (std::memcmp(a, b, item) == 0) return;
    ++t.different;
    const Numbers have = number_at(t.dtype, b);
    t.error = std::max(
        {t.error, difference(want.real, have.real), difference(want.imaginary, have.imaginary)});
  });
}

void decide(Tensor& t, const Rules& rules) {
  if (t.different == 0) return;
  // A tensor of zeros has no scale of its own: 1 is taken, as sums that cancel leave such errors.
  const double unit = epsilon(t.dtype) * (t.magnitude == 0 ? 1 : t.magnitude);
  t.epsilons = unit == 0 ? std::numeric_limits<double>::infinity() : t.error / unit;
  if (t.error == 0) t.epsilons = 0;  // -0 and 0, or two kinds of NaN
  t.right = !rules.exact && t.epsilons <= rules.tolerance;
}

bool touches_difference(const file::Result& r, const Written& w) {
  const file::Span span = file::span_of(r);
  if (span.low == span.high) return false;
  const uint64_t first = (r.offset + static_cast<uint64_t>(span.low)) / kPage;
  const uint64_t last = (r.offset + static_cast<uint64_t>(span.high) - 1) / kPage;
  for (uint64_t page = first; page <= last; ++page)
    if (w.differs[page]) return true;
  return false;
}

}  // namespace

Verdict compare(const file::Capture& capture, Replayer& replayer, const Rules& rules,
                const Progress& progress) {
  Verdict verdict;
  Buffers buffers = expected_pages(capture, replayer);
  size_t done = 0;
  for (auto& [id, written] : buffers) {
    progress("comparing", done++, buffers.size());
    compare_pages(capture, replayer, id, written, verdict);
  }
  for (const file::Result& r : capture.results()) {
    const auto found = buffers.find(r.buffer);
    if (found == buffers.end()) continue;
    Tensor t{&r, capture.operator_name(r.call), static_cast<DType>(r.dtype)};
    t.elements = 1;
    for (const int64_t size : r.sizes) t.elements *= size;
    if (touches_difference(r, found->second)) compare_elements(capture, replayer, found->second, t);
    decide(t, rules);
    verdict.right = verdict.right && t.right;
    verdict.tensors.push_back(std::move(t));
  }
  progress("comparing", done, done);
  verdict.bit_equal = verdict.different_bytes == 0;
  // Without known types only bits can be compared.
  if (!verdict.bit_equal && (rules.exact || verdict.tensors.empty())) verdict.right = false;
  return verdict;
}

}  // namespace ocltensor::replay
