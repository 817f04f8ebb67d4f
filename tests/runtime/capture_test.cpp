// Captures through the C++ API, and ocltensor-replay on what they write.
#include <gmock/gmock.h>
#include <ocltensor/ocltensor.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "capture/writer.h"

namespace {

namespace ot = ocltensor;
namespace fs = std::filesystem;
using testing::HasSubstr;

// Before anything loads OpenCL.
[[maybe_unused]] const int kEnabled = setenv("OCLTENSOR_CAPTURE_ENABLED", "1", 1);

struct Outcome {
  int code;
  std::string text;
};
Outcome shell(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 512> part;
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text};
}

class Captures : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ocltensor-capture-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name = "capture") const { return folder_ + "/" + name; }
  Outcome replay(const std::string& options = "") const {
    return shell(REPLAY " " + options + " " + path());
  }
  std::string folder_;
};

// A small network's forward and backward arithmetic, with copies, fills and reductions.
std::vector<float> compute() {
  const ot::Tensor x = ot::div(ot::arange(0, 1200, 1, {ot::DType::Float32, "ocl"}),
                               ot::full({1}, 100.0, {ot::DType::Float32, "ocl"}))
                           .view({12, 100});
  const ot::Tensor hidden = ot::relu(ot::mm(x, x.t()));
  const ot::Tensor out =
      ot::_softmax(ot::add(hidden, ot::ones({12}, {ot::DType::Float32, "ocl"})), 1, false);
  ot::Tensor copy = ot::zeros({3, 12, 12}, {ot::DType::Float32, "ocl"});
  copy.narrow(0, 1, 1).copy_(out.view({1, 12, 12}));
  return copy.to_vector<float>();
}

TEST_F(Captures, ReplayIsBitEqualAndResultsDoNotChange) {
  EXPECT_TRUE(ot::profiler::is_capture_enabled());
  const auto expected = compute();
  {
    ot::profiler::Capture capture(path());
    EXPECT_TRUE(ot::profiler::is_capturing());
    EXPECT_EQ(compute(), expected);
    capture.stop();
  }
  EXPECT_FALSE(ot::profiler::is_capturing());
  EXPECT_EQ(compute(), expected);
  const Outcome o = replay("--exact");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("bit-equal"));
  EXPECT_THAT(o.text, HasSubstr("float32"));
  const Outcome list = replay("--list");
  EXPECT_EQ(list.code, 0);
  for (const char* text : {"mm.out", "_softmax.out", "-cl-std=CL1.2", "buffer "})
    EXPECT_THAT(list.text, HasSubstr(text));
  const auto json = nlohmann::json::parse(replay("--json --time 3").text);
  EXPECT_EQ(json["verdict"]["bit_equal"], true);
  EXPECT_GT(json["verdict"]["tensors"].size(), 2u);
  EXPECT_EQ(json["times"].size(), json["launches"].size());
  EXPECT_GE(json["times"][0]["microseconds"], json["times"][1]["microseconds"]);
}

TEST_F(Captures, KnowABufferThatAGraphHasLeft) {
  const ot::Tensor x = ot::ones({64}, {ot::DType::Float32, "ocl"});
  {
    ot::Graph::record("ocl", [&] { x.add_(1); }).replay();
  }
  ot::profiler::Capture capture(path());
  x.add_(1);
  EXPECT_EQ(x.to_vector<float>().front(), 3);
  capture.stop();
  const Outcome o = replay("--exact");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("bit-equal"));
}

TEST_F(Captures, StreamsCustomKernelsAndSubBuffers) {
  const auto library = ot::KernelLibrary::compile(R"(
__kernel void scale(__global float *out, __global const float *in, float factor) {
  out[get_global_id(0)] = in[get_global_id(0)] * factor;
}
__kernel void weigh(__global float *base, ulong offset, float4 w) {
  ((__global float *)((__global char *)base + offset))[get_global_id(0)] *= w.x + w.w;
})");
  const auto work = [&] {
    const ot::Tensor in = ot::arange(0, 4096, 1, {ot::DType::Float32, "ocl"});
    const ot::Tensor out = ot::zeros({4096}, {ot::DType::Float32, "ocl"});
    const ot::Stream side = ot::Stream::create("ocl");
    const ot::Event ready("ocl");
    ready.record();
    ready.wait(side);
    {
      const ot::StreamGuard guard(side);
      library.kernel("scale").launch({out.narrow(0, 1024, 2048), in, 0.5}, {2048}, {64});
      const std::vector<float> vector{1, 9, 9, 3};
      library.kernel("weigh").launch(
          {out.narrow(0, 1030, 500), ot::KernelBytes{std::as_bytes(std::span(vector))}}, {500});
      const ot::Event done("ocl");
      done.record();
      done.wait(ot::Stream::default_of("ocl"));
    }
    return ot::add(out, in).to_vector<float>();
  };
  const auto expected = work();
  ot::profiler::Capture capture(path());
  EXPECT_EQ(work(), expected);
  capture.stop();
  const Outcome o = replay("--exact");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(replay("--list").text, HasSubstr("scale"));
}

