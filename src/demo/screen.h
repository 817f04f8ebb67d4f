// What the demo shows: a progress bar while it trains, and the confusion matrix at the end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace demo {

// One line that is rewritten on a terminal; elsewhere one line an epoch.
class Progress {
 public:
  Progress(int64_t epochs, int64_t steps_per_epoch);
  void step(int64_t epoch, int64_t step, double loss, double accuracy, int64_t images);
  void epoch_done(int64_t epoch, double loss, double accuracy, double test_accuracy);
  double seconds() const;
  int64_t images() const { return images_; }

 private:
  double rate() const;
  const int64_t epochs_, steps_;
  int64_t images_ = 0;
  const bool terminal_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
};

// Until it is stopped, a line of a terminal says how many programs are ready: on a new
// machine the first step waits for the driver's compiler.
class Compiling {
 public:
  // `count` is called from a thread, and throws nothing.
  explicit Compiling(std::function<uint64_t()> count);
  ~Compiling() { stop(); }
  Compiling(const Compiling&) = delete;
  void stop();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

std::string bytes_text(uint64_t bytes);                                 // "12.3 MiB"
void print_confusion(const std::vector<std::vector<int64_t>>& counts);  // [truth][answer]

}  // namespace demo
