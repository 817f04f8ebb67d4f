// Checks of streams and events: order across streams, queries, timing.
#include <algorithm>
#include <thread>

#include "../checks.h"

namespace ocltensor::conformance {
namespace {

struct Stream {
  Checker& c;
  tb_stream handle = nullptr;
  explicit Stream(Checker& checker) : c(checker) {
    testing::must(c.api().stream->create, c.device(), int32_t{0}, &handle);
  }
  ~Stream() { c.expect_status(TB_OK, "stream.destroy", c.api().stream->destroy, handle); }
};

struct Event {
  Checker& c;
  tb_event handle = nullptr;
  Event(Checker& checker, uint32_t flags) : c(checker) {
    testing::must(c.api().event->create, c.device(), flags, &handle);
  }
  ~Event() { c.expect_status(TB_OK, "event.destroy", c.api().event->destroy, handle); }
};

void life(Checker& c) {
  const auto& s = *c.api().stream;
  tb_stream first = nullptr, second = nullptr;
  c.expect_status(TB_OK, "stream.default_stream", s.default_stream, c.device(), &first);
  c.expect_status(TB_OK, "stream.default_stream", s.default_stream, c.device(), &second);
  c.expect(first != nullptr && first == second, "the default stream changes");
  c.expect_status(TB_OK, "stream.destroy(NULL)", s.destroy, static_cast<tb_stream>(nullptr));
  c.expect(s.default_stream(99, &first, nullptr) < 0, "device 99 has a default stream");
  const Stream own(c);
  int32_t device = -1;
  c.expect_status(TB_OK, "stream.device", s.device, own.handle, &device);
  c.expect(device == c.device(), "a stream of device {} says {}", c.device(), device);
  c.expect_status(TB_OK, "stream.synchronize", s.synchronize, own.handle);
  c.expect_status(TB_OK, "stream.query of an idle stream", s.query, own.handle);
  c.expect(s.synchronize(nullptr, nullptr) < 0, "stream.synchronize(NULL) succeeds");
}

// A producer and a consumer stream, ordered by an event alone.
void order(Checker& c) {
  constexpr uint64_t kBytes = 1 << 20;
  const Stream producer(c), consumer(c);
  const testing::DeviceMemory a(c.backend(), kBytes), b(c.backend(), kBytes);
  const auto& t = *c.api().transfer;
  std::vector<unsigned char> result(kBytes);
  for (int round = 1; round <= 10; ++round) {
    const Event done(c, 0), consumed(c, 0);
    const auto value = static_cast<unsigned char>(round);
    testing::must(t.fill, producer.handle, a.address(), static_cast<const void*>(&value), 1u,
                  kBytes);
    testing::must(c.api().event->record, done.handle, producer.handle);
    testing::must(c.api().stream->wait_event, consumer.handle, done.handle);
    testing::must(t.on_device, consumer.handle, b.address(), consumer.handle, a.address(), kBytes);
    testing::must(c.api().event->record, consumed.handle, consumer.handle);
    testing::must(c.api().stream->wait_event, producer.handle, consumed.handle);
    testing::must(t.to_host, consumer.handle, static_cast<void*>(result.data()), b.address(),
                  kBytes, 0u);
    c.expect(std::all_of(result.begin(), result.end(), [&](auto v) { return v == value; }),
             "round {}: the consumer ran before the event", round);
  }
  testing::must(c.api().memory->record_use, a.address(), consumer.handle);
}

void queries(Checker& c) {
  const auto& e = *c.api().event;
  const Event plain(c, 0);
  c.expect_status(TB_NOT_READY, "event.query, never recorded", e.query, plain.handle);
  c.expect_status(TB_OK, "event.synchronize, never recorded", e.synchronize, plain.handle);
  c.expect_status(TB_OK, "stream.wait_event, never recorded", c.api().stream->wait_event,
                  c.stream(), plain.handle);
  c.expect_status(TB_OK, "event.record", e.record, plain.handle, c.stream());
  c.expect_status(TB_OK, "event.synchronize", e.synchronize, plain.handle);
  c.expect_status(TB_OK, "event.query after synchronize", e.query, plain.handle);
  c.expect_status(TB_OK, "event.record, a second time", e.record, plain.handle, c.stream());
  c.expect_status(TB_OK, "event.synchronize", e.synchronize, plain.handle);
  c.expect_status(TB_OK, "event.destroy(NULL)", e.destroy, static_cast<tb_event>(nullptr));
}

void timing(Checker& c) {
  const auto& e = *c.api().event;
  tb_event first = nullptr;
  ErrorBuffer error;
  const tb_status status = e.create(c.device(), TB_EVENT_TIMING, &first, error.get());
  if (c.declines("events with timing", status, error)) return;
  if (status == TB_OK) c.expect_status(TB_OK, "event.destroy", e.destroy, first);
  const Event start(c, TB_EVENT_TIMING), end(c, TB_EVENT_TIMING), plain(c, 0);
  double ms = -1;
  const auto fails = [&](const char* what, tb_event from, tb_event to) {
    ErrorBuffer error;
    const tb_status status = e.elapsed_ms(from, to, &ms, error.get());
    c.expect(status == TB_E_STATE || status == TB_E_INVALID, "elapsed_ms {}: status {}", what,
             status);
  };
  fails("before record", start.handle, end.handle);
  const testing::DeviceMemory a(c.backend(), 1 << 22);
  const unsigned char value = 1;
  testing::must(e.record, start.handle, c.stream());
  testing::must(e.record, plain.handle, c.stream());
  testing::must(c.api().transfer->fill, c.stream(), a.address(), static_cast<const void*>(&value),
                1u, a.bytes());
  testing::must(e.record, end.handle, c.stream());
  c.expect_status(TB_OK, "event.elapsed_ms", e.elapsed_ms, start.handle, end.handle, &ms);
  c.expect(ms > 0 && ms < 60000, "elapsed_ms around a fill of 4 MiB is {}", ms);
  fails("without timing", plain.handle, end.handle);
}

// Threads with streams of their own, at once.
void threads(Checker& c) {
  constexpr uint64_t kBytes = 1 << 16;
  std::vector<std::string> problems(4);
  std::vector<std::thread> running;
  for (size_t k = 0; k < problems.size(); ++k)
    running.emplace_back([&c, &problems, k] {
      try {
        tb_stream stream = nullptr;
        testing::must(c.api().stream->create, c.device(), int32_t{0}, &stream);
        const auto value = static_cast<unsigned char>(k + 1);
        std::vector<unsigned char> result(kBytes);
        for (int round = 0; round < 25; ++round) {
          tb_address a = 0;
          testing::must(c.api().memory->allocate, c.device(), kBytes, stream, &a);
          testing::must(c.api().transfer->fill, stream, a, static_cast<const void*>(&value), 1u,
                        kBytes);
          testing::must(c.api().transfer->to_host, stream, static_cast<void*>(result.data()), a,
                        kBytes, 0u);
          testing::must(c.api().memory->free, a, stream);
          if (!std::all_of(result.begin(), result.end(), [&](auto v) { return v == value; }))
            problems[k] = "saw another thread's bytes";
        }
        testing::must(c.api().stream->destroy, stream);
      } catch (const std::exception& e) {
        problems[k] = e.what();
      }
    });
  for (auto& t : running) t.join();
  for (const auto& p : problems) c.expect(p.empty(), "a thread with its own stream: {}", p);
}

// Nothing but fills and copies, which need no program of their own anywhere.
void rehearsal(Checker& c) {
  const auto& s = *c.api().stream;
  if (s.struct_size <= offsetof(tb_stream_api, build_missing))
    return c.decline("the table ends before rehearsals");
  const Stream own(c);
  ErrorBuffer error;
  const tb_status status = s.begin_rehearsal(own.handle, error.get());
  uint32_t missing = 77;
  if (status == TB_UNSUPPORTED) {
    c.expect_status(TB_UNSUPPORTED, "stream.end_rehearsal", s.end_rehearsal, own.handle, &missing);
    c.expect_status(TB_UNSUPPORTED, "stream.build_missing", s.build_missing, own.handle, &missing);
    return;
  }
  c.expect(status == TB_OK, "stream.begin_rehearsal: status {}: {}", status, error.text());
  c.expect_status(TB_E_STATE, "stream.begin_rehearsal, again", s.begin_rehearsal, own.handle);
  c.expect_status(TB_E_STATE, "stream.build_missing, rehearsing", s.build_missing, own.handle,
                  &missing);
  constexpr uint64_t kBytes = 4096;
  const testing::DeviceMemory memory(c.backend(), kBytes);
  std::vector<unsigned char> result(kBytes);
  const unsigned char value = 9;
  testing::must(c.api().transfer->fill, own.handle, memory.address(),
                static_cast<const void*>(&value), 1u, kBytes);
  testing::must(c.api().transfer->to_host, own.handle, static_cast<void*>(result.data()),
                memory.address(), kBytes, 0u);
  c.expect(std::ranges::all_of(result, [](auto v) { return v == 9; }),
           "a rehearsal that misses nothing left something undone");
  c.expect_status(TB_OK, "stream.end_rehearsal", s.end_rehearsal, own.handle, &missing);
  c.expect(missing == 0, "a fill and a copy miss {} programs", missing);
  missing = 77;
  c.expect_status(TB_OK, "stream.build_missing", s.build_missing, own.handle, &missing);
  c.expect(missing == 0, "{} programs are left of none", missing);
}

constexpr AbiCheck kList[] = {
    {"stream life", life, rule::kStream},     {"order across streams", order, rule::kEvent},
    {"event queries", queries, rule::kEvent}, {"event timing", timing, rule::kEvent},
    {"threads", threads, rule::kThreads},     {"rehearsal", rehearsal, rule::kStream}};

}  // namespace

const std::span<const AbiCheck> kStreamChecks = kList;

}  // namespace ocltensor::conformance
