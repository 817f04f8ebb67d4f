// Switches: how devices choose among algorithms, which operators and kernel providers they use, and
// what they print of it. The counterpart of torch.backends.ocl.
//
// All switches hold for the whole process and every loaded backend; each is a setting, too, with an
// environment variable of its own (settings.h). Every function is thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ocltensor/api.h"

namespace ocltensor::backends {

// Settings until the end of the block. Scopes nest, and may end in any order, also in several
// threads: the value in force is that of the scope entered last, and when all have ended, what was
// before. Lists (OCLTENSOR_DISABLED_*) add up. set_setting() within a scope that has the setting
// lasts as long as the scope.
class OCLTENSOR_API SettingScope {
 public:
  // Error TB_E_INVALID for a bad name or value; then nothing is changed.
  using Values = std::vector<std::pair<std::string, std::string>>;
  explicit SettingScope(const Values& values);
  // const SettingScope scope{{"OCLTENSOR_VERBOSE", "1"}};
  SettingScope(std::initializer_list<std::pair<std::string, std::string>> values)
      : SettingScope(Values(values)) {}
  ~SettingScope();
  SettingScope(SettingScope&& other) noexcept : number_(std::exchange(other.number_, 0)) {}
  SettingScope& operator=(SettingScope&&) = delete;

 private:
  uint64_t number_;
};

// Partial sums of products of a 16-bit type.
struct SixteenBit {
  bool reduced = false;  // they may be rounded to that type
  bool split = true;     // they may be computed apart (split-K)
};

// What is not given stays as it is.
struct Flags {
  std::optional<bool> enabled;  // algorithms made for some shapes; else the general ones alone
  std::optional<bool> deterministic;      // the same bits in every run
  std::optional<bool> benchmark;          // algorithms by measuring
  std::optional<int> benchmark_limit;     // how many are tried; 0: all
  std::optional<bool> keep_measurements;  // on disk, and choose by them, `benchmark` or not
  std::optional<bool> immediate;          // by rule, whatever `benchmark` says
  std::optional<bool> allow_tf32;         // float32 products in TF32, where matrix units offer it
  std::optional<SixteenBit> fp16, bf16;
};
OCLTENSOR_API Flags get_flags();  // every one is given
OCLTENSOR_API void set_flags(const Flags& flags);
[[nodiscard]] OCLTENSOR_API SettingScope flags(const Flags& flags);
// 1: each choice of an algorithm with the reasons, 2: each operator, too; 0: neither.
[[nodiscard]] OCLTENSOR_API SettingScope verbose(int level);

// Operators by name ("add", "add.out") or pattern ("linalg_*"). A disabled one runs on the CPU if
// OCLTENSOR_ENABLE_FALLBACK is 1, else it is an error that says so. Error TB_E_INVALID, with names
// that are near, where a pattern fits no operator of any loaded backend.
OCLTENSOR_API void disable_operations(const std::vector<std::string>& patterns);
// Also what a scope disabled.
OCLTENSOR_API void enable_operations(const std::vector<std::string>& patterns);
[[nodiscard]] OCLTENSOR_API SettingScope
operations_disabled(const std::vector<std::string>& patterns);
OCLTENSOR_API std::vector<std::string> disabled_operations();

// Where kernels come from, in the order in which they are asked.
struct Provider {
  std::string name;     // "portable"
  std::string library;  // its name for preferred_blas_library; empty: it has no matrix products
  bool available, enabled;
  std::string version;  // empty if it is not available
  std::string what;     // what it is
  std::string missing;  // why it is not available
};
OCLTENSOR_API std::vector<Provider> providers();
// Error TB_E_INVALID for a name that none has. Operators of a disabled provider go to the next.
OCLTENSOR_API void set_provider_enabled(std::string_view name, bool enabled);
// The operators that it has, sorted; none for one that is not available.
OCLTENSOR_API std::vector<std::string> provider_operations(std::string_view name);

struct Algorithm {
  std::string family, id;  // "matmul", "matmul.packed"
  uint64_t runs;           // since the process began
  bool last;               // the family's last choice
  bool disabled;
  bool general;  // takes whatever comes, and cannot be disabled
  std::string name;
};
OCLTENSOR_API std::vector<Algorithm> algorithms();
// The id of the family's last choice; empty before the first.
OCLTENSOR_API std::string last_choice(std::string_view family);
// By id or pattern; the next one that takes a problem runs instead.
[[nodiscard]] OCLTENSOR_API SettingScope
algorithms_disabled(const std::vector<std::string>& patterns);

// What `benchmark` has measured.
struct Measurement {
  std::string problem;  // device and class of shapes
  std::string id;
  double microseconds;
  bool best;
};
OCLTENSOR_API std::vector<Measurement> measurements();
OCLTENSOR_API void forget_measurements();

}  // namespace ocltensor::backends
