// The launch thread: order, bursts, a full ring, and commands that the driver refuses later than
// they were made.
#include "runtime/queue/launch_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>

#include "any_call.h"
#include "base/config.h"
#include "call/proof_numbers.h"
#include "fresh_source.h"
#include "kernels/copy.h"
#include "runtime/driver/clhpp.h"
#include "runtime/kernels/find_kernel.h"
#include "runtime/kernels/launch.h"

namespace ocltensor::opencl {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A launch of this test is a number: the first size of its range.
void make(LaunchThread& thread, std::vector<size_t>& handed_over, size_t number) {
  Command* launch = thread.next();
  if (launch == nullptr) {
    const auto held = thread.hold(true);
    handed_over.push_back(number);
    return;
  }
  launch->range = {1, {number, 1, 1}, {}};
  thread.push();
}

TEST(LaunchThread, KeepsTheOrderWhoeverHandsOver) {
  constexpr size_t kLaunches = 200000;
  std::vector<size_t> handed_over;
  {
    LaunchThread thread([&](Command& l) { handed_over.push_back(l.range.global[0]); }, true);
    for (size_t i = 0; i < kLaunches; ++i) {
      make(thread, handed_over, i);
      if (i % 5000 == 4999) {
        const auto held = thread.hold();
        ASSERT_EQ(handed_over.size(), i + 1);
      }
      if (i % 20000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it sleeps
    }
    (void)thread.hold();
  }
  std::vector<size_t> expected(kLaunches);
  std::iota(expected.begin(), expected.end(), size_t{0});
  EXPECT_EQ(handed_over, expected);
}

TEST(LaunchThread, TakesNothingBeforeABurstNorAfterItsEnd) {
  LaunchThread thread([](Command&) {}, true);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(thread.next(), nullptr);
    (void)thread.hold();
  }
  int at_once = 0;
  while (thread.next() == nullptr) ASSERT_LT(++at_once, 100);
  EXPECT_GT(at_once, 1);
  thread.push();
  EXPECT_NE(thread.next(), nullptr);
  thread.stop();
  EXPECT_EQ(thread.next(), nullptr);
  (void)thread.hold();
}

// One of each: a number, what has the size of a structure, local memory.
TEST(ArgumentChanges, ComeOutAsTheyWentIn) {
  ArgumentChanges changes;
  EXPECT_TRUE(changes.empty());
  const uint16_t number = 0x1234;
  const std::array<char, 13> structure{"twelve chars"};
  changes.add(3, sizeof number, &number);
  changes.add(0, structure.size(), structure.data());
  changes.add(7, 4096, nullptr);
  changes.add(1, sizeof number, &number);
  std::string seen;
  const auto tell = [&](uint32_t index, size_t bytes, const void* value) {
    seen += fmt::format("{}:{}:{} ", index, bytes,
                        value == nullptr ? "local"
                        : bytes == 2     ? fmt::format("{:x}", *static_cast<const uint16_t*>(value))
                                         : std::string(static_cast<const char*>(value)));
    return index == 7 ? 5 : 0;
  };
  EXPECT_EQ(changes.for_each(tell), 5);
  EXPECT_EQ(seen, "3:2:1234 0:13:twelve chars 7:4096:local ");
}

class DeferredLaunches : public testing::Test {
 protected:
  static constexpr int64_t kNumbers = 64;
  DeferredLaunches() {
    setenv("OCLTENSOR_LAUNCH_THREAD", "1", 1);
    call_.emplace();
    memory_.emplace(**call_, kNumbers * 4);
  }
  // arange: out[i] = start + i; `local` that does not divide the range is refused.
  void count_from(int64_t start, int64_t local) { arange(*memory_, kNumbers, start, local); }
  void arange(const Scratch& out, int64_t count, int64_t start, int64_t local) {
    any_call()
        .launch(kernels::copy::create::arange, integers(),
                {.out = out,
                 .stride = 1,
                 .n = count,
                 .start = start,
                 .step = 1,
                 .start_bits = uint64_t{0},
                 .step_bits = uint64_t{0}})
        .run({count, 1, 1}, {local, 1, 1});
  }
  static Defines integers() {
    Defines d;
    return d.type(define::OUT, DType::Int32).set(define::FLOATING, false);
  }
  int32_t first() {
    int32_t value = 0;
    const Place place = resolve(memory_->address(), 0, 4);
    stream().read(&value, place.buffer, place.offset, sizeof value, false);
    return value;
  }
  const OpCall& any_call() { return **call_; }
  Stream& stream() { return any_call().stream(); }
  // A launch that the driver refuses: not by this call? (It is if the thread fell asleep.)
  bool is_refused_late() {
    try {
      count_from(100, 7);
      return true;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("clEnqueueNDRangeKernel (arange)"));
      return false;
    }
  }
  // Until launches no longer go to the driver at once.
  void burst() {
    for (int i = 0; i < 32; ++i) count_from(i, 1);
  }

