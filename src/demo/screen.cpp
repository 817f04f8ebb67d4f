// Progress bar and tables.
#include "screen.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace demo {

Progress::Progress(int64_t epochs, int64_t steps_per_epoch)
    : epochs_(epochs),
      steps_(steps_per_epoch),
      terminal_(isatty(STDOUT_FILENO) != 0),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}
double Progress::rate() const { return static_cast<double>(images_) / seconds(); }

void Progress::step(int64_t epoch, int64_t step, double loss, double accuracy, int64_t images) {
  images_ += images;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(50)) return;
  last_ = now;
  constexpr int kWidth = 24;
  const auto filled = static_cast<int>(kWidth * (step + 1) / steps_);
  fmt::print("\repoch {:3}/{} [{:<{}}] loss {:.4f}  accuracy {:.3f}  {:7.0f} images/s ", epoch + 1,
             epochs_, std::string(static_cast<size_t>(filled), '#'), kWidth, loss, accuracy,
             rate());
  std::fflush(stdout);
}

void Progress::epoch_done(int64_t epoch, double loss, double accuracy, double test_accuracy) {
  fmt::print("{}epoch {:3}/{}  loss {:.4f}  accuracy {:.3f}  test {:.3f}  {:7.0f} images/s{}\n",
             terminal_ ? "\r" : "", epoch + 1, epochs_, loss, accuracy, test_accuracy, rate(),
             terminal_ ? "                    " : "");
  std::fflush(stdout);
}

Compiling::Compiling(std::function<uint64_t()> count) {
  if (isatty(STDOUT_FILENO) == 0) return;
  thread_ = std::thread([this, count = std::move(count)] {
    const auto begin = std::chrono::steady_clock::now();
    bool shown = false;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(250), [&] { return stopped_; })) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      const uint64_t ready = count();
      if (ready == 0 || taken.count() < 1) continue;
      fmt::print("\rcompiling kernels for this driver (once): {} ready after {:.0f} s ", ready,
                 taken.count());
      std::fflush(stdout);
      shown = true;
    }
    if (shown) fmt::print("\r{:70}\r", "");
  });
}

void Compiling::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::string bytes_text(uint64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, units[unit]);
}

void print_confusion(const std::vector<std::vector<int64_t>>& counts) {
  fmt::print("\nconfusion matrix (rows: truth, columns: answer)\n    ");
  for (size_t c = 0; c < counts.size(); ++c) fmt::print("{:5}", c);
  fmt::print("\n");
  for (size_t r = 0; r < counts.size(); ++r) {
    fmt::print("{:4}", r);
    for (const int64_t n : counts[r]) n == 0 ? fmt::print("    .") : fmt::print("{:5}", n);
    fmt::print("\n");
  }
}

}  // namespace demo
