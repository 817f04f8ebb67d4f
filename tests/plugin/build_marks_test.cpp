// Marks of programs that are being compiled: what is known of one whose process has ended.
#include "runtime/program/build_marks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>

namespace ocltensor::opencl::build_marks {
namespace {

// In the cache folder that build_ahead_test.cpp makes. A key of its own for each case.
disk_cache::Key next_key() {
  static uint64_t low = 0;
  return {2, ++low};
}

// What is known of a program after a child has marked it, as `place`, and gone on to `end`.
Past after(const disk_cache::Key& key, Place place, const std::function<void()>& end) {
  const pid_t child = fork();
  if (child == 0) {
    const Mark mark(key, place);
    end();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return past_of(key);
}
void fault() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}
void be_killed() { (void)kill(getpid(), SIGKILL); }

TEST(BuildMarks, AreGoneWhenTheCompilerReturns) {
  const disk_cache::Key key = next_key();
  for (const Place place : {Place::Builder, Place::Process}) {
    {
      const Mark mark(key, place);
      EXPECT_EQ(past_of(key), Past::Nothing);  // it is being compiled
      EXPECT_EQ(access(build_marks::path_of(key).c_str(), F_OK), 0);
    }
    EXPECT_EQ(past_of(key), Past::Nothing);
    EXPECT_NE(access(build_marks::path_of(key).c_str(), F_OK), 0);
  }
}

TEST(BuildMarks, ABuilderNotesFaultsAndExits) {
  EXPECT_EQ(after(next_key(), Place::Builder, fault), Past::Crashed);
  EXPECT_EQ(after(next_key(), Place::Builder, [] { std::abort(); }), Past::Crashed);
  EXPECT_EQ(after(next_key(), Place::Builder, [] { std::exit(1); }), Past::Crashed);
}

TEST(BuildMarks, TwoBuildersThatWereKilledAreEnough) {
  const disk_cache::Key key = next_key();
  EXPECT_EQ(after(key, Place::Builder, be_killed), Past::Died);
  EXPECT_EQ(after(key, Place::Builder, be_killed), Past::Crashed);
}

TEST(BuildMarks, UsersMayEndTheirProcesses) {
  const disk_cache::Key key = next_key();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(after(key, Place::Process, be_killed), Past::Died);
  { const Mark mark(key, Place::Builder); }
  EXPECT_EQ(past_of(key), Past::Nothing);
}

TEST(BuildMarks, TellOfCompilers) {
  EXPECT_EQ(after(next_key(), Place::Process, be_killed), Past::Died);
  EXPECT_TRUE(is_known_to_crash("any device"));  // a builder has to find out
}

}  // namespace
}  // namespace ocltensor::opencl::build_marks
