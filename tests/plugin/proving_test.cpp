// Kernels whose proof the host does not wait for: launches that wait for the verdict, and what
// becomes of them if the kernel is wrong.
#include "runtime/queue/proving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "any_call.h"
#include "call/proofs.h"
#include "fresh_source.h"
#include "kernels/defines.h"
#include "runtime/program/dry_run.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::ThrowsMessage;

void launch(Stream& stream, const Source& source, const Scratch& memory, int32_t value) {
  Launch(stream, find_kernel(stream, source, "later", {}))
      .memory(memory.address(), 0, 4)
      .value(value)
      .run({1, 1, 1}, {1, 1, 1});
}

int32_t first(Stream& stream, const Scratch& memory) {
  int32_t value = 0;
  const Place place = resolve(memory.address(), 0, 4);
  stream.read(&value, place.buffer, place.offset, sizeof value, false);
  return value;
}

class Proving : public testing::Test {
 protected:
  Proving() {
    setenv("OCLTENSOR_LAUNCH_THREAD", "1", 1);
    call_.emplace();
    open_compiler(stream());
    memory_.emplace(stream());
  }
  const OpCall& any_call() { return **call_; }
  Stream& stream() { return any_call().stream(); }
  Device& device() { return stream().device(); }
  std::shared_ptr<Program> program_of(const Source& source, const Defines& defines = {}) {
    return device().programs().find(source, defines);
  }
  const Scratch& memory() { return *memory_; }
  void launch(const Source& source, int32_t value) {
    opencl::launch(stream(), source, memory(), value);
  }
  int32_t first() { return opencl::first(stream(), memory()); }

 private:
  struct Buffer : Scratch {
    explicit Buffer(Stream& stream) : Scratch(stream, 64) {}
  };
  std::optional<AnyCall> call_;
  std::optional<Buffer> memory_;
};

