// Running the probe, a process of its own, in a folder of its own.
#pragma once

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace fs = std::filesystem;

struct Outcome {
  int code;
  std::string text;
};

// Runs a command line with settings like "A=1 B=2", in `folder`; standard error is part of the
// text.
inline Outcome outcome_of(const std::string& line, const std::string& settings = "",
                          const std::string& folder = ".") {
  const std::string command = "cd " + folder + " && exec env " + settings + " " + line + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 512> part;
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text};
}

inline Outcome probe(const std::string& mode, const std::string& settings = "",
                     const std::string& folder = ".") {
  return outcome_of(PROBE " " + mode, settings, folder);
}

// A folder of this test's own, gone afterwards.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/ocltensor-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() {
    std::error_code error;
    fs::permissions(path_, fs::perms::owner_all, error);
    fs::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }
  // Without builder processes, which would take builds from the probe that counts them.
  std::string cache() const {
    return "OCLTENSOR_BUILD_AHEAD=0 OCLTENSOR_CACHE_DIR=" + path_ + "/cache";
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> list;
    for (const auto& e : fs::directory_iterator(path_ + "/cache"))
      if (e.path().stem() != "building") list.push_back(e.path());  // a lock, and marks
    return list;
  }

 private:
  std::string path_;
};
