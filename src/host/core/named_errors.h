// Puts a function's name in front of errors of helpers that do not know for whom they work
// (broadcast, wrap_dim, check_fits).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "ocltensor/dims.h"
#include "ocltensor/error.h"

namespace ocltensor::detail {

// Calls f(). An error of the arguments whose text does not begin with `name` gets it in front; an
// operator's name counts without its overload and leading underscores.
template <typename F>
decltype(auto) naming(std::string_view name, F&& f) {
  const auto named = [name](const char* what) {
    std::string_view stem = name.substr(0, name.find('.')), text = what;
    stem.remove_prefix(std::min(stem.find_first_not_of('_'), stem.size()));
    text.remove_prefix(std::min(text.find_first_not_of('_'), text.size()));
    return text.starts_with(stem) ? std::string(what) : fmt::format("{}: {}", name, what);
  };
  try {
    return f();
  } catch (const RangeError& e) {
    throw RangeError(named(e.what()));
  } catch (const Error& e) {
    if (e.status() != TB_E_INVALID) throw;
    throw Error(e.status(), e.reason(), named(e.what()), e.native());
  }
}

// The position that a dimension of `function` means, counted from the end where it is negative.
inline size_t wrapped(std::string_view function, int64_t dim, int64_t rank) {
  return static_cast<size_t>(naming(function, [&] { return wrap_dim(dim, rank); }));
}

}  // namespace ocltensor::detail