TEST_F(Proving, LaunchesWaitForTheVerdictAndTheHostDoesNot) {
  static const Source source = fresh_source(kStores);
  std::promise<void> verdict;
  proving::begin(program_of(source), [&]() -> std::string {
    verdict.get_future().wait();
    return "";
  });
  EXPECT_TRUE(proving::concerns(*program_of(source)));
  launch(source, 5);
  launch(source, 77);
  const Kernel& kernel = find_kernel(stream(), source, "later", {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(kernel.is_pending());
  // Whether earlier work has passed is not waited for, as the memory pool asks under its lock.
  EXPECT_FALSE(stream().passed(stream().enqueued()));
  verdict.set_value();
  EXPECT_EQ(first(), 77);
  EXPECT_FALSE(kernel.is_pending());
  EXPECT_FALSE(proving::concerns(*program_of(source)));
  EXPECT_TRUE(stream().passed(stream().enqueued()));
}

// A program that is built already waits, too.
TEST_F(Proving, LaunchesOfBuiltProgramsWait) {
  static const Source source = fresh_source(kStores);
  (void)device().programs().get(*program_of(source));
  proving::begin(program_of(source), [] { return "it is wrong"; });
  launch(source, 5);
  EXPECT_THAT([&] { stream().synchronize(); }, ThrowsMessage<Error>(HasSubstr("it is wrong")));
}

TEST_F(Proving, OfAWrongKernelIsRaisedByALaterCall) {
  static const Source right = fresh_source(kStores), wrong = fresh_source(kStores);
  launch(right, 1);
  proving::begin(program_of(wrong), [] { return "element 3 is 4 instead of 5"; });
  launch(wrong, 2);
  launch(right, 3);
  EXPECT_THAT(
      [&] { stream().synchronize(); },
      ThrowsMessage<Error>(AllOf(HasSubstr("test/later.cl"), HasSubstr("run the work again"),
                                 HasSubstr("element 3 is 4 instead of 5"))));
  EXPECT_EQ(first(), 1);
  launch(right, 4);
  EXPECT_EQ(first(), 4);
  // Until it is proven after all.
  EXPECT_TRUE(proving::concerns(*program_of(wrong)));
  proving::begin(program_of(wrong), [] { return ""; });
  launch(wrong, 6);
  EXPECT_EQ(first(), 6);
}

// The test launches the kernel, and takes memory that the waiting stream has freed, while the host
// waits for that stream.
TEST_F(Proving, TestsUseTheKernelAndTheMemoryOfWaitingStreams) {
  static const Source source = fresh_source(kStores);
  Stream& own = device().create_stream();
  int32_t seen = 0;
  std::promise<void> waits;
  proving::begin(program_of(source), [&]() -> std::string {
    waits.get_future().wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the host waits by now
    for (const uint64_t bytes : {64u, 1u << 16, 1u << 22, 1u << 26}) {
      const Scratch memory(own, bytes);
      opencl::launch(own, source, memory, 123);
      seen = opencl::first(own, memory);
      if (seen != 123) return "it did not store";
    }
    return "";
  });
  for (const uint64_t bytes : {64u, 1u << 16, 1u << 22, 1u << 26}) {
    const Scratch freed(stream(), bytes);
    opencl::launch(stream(), source, freed, 9);
  }
  launch(source, 10);
  waits.set_value();
  EXPECT_EQ(first(), 10);
  EXPECT_EQ(seen, 123);
}

// Ends this process while the verdicts of two kernels are due.
[[noreturn]] void end_before_verdicts(Stream& stream, const Scratch& memory) {
  static const std::array sources{fresh_source(kStores), fresh_source(kStores)};
  static Stream& own = stream.device().create_stream();
  for (const Source& source : sources) {
    proving::begin(stream.device().programs().find(source, {}), [&source]() -> std::string {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      try {
        const Scratch memory(own, 64);
        launch(own, source, memory, 1);
        return first(own, memory) == 1 ? "" : "it did not store";
      } catch (const std::exception& error) {
        return error.what();
      }
    });
    launch(stream, source, memory, 1);
  }
  std::exit(3);
}

// It neither hangs nor crashes.
TEST_F(Proving, AProcessMayEndBefore) {
  constexpr const char* kIsChild = "PROVING_TEST_ENDS";
  if (std::getenv(kIsChild) != nullptr) end_before_verdicts(stream(), memory());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv(kIsChild, "1", 1);
    execl("/proc/self/exe", "plugin_tests", "--gtest_filter=Proving.AProcessMayEndBefore", nullptr);
    _exit(99);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

// ---- Proofs

int tests_run = 0;
std::string verdict;
const Source& proven_source() {
  static const Source source = fresh_source(kStores);
  return source;
}
std::string judge(const OpCall& call, const void* what) {
  EXPECT_EQ(*static_cast<const int*>(what), 42);
  ++tests_run;
  const Scratch memory = call.scratch(64);
  launch(call.stream(), proven_source(), memory, 55);
  return first(call.stream(), memory) == 55 ? verdict : "it did not store";
}
bool hold(Proofs<3>& proofs, const OpCall& call, size_t variant, bool defers = true) {
  static const ProofTest deferring{proven_source(), judge};
  static const ProofTest at_once{proven_source(), judge, nullptr, false};
  const ProofTest& test = defers ? deferring : at_once;
  const int what = 42;
  return proofs.hold(
      call, variant, test,
      [&] {
        Defines d;
        return d.set(define::WIDTH, static_cast<int64_t>(defers ? variant : variant + 3));
      },
      &what);
}

// The first kernel of a source is tested before it is used, the next ones while the host goes on;
// one that is found wrong so is not used any more, nor in later processes.
TEST_F(Proving, IsLeftToTheBackgroundOnceAKernelOfTheSourceIsRight) {
  auto& proofs = *new Proofs<3>;  // as long as the process
  verdict = "";
  EXPECT_TRUE(hold(proofs, any_call(), 0));
  EXPECT_EQ(tests_run, 1);
  EXPECT_TRUE(hold(proofs, any_call(), 0));
  EXPECT_EQ(tests_run, 1);
  verdict = "it is wrong";
  EXPECT_TRUE(hold(proofs, any_call(), 1));
  Defines one;
  one.set(define::WIDTH, 1);
  EXPECT_THAT([&] { proving::wait(*program_of(proven_source(), one)); },
              ThrowsMessage<Error>(HasSubstr("it is wrong")));
  EXPECT_EQ(tests_run, 2);
  EXPECT_FALSE(hold(proofs, any_call(), 1));
  verdict = "";
  EXPECT_TRUE(hold(proofs, any_call(), 2));
  Defines two;
  two.set(define::WIDTH, 2);
  proving::wait(*program_of(proven_source(), two));
  EXPECT_EQ(tests_run, 3);

  auto& later = *new Proofs<3>;  // of a later process
  verdict = "";
  EXPECT_TRUE(hold(later, any_call(), 0));
  EXPECT_TRUE(hold(later, any_call(), 2));
  testing::internal::CaptureStderr();
  EXPECT_FALSE(hold(later, any_call(), 1));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("failed in an earlier process: it is wrong"),
                    ContainsRegex("Delete .*\\.bin to test it again")));
  EXPECT_EQ(tests_run, 3);
}

const Source& failing_source() {
  static const Source source = fresh_source(kStores);
  return source;
}

// Where another kernel's being right says little.
TEST_F(Proving, IsNotLeftToTheBackgroundWhereTheTestForbidsIt) {
  auto& proofs = *new Proofs<3>;  // as long as the process
  verdict = "";
  const int before = tests_run;
  EXPECT_TRUE(hold(proofs, any_call(), 0, false));
  EXPECT_EQ(tests_run, before + 1);
  verdict = "it is wrong";
  EXPECT_FALSE(hold(proofs, any_call(), 1, false));
  EXPECT_EQ(tests_run, before + 2);
  verdict = "";
  auto& later = *new Proofs<3>;
  EXPECT_FALSE(hold(later, any_call(), 1, false)) << "its verdict is kept";
  EXPECT_EQ(tests_run, before + 2);
}

tb_status error_to_meet = TB_OK;
std::string meet_error(const OpCall& call, const void*) {
  ++tests_run;
  if (error_to_meet != TB_OK) fail(error_to_meet, "met by the test");
  const Scratch memory = call.scratch(64);
  launch(call.stream(), failing_source(), memory, 55);
  return first(call.stream(), memory) == 55 ? "" : "it did not store";
}

// What may be another's fault is forgiven once.
TEST_F(Proving, ErrorsAreTakenForTheKernelsTheSecondTime) {
  static const ProofTest test{failing_source(), meet_error, nullptr, false};
  const int before = tests_run, what = 42;
  const auto hold_anew = [&](tb_status error) {  // as a process of its own
    error_to_meet = error;
    return (*new Proofs<1>)
        .hold(
            any_call(), 0, test, [] { return Defines(); }, &what);
  };
  EXPECT_FALSE(hold_anew(TB_E_INTERNAL));
  EXPECT_THROW((void)hold_anew(TB_E_DEVICE_LOST), Error);
  EXPECT_EQ(tests_run, before + 2);
  EXPECT_FALSE(hold_anew(TB_OK));
  EXPECT_EQ(tests_run, before + 2);
}

const Source& other_source() {
  static const Source source = fresh_source(kStores);
  return source;
}
std::string check_store(const OpCall& call, const void*) {
  const Scratch memory = call.scratch(64);
  launch(call.stream(), other_source(), memory, 55);
  return first(call.stream(), memory) == 55 ? "" : "it did not store";
}

// Its commands are dropped then: what it reads is no verdict.
TEST_F(Proving, IsPutOffByADryRun) {
  static const ProofTest test{other_source(), check_store};
  auto& proofs = *new Proofs<1>;  // as long as the process
  const int what = 42;
  const auto hold_here = [&] {
    return proofs.hold(
        any_call(), 0, test, [] { return Defines(); }, &what);
  };
  {
    const DryRun dry;
    EXPECT_THAT([&] { (void)hold_here(); }, ThrowsMessage<Error>(HasSubstr("rehearsal")));
  }
  EXPECT_TRUE(hold_here());
}

}  // namespace
}  // namespace ocltensor::opencl