std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(Captures, ExportedKernelsCanBeEdited) {
  ot::profiler::Capture capture(path());
  const ot::Tensor x = ot::arange(0, 1000, 1, {ot::DType::Float32, "ocl"});
  const auto library = ot::KernelLibrary::compile(
      "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2.0f; }");
  library.kernel("twice").launch({x}, {1000});
  capture.stop();
  const Outcome exported = replay("--export " + path("report"));
  EXPECT_EQ(exported.code, 0) << exported.text;
  EXPECT_THAT(read_text(path("report/README.md")), HasSubstr("driver"));
  EXPECT_THAT(read_text(path("report/launches.txt")), HasSubstr("twice"));
  EXPECT_EQ(replay("--kernel-dir " + path("report")).code, 0);
  int edited = 0;
  for (const auto& entry : fs::directory_iterator(path("report"))) {
    const std::string text = read_text(entry.path());
    if (entry.path().extension() != ".cl" || text.find("twice") == std::string::npos) continue;
    std::ofstream(entry.path()) << std::regex_replace(text, std::regex("2.0f"), "2.001f");
    ++edited;
  }
  ASSERT_EQ(edited, 1);
  const Outcome o = replay("--kernel-dir " + path("report"));
  EXPECT_EQ(o.code, 1) << o.text;
  EXPECT_THAT(o.text, HasSubstr("MISMATCH"));
  EXPECT_THAT(o.text, HasSubstr("999 of 1000 elements differ"));
  EXPECT_EQ(replay("--tolerance 1e7 --kernel-dir " + path("report")).code, 0);
  EXPECT_EQ(replay("--exact --tolerance 1e7 --kernel-dir " + path("report")).code, 1);
  for (const auto& entry : fs::directory_iterator(path("report")))
    if (entry.path().extension() == ".options") std::ofstream(entry.path()) << "-D float=thing\n";
  EXPECT_THAT(replay("--kernel-dir " + path("report")).text, HasSubstr("thing"));
  EXPECT_THAT(replay("--kernel-dir /tmp").text,
              HasSubstr("has no file of this capture's programs"));
}

TEST_F(Captures, BrokenFilesAreErrors) {
  {
    ot::profiler::Capture capture(path());
    (void)compute();
  }
  const auto size = fs::file_size(path());
  fs::resize_file(path(), size - 10);
  const Outcome o = replay();
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.text, HasSubstr("the capture is truncated"));
  std::ofstream(path()) << "something else";
  EXPECT_THAT(replay("--list").text, HasSubstr("no capture file"));
  fs::remove(path());
  EXPECT_THAT(replay().text, HasSubstr("No such file"));
}

// A capture of a device that allows larger work-groups than any.
TEST_F(Captures, WorkGroupsThatAreTooLargeAreErrors) {
  namespace file = ot::capture_file;
  file::Writer writer(path());
  writer.add(file::Program{1, "f.cl", "-cl-std=CL1.2", "__kernel void f(__global int* p) {}"});
  writer.add(file::Kernel{2, 1, "f"});
  writer.add(file::Buffer{3, 4096, 0, 0});
  writer.add(file::Contents{3, 0, {{1, 0}}});
  writer.add(
      file::Launch{2, 0, 0, 1, {}, {1 << 22}, {1 << 22}, {{file::ArgumentKind::Buffer, 3, {}}}});
  writer.finish();
  const Outcome o = replay();
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.text, HasSubstr("launch 0 (f) has work-groups of 4194304x1x1 work-items"));
}

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ot::Error& e) {
    return e.what();
  }
  return "no error";
}

TEST_F(Captures, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(text_of([] { ot::profiler::Capture("/nowhere/x"); }),
              HasSubstr("/nowhere/x cannot be written: No such file"));
  ot::profiler::Capture capture(path());
  EXPECT_THAT(text_of([&] { ot::profiler::Capture(path("other")); }),
              HasSubstr("a capture is on already"));
  capture.stop();
  EXPECT_THAT(text_of([&] { capture.stop(); }), HasSubstr("no capture is on"));
  EXPECT_FALSE(fs::exists(path("other")));
  const auto expected = compute();
  EXPECT_THAT(text_of([&] {
                ot::profiler::Capture full("/dev/full");
                (void)compute();
                full.stop();
              }),
              HasSubstr("No space left on device"));
  EXPECT_EQ(compute(), expected);
}

// A disk that is full on the way: the work goes on, stop() says why, nothing is left.
TEST_F(Captures, AFullDiskOnTheWay) {
  const Outcome o =
      shell("bash -c 'ulimit -f 64; trap \"\" XFSZ; " PROBE " capture " + path() + "'");
  EXPECT_EQ(o.code, 3) << o.text;
  EXPECT_THAT(o.text, HasSubstr("computed right"));
  EXPECT_THAT(o.text, HasSubstr("File too large"));
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(Captures, WithoutTheVariableThereIsAnError) {
  const Outcome o = shell("env -u OCLTENSOR_CAPTURE_ENABLED " PROBE " capture " + path());
  EXPECT_EQ(o.code, 3) << o.text;
  EXPECT_THAT(o.text, HasSubstr("set the environment variable OCLTENSOR_CAPTURE_ENABLED=1"));
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(Captures, ForkWhileCapturing) {
  const Outcome o = shell(PROBE " capture-fork " + path());
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("child: status -7"));
  EXPECT_THAT(o.text, HasSubstr("parent stopped"));
  EXPECT_EQ(replay("--exact").code, 0);
}

}  // namespace
