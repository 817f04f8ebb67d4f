// Capture files: what is written is read, and whatever is broken is an error with a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "capture/reader.h"
#include "capture/writer.h"
#include "ocltensor/error.h"

namespace {

using namespace ocltensor;
using namespace ocltensor::capture_file;
using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

std::string temporary(const char* name) {
  return std::filesystem::temp_directory_path() / fmt::format("{}_{}", name, ::getpid());
}

Bytes random_bytes(size_t count) {
  std::mt19937 random(3);
  Bytes bytes(count);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

constexpr uint64_t kSize = 5 * kPageBytes + 100;

// A buffer of random bytes, zeros and repeated pages; a launch; a result.
void write_sample(const std::string& path) {
  Writer writer(path);
  const Bytes bytes = random_bytes(kPageBytes);
  writer.add(DeviceInfo{"device", "platform", "1.2", "OpenCL C 1.2"});
  writer.add(Program{1, "f.cl", "-cl-std=CL1.2", "__kernel void f(__global int* p, int n) {}"});
  writer.add(Kernel{2, 1, "f"});
  writer.add(Buffer{3, kSize, 0, 0});
  Contents contents{3, 0, {}};
  for (const uint64_t page : {writer.page(bytes), writer.page(Bytes(kPageBytes)),
                              writer.page(bytes), writer.page({bytes.data(), 50}),
                              writer.page({bytes.data(), 60}), writer.page({bytes.data(), 100})})
    append(contents.runs, page);
  writer.add(std::move(contents));
  writer.add(Operator{4, "mul.out"});
  writer.add(Launch{2,
                    5,
                    4,
                    1,
                    {},
                    {64},
                    {8},
                    {{ArgumentKind::Buffer, 3, {}}, {ArgumentKind::Bytes, 0, {7, 0, 0, 0}}}});
  writer.add(Write{3, 10, 5000, 5, 4, writer.data(random_bytes(5000))});
  writer.add(Write{3, 0, 3, 5, 0, writer.data(Bytes{1, 2, 3})});
  writer.add(Fill{3, 16, 64, 5, 0, {1, 2, 3, 4}});
  writer.add(Copy{3, 0, 3, 1024, 512, 5, 0});
  writer.add(Final{3, {{1, {1, writer.page(bytes)}}, {4, {2, 0}}}});
  writer.add(Result{4, 0, 3, 16, 8, {2, 3}, {3, 1}});
  writer.add(Info{"1.0"});
  writer.finish();
}

Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

// Everything that a replay would read.
void read_all(const Bytes& bytes) {
  const Capture capture(open_bytes(bytes));
  Bytes page(kPageBytes);
  for (const Record& command : capture.commands()) {
    if (const auto* c = std::get_if<Contents>(&command))
      for (const PageRun& run : c->runs) capture.read_page(run.first, page);
    if (const auto* w = std::get_if<Write>(&command)) {
      Bytes data(w->bytes);
      capture.read(w->data, 0, data);
    }
  }
  for (const Final& f : capture.finals())
    for (const Change& change : f.changes) capture.read_page(change.run.first, page);
}

std::string error_of(const Bytes& bytes) {
  try {
    read_all(bytes);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

class CaptureFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = temporary("capture_file");
    write_sample(path_);
    bytes_ = read_file(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
  Bytes bytes_;
};

TEST_F(CaptureFile, WhatIsWrittenIsRead) {
  const Capture capture(open_file(path_));
  EXPECT_EQ(capture.version(), "1.0");
  ASSERT_EQ(capture.programs().size(), 1u);
  EXPECT_EQ(capture.program(1).options, "-cl-std=CL1.2");
  EXPECT_EQ(capture.kernel(2).name, "f");
  EXPECT_EQ(capture.operator_name(4), "mul.out");
  ASSERT_EQ(capture.commands().size(), 7u);
  const Bytes bytes = random_bytes(kPageBytes);
  const auto& contents = std::get<Contents>(capture.commands()[1]);
  Bytes read(kSize);
  capture.read({{}, contents.runs}, 0, read);
  const auto page_is = [&](size_t page, size_t filled) {
    Bytes expected(kPageBytes);
    std::copy_n(bytes.begin(), filled, expected.begin());
    expected.resize(std::min(kPageBytes, kSize - page * kPageBytes));
    return std::equal(expected.begin(), expected.end(),
                      read.begin() + static_cast<std::ptrdiff_t>(page * kPageBytes));
  };
  EXPECT_TRUE(page_is(0, kPageBytes) && page_is(1, 0) && page_is(2, kPageBytes));
  EXPECT_TRUE(page_is(3, 50) && page_is(4, 60) && page_is(5, 100));
  const auto& launch = std::get<Launch>(capture.commands()[2]);
  EXPECT_EQ(launch.local[0], 8u);
  EXPECT_EQ(launch.arguments[1].bytes, (Bytes{7, 0, 0, 0}));
  Bytes part(100);
  capture.read(std::get<Write>(capture.commands()[3]).data, 4000, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), random_bytes(5000).begin() + 4000));
  EXPECT_EQ(capture.results().at(0).sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(capture.finals().at(0).changes.size(), 2u);
}

TEST_F(CaptureFile, RepeatedAndZeroPagesTakeNoRoom) {
  // The random page, its first 50, 60 and 100 bytes, and the data of a write.
  EXPECT_LT(bytes_.size(), 2 * kPageBytes);
}

TEST_F(CaptureFile, EveryTruncationIsAnError) {
  for (size_t length = 0; length < bytes_.size(); length += length < 400 ? 1 : 37)
    EXPECT_NE(error_of(Bytes(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(length))),
              "")
        << length;
  Bytes longer = bytes_;
  longer.push_back(0);
  EXPECT_THAT(error_of(longer), HasSubstr("follow the capture's end mark"));
}

TEST_F(CaptureFile, EveryDamagedByteIsAnError) {
  for (size_t at = 0; at < bytes_.size(); at += at < 400 ? 1 : 7) {
    Bytes damaged = bytes_;
    damaged[at] ^= 0x40;
    EXPECT_NE(error_of(damaged), "") << at;
  }
}

TEST_F(CaptureFile, OtherVersionsAndOtherFilesSaySo) {
  Bytes other = bytes_;
  other[8] = 2;
  EXPECT_THAT(error_of(other), HasSubstr("format version 2, this program reads version 1"));
  EXPECT_THAT(error_of({'P', 'K', 3, 4}), HasSubstr("no capture file"));
  EXPECT_THAT(error_of({}), HasSubstr("no capture file"));
  EXPECT_THROW(open_file("/nowhere/x"), Error);
  EXPECT_THROW(open_file("/tmp"), Error);
}

// Records that contradict each other, with right checksums.
template <typename... Records>
std::string refusal(Records... records) {
  const std::string path = temporary("capture_bad");
  {
    Writer writer(path);
    writer.add(Program{1, "f.cl", "", "source"});
    writer.add(Kernel{2, 1, "f"});
    writer.add(Buffer{3, 1000, 0, 0});
    (writer.add(std::move(records)), ...);
    writer.finish();
  }
  std::string error = error_of(read_file(path));
  std::filesystem::remove(path);
  return error;
}

TEST(CaptureRecords, ContradictionsAreErrors) {
  EXPECT_EQ(refusal(), "");
  EXPECT_THAT(refusal(Kernel{4, 9, "g"}), HasSubstr("kernel 4 is of program 9"));
  EXPECT_THAT(refusal(Program{1, "g.cl", "", ""}), HasSubstr("program 1 is there twice"));
  EXPECT_THAT(refusal(Buffer{4, 500, 3, 600}), HasSubstr("not all in buffer 3"));
  EXPECT_THAT(refusal(Buffer{4, UINT64_MAX, 0, 0}), HasSubstr("has 18446744073709551615 bytes"));
  EXPECT_THAT(refusal(Launch{7, 0, 0, 1, {}, {1}, {}, {}}), HasSubstr("no kernel 7"));
  EXPECT_THAT(refusal(Launch{2, 0, 0, 4, {}, {1}, {}, {}}), HasSubstr("4 dimensions"));
  EXPECT_THAT(refusal(Launch{2, 0, 5, 1, {}, {1}, {}, {}}), HasSubstr("no operator call 5"));
  EXPECT_THAT(refusal(Launch{2, 0, 0, 1, {}, {1}, {}, {{ArgumentKind::Buffer, 8, {}}}}),
              HasSubstr("no buffer 8"));
  EXPECT_THAT(refusal(Release{3}, Read{3, 0, 1, 0, 0}), HasSubstr("no more"));
  EXPECT_THAT(refusal(Contents{3, 0, {{1, 1}}}), HasSubstr("pages 1 to 1 are named"));
  EXPECT_THAT(refusal(Contents{3, 0, {{2, 0}}}), HasSubstr("too many pages"));
  EXPECT_THAT(refusal(Fill{3, 0, 8, 0, 0, {1, 2, 3}}), HasSubstr("pattern of 3"));
  EXPECT_THAT(refusal(Copy{3, 0, 3, UINT64_MAX, 8, 0, 0}), HasSubstr("not all in buffer"));
  EXPECT_THAT(refusal(Write{3, 0, 8, 0, 0, {{1, 2}, {}}}), HasSubstr("2 bytes of data"));
  EXPECT_THAT(refusal(Result{0, 0, 3, 0, 99, {1}, {1}}), HasSubstr("element type 99"));
  EXPECT_THAT(refusal(Result{0, 0, 3, 0, 8, {300}, {1}}), HasSubstr("not all in buffer"));
  EXPECT_THAT(refusal(Result{0, 0, 3, 0, 8, {2}, {-1}}), HasSubstr("begins before"));
  EXPECT_THAT(refusal(Result{0, 0, 3, 0, 8, {int64_t{1} << 40}, {0}}), HasSubstr("share memory"));
  EXPECT_THAT(refusal(Result{0, 0, 3, 0, 8, {3, 3}, {INT64_MAX, 1}}), HasSubstr("too large"));
  EXPECT_THAT(refusal(Final{3, {}}, Final{3, {}}), HasSubstr("ends twice"));
}

TEST(CaptureWriter, UnwritableAndFullFilesAreErrors) {
  EXPECT_THROW(Writer("/nowhere/x"), Error);
  EXPECT_THROW(Writer("/tmp"), Error);
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_THROW(Writer("/dev/full"), Error);
    EXPECT_TRUE(std::filesystem::exists("/dev/full"));
  }
}

}  // namespace
