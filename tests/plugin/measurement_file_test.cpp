// The file of measurements: what is written is read, what is damaged is as if it were not there,
// and writers do not lose each other's lines.
#include "call/measurement_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace ocltensor::opencl::measurement_file {
namespace {

class MeasurementFile : public testing::Test {
 protected:
  ~MeasurementFile() override { std::filesystem::remove(path_); }
  static Line line(const std::string& best, double time) {
    return {best, {{"conv.direct", time}, {"conv.columns", 2 * time}}, "forward float32 a b"};
  }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }
  void write_text(const std::string& text) const { std::ofstream(path_) << text; }

  std::string path_ = testing::TempDir() + "measured-test-" + std::to_string(getpid()) + ".tsv";
};

TEST_F(MeasurementFile, KeepsWhatIsWritten) {
  write(path_, {{{"conv", "0 1 2"}, line("conv.direct", 12.5)}});
  write(path_, {{{"conv", "0 1 3"}, line("conv.columns", 7)}});
  write(path_, {{{"conv", "0 1 2"}, line("conv.columns", 3)}});  // the later one
  const Lines lines = read(path_);
  ASSERT_EQ(lines.size(), 2u);
  const Line& first = lines.at({"conv", "0 1 2"});
  EXPECT_EQ(first.best, "conv.columns");
  EXPECT_EQ(first.problem, "forward float32 a b");
  ASSERT_EQ(first.microseconds.size(), 2u);
  EXPECT_EQ(first.microseconds[0].first, "conv.direct");
  EXPECT_DOUBLE_EQ(first.microseconds[0].second, 3);
  remove(path_);
  EXPECT_TRUE(read(path_).empty());
}

TEST_F(MeasurementFile, DamageIsSkipped) {
  write(path_, {{{"conv", "0 1 2"}, line("conv.direct", 12.5)}});
  const std::string good = text();
  const size_t end = good.find('\n') + 1;
  const std::string title = good.substr(0, end), row = good.substr(end);
  ASSERT_EQ(read(path_).size(), 1u);
  for (const std::string& bad :
       {std::string(), std::string("another title\n") + row, row,
        title + row.substr(0, row.size() / 2) + "\n", title + "\t\t\t\t\n", title + "\n\n",
        title + "conv\t0 1 2\tconv.direct\tconv.direct\tp\n",
        title + "conv\t0 1 2\tconv.direct\tconv.direct=fast\tp\n",
        title + "conv\t0 1 2\tconv.direct\tconv.direct=-1\tp\n",
        title + "conv\t0 1 2\tconv.direct\tconv.direct=nan\tp\n"}) {
    write_text(bad);
    EXPECT_TRUE(read(path_).empty()) << bad;
  }
  write_text(title + "nonsense\n" + row);
  EXPECT_EQ(read(path_).size(), 1u);
}

TEST_F(MeasurementFile, WritersAddToEachOther) {
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i)
        write(path_, {{{"conv", std::to_string(10 * t + i)}, line("conv.direct", 1 + i)}});
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(read(path_).size(), 40u);
}

TEST_F(MeasurementFile, WithoutAFolderNothingHappens) {
  write("", {{{"conv", "0"}, line("conv.direct", 1)}});
  write("/proc/nowhere/measured.tsv", {{{"conv", "0"}, line("conv.direct", 1)}});
  EXPECT_TRUE(read("/proc/nowhere/measured.tsv").empty());
}

}  // namespace
}  // namespace ocltensor::opencl::measurement_file
