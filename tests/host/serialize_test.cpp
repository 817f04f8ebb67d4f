// Files of tensors: what is written is read, other writers' files are read, damaged ones are
// refused.
#include "ocltensor/serialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ocltensor/ocltensor.h"

namespace ocltensor {
namespace {

using ::testing::HasSubstr;
constexpr DType kTypes[] = {DType::Bool,    DType::UInt8,   DType::Int8,      DType::Int16,
                            DType::Int32,   DType::Int64,   DType::Float16,   DType::BFloat16,
                            DType::Float32, DType::Float64, DType::Complex64, DType::UInt16,
                            DType::UInt32,  DType::UInt64};

class Files : public ::testing::Test {
 protected:
  ~Files() override { std::filesystem::remove(path_); }
  std::string bytes() const {
    std::ostringstream all;
    all << std::ifstream(path_, std::ios::binary).rdbuf();
    return all.str();
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  template <typename Load>
  std::string error_of(Load&& load) const {
    try {
      (void)load(path_);
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), TB_E_INVALID);
      EXPECT_THAT(e.what(), HasSubstr(path_));
      return e.what();
    }
    return "no error";
  }
  const std::string path_ = ::testing::TempDir() + "ocltensor-files-" + std::to_string(getpid());
};

Tensor example(DType type) { return (arange(6).view({2, 3}) - 2).to(type); }
void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_TRUE(a.sizes() == b.sizes());
  EXPECT_TRUE((a == b).all().item<bool>());
}

TEST_F(Files, SafetensorsOfEveryType) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const DType type : kTypes) tensors.emplace_back(std::string(name(type)), example(type));
  tensors.emplace_back("a \"name\" ü", example(DType::Float32).t());  // strides are not kept
  tensors.emplace_back("scalar", tensor(2.5f));
  tensors.emplace_back("nothing", empty({0, 3}));
  save_safetensors(path_, tensors);
  const auto read = load_safetensors(path_);
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, t] : read)
    expect_same(t,
                std::ranges::find(tensors, name, &std::pair<std::string, Tensor>::first)->second);
  const auto chosen = load_safetensors(path_, "cpu", {"int8"});
  ASSERT_EQ(chosen.size(), 1u);
  expect_same(chosen[0].second, example(DType::Int8));
  EXPECT_THAT(error_of([](const auto& p) { return load_safetensors(p, "cpu", {"none"}); }),
              HasSubstr("no tensor 'none'"));
  EXPECT_THROW(save_safetensors(path_, {{"a", ones({1})}, {"a", ones({1})}}), Error);
}

std::string with_header(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + header + data;
}

TEST_F(Files, SafetensorsOfOthers) {
  // As the format's documentation has it; keys in any order, metadata, spaces.
  write(with_header(R"( {"__metadata__":{"format":"pt"}, "w": {"shape":[1,2],"data_offsets":[0,4],)"
                    R"("dtype":"F16"},"b":{"dtype":"I32","shape":[],"data_offsets":[4,8]}}  )",
                    std::string("\x00\x3c\x00\xc0\x07\x00\x00\x00", 8)));
  const auto read = load_safetensors(path_);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].first, "w");
  EXPECT_EQ(read[0].second.to_vector<float>(), (std::vector<float>{1, -2}));
  EXPECT_EQ(read[1].second.item<int>(), 7);
}

TEST_F(Files, DamagedSafetensorsAreRefused) {
  const auto load = [](const auto& p) { return load_safetensors(p); };
  EXPECT_THAT(error_of(load), HasSubstr("No such file"));
  const auto refused = [&](const std::string& bytes, const char* why) {
    write(bytes);
    EXPECT_THAT(error_of(load), HasSubstr(why)) << bytes;
  };
  refused("", "too short");
  refused(std::string(8, '\xff'), "its header would have");
  refused(with_header("[1]", ""), "not JSON");
  refused(with_header("{\"a\"", ""), "not JSON");
  const auto entry = [](const char* type, const char* shape, const char* offsets) {
    return with_header(fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", type,
                                   shape, offsets),
                       std::string(8, 'x'));
  };
  refused(entry("F32", "[2]", "[0,12]"), "outside of the file");
  refused(entry("F32", "[2]", "[8,0]"), "outside of the file");
  refused(entry("F32", "[3]", "[0,8]"), "takes 12 bytes, and has 8");
  refused(entry("F32", "[-2]", "[0,8]"), "impossible");
  refused(entry("F32", "\"x\"", "[0,8]"), "lacks");
  refused(entry("F32", "[4611686018427387904,4]", "[0,8]"), "impossible");
  refused(entry("F6_E3M2", "[8]", "[0,6]"), "F6_E3M2");
  refused(with_header(R"({"a":{"shape":[2]}})", ""), "lacks");
  write(entry("F32", "[2]", "[0,8]"));
  EXPECT_EQ(load(path_).size(), 1u);
}

TEST_F(Files, NpyOfEveryType) {
  for (const DType type : kTypes) {
    if (type == DType::BFloat16) {
      EXPECT_THROW(save_npy(path_, example(type)), Error);
      continue;
    }
    for (const Tensor& t :
         {example(type), example(type).t(), example(type)[0][1], empty({0, 2}, type)}) {
      save_npy(path_, t);
      EXPECT_EQ((bytes().find('\n') + 1) % 64, 0u);
      expect_same(load_npy(path_), t);
    }
  }
}

TEST_F(Files, NpyOfNumpy) {
  // numpy.save of numpy.asfortranarray([[1, 2], [3, 4]], dtype="<i2"), version 1.0
  std::string header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }";
  header.resize(117, ' ');
  write(std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + '\n' +
        std::string("\x01\x00\x03\x00\x02\x00\x04\x00", 8));
  EXPECT_EQ(load_npy(path_).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, 4}));
  const auto load = [](const auto& p) { return load_npy(p); };
  const std::string good = bytes();
  write(good.substr(0, good.size() - 1));
  EXPECT_THAT(error_of(load), HasSubstr("7 bytes of data"));
  write(good.substr(0, 40));
  EXPECT_THAT(error_of(load), HasSubstr("header would have"));
  write("\x93NUMP?" + good.substr(6));
  EXPECT_THAT(error_of(load), HasSubstr("no .npy file"));
  std::string other = good;
  other.replace(other.find("<i2"), 3, ">i2");
  write(other);
  EXPECT_THAT(error_of(load), HasSubstr("'>i2'"));
  EXPECT_THROW(save_npy("/proc/nowhere/a.npy", ones({1})), Error);
}

}  // namespace
}  // namespace ocltensor
