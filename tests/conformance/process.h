// A process of its own for what may crash, hang or end it.
#pragma once

#include <string>

#include "event.h"

namespace ocltensor::conformance {

struct Ending {
  enum class How : uint8_t { Done, Crashed, Exited, Silent };
  How how = How::Done;
  int number = 0;         // the signal, or the exit status
  bool said_all = false;  // it ended so after it had said everything: at the end of the process
};

// Runs `body` in a forked process and passes on what it says. The process is killed when it has
// said nothing for `limit` seconds (0: no limit). An exception becomes an Event::Kind::Stop.
Ending run_in_child(const std::function<void(const Sink&)>& body, double limit, const Sink& hear);

// "crashed (SIGSEGV)", "gave no answer in 300 s (--timeout)", ...; empty where all went well.
std::string text_of(const Ending& ending, double limit);

}  // namespace ocltensor::conformance
