// Settings with any text, from the environment and from the API: accepted, or an Error that names
// the variable.
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/config.h"
#include "ocltensor/error.h"

namespace {

namespace ot = ocltensor;
using namespace ocltensor::config;

void use_all() {
  for (int i = 0; i < kKnobCount; ++i) {
    const auto knob = static_cast<Knob>(i);
    (void)get_int(knob);
    (void)get_double(knob);
    (void)get_string(knob);
  }
  (void)low_watermark_ratio(true);
  (void)cache_folder();
}

template <typename Body>
void expect_named(const char* variable, Body body) {
  try {
    body();
  } catch (const ot::Error& e) {
    if (e.status() != TB_E_INVALID || std::strstr(e.what(), variable) == nullptr) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool cleared = [] {  // what the caller's environment sets is not under test
    for (const KnobState& state : list()) unsetenv(state.name);
    return true;
  }();
  if (!cleared || size < 2) return 0;
  const auto knob = static_cast<Knob>(data[0] % kKnobCount);
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const char* variable = name(knob);
  reset();
  if (data[1] % 2 == 0) {
    std::string line = std::string(variable) + "=" + text.c_str();  // setenv would keep every value
    putenv(line.data());
    expect_named(variable, [] { validate(); });
    expect_named(variable, use_all);
    unsetenv(variable);
  } else {
    expect_named(variable, [&] {
      set(knob, text);
      if (get_string(knob) != text) std::abort();
      use_all();
    });
    try {
      set(text, "1");
    } catch (const ot::Error&) {
    }
  }
  reset();
  for (const KnobState& state : list())
    if (state.source != Source::Default) std::abort();
  validate();
  return 0;
}
