// Building ahead: entries of the cache have one builder at a time.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "runtime/program/disk_cache.h"

namespace ocltensor::opencl {
namespace {

// The cache folder of this program, before anything asks for it; builders would write to it when
// the program has ended. A forked child that ends must leave it alone.
struct Folder {
  char path[40] = "/tmp/ocltensor_claims_XXXXXX";
  const pid_t owner = getpid();
  bool good = mkdtemp(path) != nullptr && setenv("OCLTENSOR_CACHE_DIR", path, 1) == 0 &&
              setenv("OCLTENSOR_BUILD_AHEAD", "0", 1) == 0;
  ~Folder() {
    if (getpid() != owner) return;
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
} folder;

using disk_cache::Claim;
const disk_cache::Key kOne{1, 0x1234567890abcdef}, kOther{1, 0xfedcba0987654321};

TEST(Claim, IsHeldByOneAtATime) {
  ASSERT_TRUE(folder.good);
  {
    const Claim first(kOne, std::chrono::milliseconds(0));
    ASSERT_TRUE(first.held());
    EXPECT_FALSE(first.waited());
    const Claim second(kOne, std::chrono::milliseconds(0));
    EXPECT_FALSE(second.held());
    EXPECT_TRUE(Claim(kOther, std::chrono::milliseconds(0)).held());
  }
  EXPECT_TRUE(Claim(kOne, std::chrono::milliseconds(0)).held());
}

TEST(Claim, WaitsForItsHolder) {
  auto first = std::make_unique<Claim>(kOne, std::chrono::milliseconds(0));
  ASSERT_TRUE(first->held());
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first.reset();
  });
  const Claim second(kOne, std::chrono::seconds(20));
  holder.join();
  EXPECT_TRUE(second.held());
  EXPECT_TRUE(second.waited());
}

TEST(Claim, EndsWithItsProcess) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Claim claim(kOne, std::chrono::milliseconds(0));
    const char held = claim.held() ? 1 : 0;
    if (write(ready[1], &held, 1) == 1) pause();
    _exit(0);
  }
  char held = 0;
  ASSERT_EQ(read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 1);
  EXPECT_FALSE(Claim(kOne, std::chrono::milliseconds(0)).held());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Claim(kOne, std::chrono::milliseconds(0)).held());
}

}  // namespace
}  // namespace ocltensor::opencl