 private:
  struct Buffer : Scratch {
    Buffer(const OpCall& call, int64_t bytes)
        : Scratch(call.scratch(static_cast<uint64_t>(bytes))) {}
  };
  std::optional<AnyCall> call_;

 protected:
  std::optional<Buffer> memory_;
};

TEST_F(DeferredLaunches, ThatAreRefusedAreRaisedByTheNextCallAndForgotten) {
  ASSERT_TRUE(stream().has_launch_thread());
  int late = 0;
  for (int round = 0; round < 100; ++round) {
    burst();
    EXPECT_EQ(first(), 31);
    burst();
    if (is_refused_late()) {
      ++late;
      EXPECT_THAT([&] { stream().synchronize(); },
                  ThrowsMessage<Error>(HasSubstr("Kernel (arange), called after")));
    }
    count_from(200 + round, 1);
    EXPECT_EQ(first(), 200 + round);
  }
  EXPECT_GT(late, 0);
}

// Uploads, copies and fills wait in the ring, too; what they read may change once they were called.
TEST_F(DeferredLaunches, AndTransfersKeepTheirOrder) {
  const Place place = resolve(memory_->address(), 0, kNumbers * 4);
  const auto at = [&](int64_t number) { return place.offset + static_cast<uint64_t>(number * 4); };
  for (int round = 0; round < 200; ++round) {
    burst();
    int32_t uploaded = 1000 + round, filled = -round;
    stream().write(place.buffer, at(1), &uploaded, 4, false);
    uploaded = 0;
    stream().copy(place.buffer, at(5), place.buffer, at(0), 8);
    stream().fill(place.buffer, at(10), &filled, 4, 12);
    filled = 0;
    count_from(round, 1);  // over all of it
    int32_t second = 2000 + round;
    stream().write(place.buffer, at(2), &second, 4, false);
    stream().copy(place.buffer, at(0), place.buffer, at(2), 4);
    std::array<int32_t, 12> seen{};
    stream().read(seen.data(), place.buffer, place.offset, sizeof seen, false);
    EXPECT_THAT(seen, testing::ElementsAre(2000 + round, round + 1, 2000 + round, round + 3,
                                           round + 4, round + 5, round + 6, round + 7, round + 8,
                                           round + 9, round + 10, round + 11));
    burst();
    stream().write(place.buffer, at(1), &second, 4, false);
    stream().copy(place.buffer, at(5), place.buffer, at(0), 8);
    filled = -round;
    stream().fill(place.buffer, at(10), &filled, 4, 8);
    second = filled = -12345;
    stream().read(seen.data(), place.buffer, place.offset, sizeof seen, false);
    EXPECT_THAT(seen, testing::ElementsAre(31, 2000 + round, 33, 34, 35, 31, 2000 + round, 38, 39,
                                           40, -round, -round));
  }
}

