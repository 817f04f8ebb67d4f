// Spawns builders.
#include "builder_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/config.h"
#include "ocltensor/error.h"

namespace ocltensor::opencl::build_ahead {
namespace {

namespace fs = std::filesystem;

// The builder is beside the library (an installed tree, a wheel), or in the bin folder of a build
// tree.
std::string builder_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&builder_path), &info) == 0 || info.dli_fname == nullptr)
    fail(TB_E_UNAVAILABLE, "the library's own path is not known");
  std::error_code error;
  const fs::path folder = fs::canonical(info.dli_fname, error).parent_path();
  for (const char* place : {".", "../bin"}) {
    std::string path = (folder / place / "ocltensor-builder").lexically_normal();
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  fail(TB_E_UNAVAILABLE, "ocltensor-builder is neither in {} nor in the bin folder beside it",
       folder.string());
}

// The environment, with settings made through the API; a builder starts no builders.
std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  const auto put = [&](const std::string& name, const std::string& value) {
    std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(name + "="); });
    all.push_back(name + "=" + value);
  };
  for (const auto& knob : config::list())
    if (knob.source == config::Source::Api) put(knob.name, knob.value);
  put(config::name(config::Knob::BuildAhead), "0");
  put(config::name(config::Knob::LogProfileInfo), "0");  // profiling concerns this process only
  put(config::name(config::Knob::TraceSignposts), "0");
  // Builders launch nothing. NVIDIA's driver makes contexts one after the other, in all processes,
  // and is quicker with one channel: twelve take 0.9 s instead of 2.3 (H100).
  put("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  return all;
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

int usable_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void start_builder(const Capabilities& caps, int index, int input) {
  std::vector<std::string> arguments{builder_path(), std::to_string(index), caps.identity()};
  std::vector<std::string> variables = environment();
  FileActions actions;
  posix_spawn_file_actions_adddup2(actions.get(), input, STDIN_FILENO);
  for (const int file : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(actions.get(), file, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int code = posix_spawn(&process, arguments[0].c_str(), actions.get(), nullptr,
                               pointers(arguments).data(), pointers(variables).data());
  if (code != 0) fail(TB_E_UNAVAILABLE, "{} cannot be run: {}", arguments[0], std::strerror(code));
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) continue;  // it detaches at once
}

void detach() {
  if (fork() != 0) _exit(0);  // also if fork() fails, because the parent waits for this process
  setsid();
}

}  // namespace ocltensor::opencl::build_ahead
