// fork, a pipe, and a clock.
#include "process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "crash.h"
#include "ocltensor/error.h"

namespace ocltensor::conformance {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void run_child(int pipe, const std::function<void(const Sink&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted kit leaves nothing behind
  const Sink say = [pipe](const Event& event) {
    const std::string line = to_line(event) + "\n";
    for (size_t done = 0; done < line.size();) {
      const ssize_t n = write(pipe, line.data() + done, line.size() - done);
      if (n < 0 && errno != EINTR) _exit(1);
      if (n > 0) done += static_cast<size_t>(n);
    }
  };
  try {
    body(say);
  } catch (const std::exception& e) {
    say({.kind = Event::Kind::Stop, .text = e.what()});
  }
  set_current_task({});
  set_current("the end of the process", "exit(), after everything was tested");
  say({.kind = Event::Kind::Done});
  std::exit(0);  // with the plugin's destructors: they are tested, too
}

// Takes the lines that are whole from `text`.
void hear_lines(std::string& text, const Sink& hear, bool& said_all) {
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Event event = from_line(text.substr(begin, end - begin));
    if (event.kind == Event::Kind::Done)
      said_all = true;
    else
      hear(event);
  }
  text.erase(0, begin);
}

// Reads until the other side is closed, which is the child's end. False: it was silent for too
// long, and has been killed.
bool listen(pid_t child, int pipe, double limit, const Sink& hear, bool& said_all) {
  std::string text;
  char buffer[1 << 16];
  auto heard = Clock::now();
  for (;;) {
    pollfd waiting{pipe, POLLIN, 0};
    const int ready = poll(&waiting, 1, 100);
    if (ready > 0) {
      const ssize_t n = read(pipe, buffer, sizeof buffer);
      if (n == 0) return true;
      if (n < 0) continue;
      text.append(buffer, static_cast<size_t>(n));
      hear_lines(text, hear, said_all);
      heard = Clock::now();
      continue;
    }
    // Processes that the plugin has started may keep the pipe open.
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child && poll(&waiting, 1, 0) == 0)
      return true;
    if (limit > 0 && Clock::now() - heard > std::chrono::duration<double>(limit)) {
      kill(child, SIGKILL);
      return false;
    }
  }
}

}  // namespace

Ending run_in_child(const std::function<void(const Sink&)>& body, double limit, const Sink& hear) {
  share_current();
  set_current_task({});
  std::fflush(nullptr);  // or the child writes it once more
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(TB_E_INTERNAL, "pipe2 failed: too many files are open");
  const pid_t child = fork();
  if (child < 0) fail(TB_E_OUT_OF_MEMORY, "fork failed: no more processes are allowed");
  if (child == 0) {
    close(ends[0]);
    run_child(ends[1], body);
  }
  close(ends[1]);
  Ending ending;
  const bool ended = listen(child, ends[0], limit, hear, ending.said_all);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    ending.how = Ending::How::Silent;
  } else if (WIFSIGNALED(status)) {
    ending = {Ending::How::Crashed, WTERMSIG(status), ending.said_all};
  } else if (WEXITSTATUS(status) > 128) {  // by the signal handler
    ending = {Ending::How::Crashed, WEXITSTATUS(status) - 128, ending.said_all};
  } else if (WEXITSTATUS(status) != 0 || !ending.said_all) {
    ending = {Ending::How::Exited, WEXITSTATUS(status), ending.said_all};
  }
  return ending;
}

std::string text_of(const Ending& ending, double limit) {
  switch (ending.how) {
    case Ending::How::Crashed: return fmt::format("crashed ({})", signal_name(ending.number));
    case Ending::How::Exited:
      return fmt::format("ended the process (exit status {})", ending.number);
    case Ending::How::Silent: return fmt::format("gave no answer in {} s (--timeout)", limit);
    default: return {};
  }
}

}  // namespace ocltensor::conformance
