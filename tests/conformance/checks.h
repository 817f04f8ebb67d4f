// ABI checks: small functions that expect things of a backend and count what fails.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

#include "crash.h"
#include "rules.h"
#include "support/backend.h"

namespace ocltensor::conformance {

using testing::Backend;

class Checker {
 public:
  // `backend` nullptr: nothing is loaded yet. `rule`: what failures cite, until cite() says
  // otherwise. `minimal`: what a backend need not implement may be declined.
  Checker(std::string title, const Backend* backend, const char* rule, bool minimal)
      : title_(std::move(title)), backend_(backend), rule_(rule), minimal_(minimal) {}
  void cite(const char* rule) { rule_ = rule; }
  // What a crash or a hang from now on is reported as.
  void trying(const std::string& what) const {
    set_current("ABI check '" + title_ + "'", fmt::format("{} [{}]", what, rule_));
  }
  const Backend& backend() const { return *backend_; }
  const tb_api& api() const { return backend_->api(); }
  int32_t device() const { return backend_->device(); }
  tb_stream stream() const { return backend_->stream(); }

  // The linked-in CPU backend's addresses are host pointers, which it cannot check.
  bool addresses_are_pointers() const { return backend_->name() == "cpu"; }

  template <typename... T>
  void expect(bool condition, fmt::format_string<T...> text, T&&... values) {
    ++total_;
    if (!condition)
      failures_.push_back(
          fmt::format("{} [{}]", fmt::format(text, std::forward<T>(values)...), rule_));
  }
  // Calls a function of the ABI with an error buffer and expects a status; a failure must come with
  // a text, and must be reported in the same way with no error buffer at all.
  template <typename Function, typename... Arguments>
  void expect_status(tb_status wanted, const char* what, Function function,
                     Arguments... arguments) {
    trying(what);
    ErrorBuffer error;
    const tb_status got = function(arguments..., error.get());
    expect(got == wanted, "{}: status {} instead of {} ({})", what, got, wanted, error.text());
    if (got < 0) {
      expect(error.text()[0] != 0, "{}: an error without a text", what);
      expect(error.get()->code == got, "{}: tb_error.code is {}, the status {}", what,
             error.get()->code, got);
      const tb_status again = function(arguments..., nullptr);
      expect(again == got, "{}: status {} with a NULL tb_error, {} with one", what, again, got);
    }
    trying(fmt::format("what comes after {}", what));
  }
  // A part that this backend does not implement: noted, not a failure.
  void decline(std::string what) { declined_.push_back(std::move(what)); }
  // Has the first call of something that a smallest backend need not have been declined? Only the
  // minimal profile lets that pass.
  bool declines(const char* what, tb_status status, const ErrorBuffer& error) {
    if (!minimal_ || status != TB_UNSUPPORTED) return false;
    expect(error.text()[0] != 0, "{}: declined without a text", what);
    decline(fmt::format("{}: {}", what, error.text()));
    return true;
  }
  bool minimal() const { return minimal_; }

  int total() const { return total_; }
  const std::vector<std::string>& failures() const { return failures_; }
  const std::vector<std::string>& declined() const { return declined_; }

 private:
  std::string title_;
  const Backend* backend_;
  const char* rule_;
  bool minimal_;
  int total_ = 0;
  std::vector<std::string> failures_, declined_;
};

struct AbiCheck {
  const char* name;
  void (*run)(Checker&);
  const char* rule;  // of rules.h
};
std::span<const AbiCheck> abi_checks();

// Lists of the files of abi/.
extern const std::span<const AbiCheck> kTableChecks, kMemoryChecks, kTransferChecks, kStreamChecks,
    kGeneratorChecks, kOperatorChecks, kServiceChecks, kGraphChecks;

// ---- a plugin as a file, and how it answers to being loaded (abi/loading.cpp)
struct Plugin;
void check_file(Checker& c, const std::string& path);
// Returns the table.
const tb_api* check_loading(Checker& c, const Plugin& plugin);

}  // namespace ocltensor::conformance