// More uploads than all chunks of staging memory hold, behind kernels that keep the first ones
// waiting.
TEST_F(DeferredLaunches, UploadsDoNotReuseStagingMemoryTooEarly) {
  constexpr size_t kNumbersAtOnce = 50000, kUploads = 200;
  constexpr int64_t kLong = int64_t{1} << 24;
  const Scratch target = any_call().scratch(kUploads * kNumbersAtOnce * 4);
  const Scratch sink = any_call().scratch(kLong * 4);
  const Place place = resolve(target.address(), 0, kUploads * kNumbersAtOnce * 4);
  for (int i = 0; i < 16; ++i) arange(sink, kLong, 0, 1);
  std::vector<int32_t> numbers(kNumbersAtOnce);
  for (size_t upload = 0; upload < kUploads; ++upload) {
    std::iota(numbers.begin(), numbers.end(), static_cast<int32_t>(upload));
    stream().write(place.buffer, place.offset + upload * kNumbersAtOnce * 4, numbers.data(),
                   kNumbersAtOnce * 4, false);
  }
  std::vector<int32_t> seen(kUploads * kNumbersAtOnce), expected(seen.size());
  stream().read(seen.data(), place.buffer, place.offset, seen.size() * 4, false);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<int32_t>(i / kNumbersAtOnce + i % kNumbersAtOnce);
  EXPECT_TRUE(seen == expected);
}

TEST_F(DeferredLaunches, OfMissingProgramsLetTheHostGoOn) {
  open_compiler(stream());
  static const Source source = fresh_source(kStores);
  Kernel& kernel = find_kernel(stream(), source, "later", {});
  EXPECT_TRUE(kernel.is_pending());
  count_from(5, 1);
  Launch(stream(), kernel)
      .memory(memory_->address(), 0, 4)
      .value(int32_t{77})
      .run({1, 1, 1}, {1, 1, 1});
  EXPECT_EQ(first(), 77);
  EXPECT_FALSE(kernel.is_pending());
  count_from(6, 1);
  Launch(stream(), kernel)
      .memory(memory_->address(), 0, 4)
      .value(int32_t{78})
      .run({1, 1, 1}, {1, 1, 1});
  count_from(7, 1);
  EXPECT_EQ(first(), 7);
  EXPECT_EQ(&find_kernel(stream(), source, "later", {}), &kernel);
}

TEST_F(DeferredLaunches, OfProgramsThatDoNotCompileAreRaisedByALaterCall) {
  open_compiler(stream());
  static const Source source = fresh_source("no_such_function(base);");
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(
        [&] {
          Launch(stream(), find_kernel(stream(), source, "later", {}))
              .memory(memory_->address(), 0, 4)
              .value(int32_t{1})
              .run({1, 1, 1}, {1, 1, 1});
          stream().synchronize();
        },
        ThrowsMessage<Error>(HasSubstr("test/later.cl did not compile")));
    count_from(9 + round, 1);
    EXPECT_EQ(first(), 9 + round);
  }
}

// Of each kind one that lies outside of its buffer; what follows is dropped.
TEST_F(DeferredLaunches, TransfersThatAreRefusedAreRaisedByTheNextCall) {
  constexpr uint64_t kFar = uint64_t{1} << 50;
  const Place place = resolve(memory_->address(), 0, kNumbers * 4);
  const int32_t number = 1;
  const auto refused = [&](int kind) {
    if (kind == 0) stream().write(place.buffer, kFar, &number, 4, false);
    if (kind == 1) stream().copy(place.buffer, place.offset, place.buffer, kFar, 4);
    if (kind == 2) stream().fill(place.buffer, kFar, &number, 4, 4);
  };
  const char* const calls[] = {"clEnqueueWriteBuffer", "clEnqueueCopyBuffer",
                               "clEnqueueFillBuffer"};
  for (int kind = 0; kind < 3; ++kind) {
    int late = 0;
    for (int round = 0; round < 50; ++round) {
      burst();
      const auto says = ThrowsMessage<Error>(HasSubstr(calls[kind]));
      try {
        refused(kind);
      } catch (const Error& error) {  // the thread fell asleep
        EXPECT_THAT(error.what(), HasSubstr(calls[kind]));
        continue;
      }
      ++late;
      if (round % 2 == 0) {  // an event tells, too, but may be a destructor's
        EXPECT_THAT([&] { (void)stream().marker(false); }, says);
        EXPECT_NO_THROW(stream().synchronize(false));
      }
      EXPECT_THAT(
          [&] {
            for (int i = 0; i < 2000; ++i) count_from(300 + i, 1);
            stream().synchronize();
          },
          says);
      EXPECT_EQ(first(), 31);
    }
    EXPECT_GT(late, 0) << calls[kind];
  }
}

