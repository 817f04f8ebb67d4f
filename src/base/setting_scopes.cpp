// Entering and leaving scopes of settings.
#include "setting_scopes.h"

#include <algorithm>

#include "name_patterns.h"

namespace ocltensor {
namespace {

bool is_list(const std::string& name) { return name.starts_with("OCLTENSOR_DISABLED_"); }

// The entries of two lists, without repetitions, in their order.
std::string joined(const std::string& first, const std::string& second) {
  std::vector<std::string> names = split_names(first);
  for (const std::string& name : split_names(second))
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string without(const std::string& list,
                    const std::function<bool(const std::string&)>& unwanted) {
  std::string text;
  for (const std::string& name : split_names(list))
    if (!unwanted(name)) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

std::string SettingScopes::in_force(const std::string& name, const std::string& outside) const {
  std::string value = outside;
  for (const Scope& scope : scopes_)
    if (const auto it = scope.values.find(name); it != scope.values.end())
      value = is_list(name) ? joined(value, it->second) : it->second;
  return value;
}

const std::string& SettingScopes::outside_of(const std::string& name) {
  const auto it = outside_.find(name);
  return it != outside_.end() ? it->second : outside_.emplace(name, read_(name)).first->second;
}

void SettingScopes::publish(const std::string& name) {
  write_(name, in_force(name, outside_of(name)));
  for (const Scope& scope : scopes_)
    if (scope.values.contains(name)) return;
  outside_.erase(name);
}

uint64_t SettingScopes::enter(const SettingValues& values) {
  const std::lock_guard lock(mutex_);
  Scope scope{++last_, {}};
  for (const auto& [name, value] : values) {
    (void)outside_of(name);
    scope.values[name] = value;
  }
  scopes_.push_back(std::move(scope));
  try {
    for (const auto& [name, value] : values) publish(name);
  } catch (...) {
    scopes_.pop_back();
    for (const auto& [name, value] : values) {
      try {
        if (outside_.contains(name)) publish(name);
      } catch (...) {  // the refused value was never in force
        outside_.erase(name);
      }
    }
    throw;
  }
  return last_;
}

void SettingScopes::leave(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find(scopes_, number, &Scope::number);
  if (it == scopes_.end()) return;
  const Scope scope = std::move(*it);
  scopes_.erase(it);
  for (const auto& [name, value] : scope.values) publish(name);
}

void SettingScopes::assign(const std::string& name, const std::string& value) {
  const std::lock_guard lock(mutex_);
  if (!is_list(name)) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto it = scope->values.find(name);
      if (it == scope->values.end()) continue;
      write_(name, value);
      it->second = value;
      return;
    }
    return write_(name, value);
  }
  write_(name, in_force(name, value));
  if (const auto it = outside_.find(name); it != outside_.end()) it->second = value;
}

void SettingScopes::remove(const std::string& name,
                           const std::function<bool(const std::string&)>& unwanted) {
  const std::lock_guard lock(mutex_);
  outside_[name] = without(outside_of(name), unwanted);
  for (Scope& scope : scopes_)
    if (const auto it = scope.values.find(name); it != scope.values.end())
      it->second = without(it->second, unwanted);
  publish(name);
}

void SettingScopes::add(const std::string& name, const std::vector<std::string>& entries) {
  const std::lock_guard lock(mutex_);
  std::string list = outside_of(name);
  for (const std::string& entry : entries) list = joined(list, entry);
  write_(name, in_force(name, list));
  outside_[name] = list;
  publish(name);
}

}  // namespace ocltensor
