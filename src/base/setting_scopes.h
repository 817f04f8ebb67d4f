// Settings for the duration of a scope, for the whole process: the base of `flags(...)`,
// `verbose(...)` and `operations_disabled(...)` in ocltensor::backends and in torch.backends.ocl.
//
// The value in force is that of the scope that was entered last and is still open; without one, the
// value from outside all scopes. So scopes may end in any order, as those of several threads do,
// and when all have ended, the settings are as before. Lists (OCLTENSOR_DISABLED_*) are joined
// instead.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ocltensor {

using SettingValues = std::vector<std::pair<std::string, std::string>>;

// Thread-safe.
class SettingScopes {
 public:
  using Read = std::function<std::string(const std::string& name)>;
  using Write = std::function<void(const std::string& name, const std::string& value)>;
  // `write` checks a value and throws if it is a bad one.
  SettingScopes(Read read, Write write) : read_(std::move(read)), write_(std::move(write)) {}

  // Opens a scope and returns its number. Throws for a bad value, and changes nothing then.
  uint64_t enter(const SettingValues& values);
  // Closes the scope with that number; an unknown number is ignored.
  void leave(uint64_t scope);
  // Assigns within the scope entered last that has this setting; without one, permanently.
  void assign(const std::string& name, const std::string& value);
  // Removes the entries for which `unwanted` is true from a list, also from the lists of all
  // scopes.
  void remove(const std::string& name, const std::function<bool(const std::string&)>& unwanted);
  // Adds entries to a list, permanently.
  void add(const std::string& name, const std::vector<std::string>& entries);

 private:
  struct Scope {
    uint64_t number;
    std::map<std::string, std::string> values;
  };
  std::string in_force(const std::string& name, const std::string& outside) const;
  const std::string& outside_of(const std::string& name);
  void publish(const std::string& name);

  Read read_;
  Write write_;
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::vector<Scope> scopes_;
  std::map<std::string, std::string> outside_;  // values outside all scopes, of settings in scopes
};

}  // namespace ocltensor