// What follows a refused launch would work on its missing results: it is dropped, and arguments
// that the driver was not told are not taken for known.
TEST_F(DeferredLaunches, ThatAreRefusedTakeThoseThatFollowWithThem) {
  int late = 0;
  for (int round = 0; round < 100; ++round) {
    burst();
    EXPECT_EQ(first(), 31);
    burst();
    if (!is_refused_late()) continue;
    ++late;
    EXPECT_ANY_THROW({
      for (int i = 0; i < 2000; ++i) count_from(300 + i, 1);
      stream().synchronize();
    });
    EXPECT_EQ(first(), 31);
    count_from(2299, 1);
    EXPECT_EQ(first(), 2299);
  }
  EXPECT_GT(late, 0);
}

TEST_F(DeferredLaunches, WithoutABurstRefusalsAreRaisedAtOnce) {
  (void)first();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // another test's thread sleeps
  EXPECT_THAT([&] { count_from(100, 7); },
              ThrowsMessage<Error>(HasSubstr("clEnqueueNDRangeKernel (arange)")));
  count_from(5, 1);
  EXPECT_EQ(first(), 5);
}

// What stands for an event of another context, whose queues cannot wait for it.
cl::UserEvent open_event(Stream& stream) {
  cl_int code = CL_SUCCESS;
  cl::UserEvent event(stream.device().context(), &code);
  check_cl(code, "clCreateUserEvent");
  return event;
}

TEST_F(DeferredLaunches, ComeBehindAWaitForAnotherContext) {
  for (int round = 0; round < 20; ++round) {
    count_from(1, 1);
    EXPECT_EQ(first(), 1);
    cl::UserEvent reached = open_event(stream());
    count_from(2, 1);
    stream().wait_elsewhere(reached);
    count_from(50 + round, 1);
    // Who holds the pool's lock does not wait for it.
    EXPECT_FALSE(stream().passed(stream().enqueued()));
    EXPECT_FALSE(stream().try_submit_launches());
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      reached.setStatus(CL_COMPLETE);
    });
    EXPECT_EQ(first(), 50 + round);
    other.join();
    EXPECT_TRUE(stream().passed(stream().enqueued()));
    EXPECT_TRUE(stream().try_submit_launches());
  }
}

// The stream's own work is not lost.
TEST_F(DeferredLaunches, BehindAFailureOfAnotherContextAreDropped) {
  for (int round = 0; round < 3; ++round) {
    count_from(2, 1);
    cl::UserEvent reached = open_event(stream());
    stream().wait_elsewhere(reached);
    count_from(50, 1);
    reached.setStatus(CL_OUT_OF_RESOURCES);
    EXPECT_THAT([&] { stream().synchronize(); },
                ThrowsMessage<Error>(HasSubstr("work of another device")));
    EXPECT_EQ(first(), 2);
    count_from(7, 1);
    EXPECT_EQ(first(), 7);
  }
}

// What was bound for a launch that was never made is not submitted with the next one.
TEST_F(DeferredLaunches, LeaveNothingWhereTheyWereNotMade) {
  count_from(1, 1);
  const auto& arange = kernels::copy::create::arange;
  Kernel& kernel = find_kernel(stream(), arange.source, arange.function, integers());
  {
    const Scratch gone = any_call().scratch(64 << 20);  // a buffer of its own
    Launch never(stream(), kernel);
    never.memory(gone).value(int64_t{3});
  }
  const Launch next(stream(), kernel);
  EXPECT_TRUE(kernel.changes().empty());
  count_from(7, 1);
  EXPECT_EQ(first(), 7);
}

// The child has no launch thread to stop.
TEST_F(DeferredLaunches, AForkedChildCanEnd) {
  burst();
  EXPECT_EQ(first(), 31);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) std::exit(0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(LaunchThreadSetting, TheCallingThreadIsAskedFor) {
  if (std::getenv("OCLTENSOR_LAUNCH_THREAD") != nullptr)
    GTEST_SKIP() << "SKIPPED: the device is open already; needs a process of its own";
  setenv("OCLTENSOR_LAUNCH_THREAD", "0", 1);
  EXPECT_FALSE(device(0).default_stream().has_launch_thread());
}

}  // namespace
}  // namespace ocltensor::opencl
