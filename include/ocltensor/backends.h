// Switches for the backends: how they choose among algorithms, which operators and kernel providers
// they use, and what they log about it. The counterpart of torch.backends.ocl.
//
// All switches hold for the whole process and every loaded backend. Each is also a setting with an
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

// Changes settings until the end of the block, for the whole process. Scopes nest and may end in
// any order, also in several threads: the value in force is that of the open scope entered last;
// when all have ended, the value from before the first. Lists (OCLTENSOR_DISABLED_*) are joined
// instead. set_setting() for a setting that an open scope has lasts as long as that scope.
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

// How the partial sums of matrix products of a 16-bit type may be computed.
struct SixteenBit {
  bool reduced = false;  // they may be rounded to that type
  bool split = true;     // they may come from separate pieces (split-K)
};

// set_flags() and flags() leave an empty member as it is.
struct Flags {
  std::optional<bool> enabled =
      {};  // algorithms for special shapes, too; false: the general ones alone
  std::optional<bool> deterministic = {};   // the same bits in every run
  std::optional<bool> benchmark = {};       // choose algorithms by measuring them
  std::optional<int> benchmark_limit = {};  // how many are measured; 0: all
  std::optional<bool> keep_measurements =
      {};                               // on disk, and choose by them even without `benchmark`
  std::optional<bool> immediate = {};   // choose by rule, whatever `benchmark` says
  std::optional<bool> allow_tf32 = {};  // float32 products in TF32, where matrix units offer it
  std::optional<bool> allow_int8_activations =
      {};  // few rows times quantised weights as bytes, where kernels have such products
  std::optional<SixteenBit> fp16 = {}, bf16 = {};
};
OCLTENSOR_API Flags get_flags();  // no member is empty
OCLTENSOR_API void set_flags(const Flags& flags);
[[nodiscard]] OCLTENSOR_API SettingScope flags(const Flags& flags);
// Logs each choice of an algorithm with the reasons (1), each operator as well (2), or neither (0).
[[nodiscard]] OCLTENSOR_API SettingScope verbose(int level);

// Operators by name ("add", "add.out") or pattern ("linalg_*"). A disabled operator runs on the CPU
// if OCLTENSOR_ENABLE_FALLBACK is 1; else a call of it is an error that says so. Error
// TB_E_INVALID, with similar names, if a pattern matches no operator of any loaded backend.
OCLTENSOR_API void disable_operations(const std::vector<std::string>& patterns);
// Enables also what an open scope disabled.
OCLTENSOR_API void enable_operations(const std::vector<std::string>& patterns);
[[nodiscard]] OCLTENSOR_API SettingScope
operations_disabled(const std::vector<std::string>& patterns);
OCLTENSOR_API std::vector<std::string> disabled_operations();

// Where kernels come from; the first that has an operator runs it.
struct Provider {
  std::string name;     // "portable"
  std::string library;  // its name in preferred_blas_library; empty: it has no matrix products
  bool available, enabled;
  std::string version;  // empty if it is not available
  std::string what;     // what it is
  std::string missing;  // why it is not available
};
OCLTENSOR_API std::vector<Provider> providers();
// Error TB_E_INVALID if no provider has the name. The next provider runs a disabled one's
// operators.
OCLTENSOR_API void set_provider_enabled(std::string_view name, bool enabled);
// The provider's operators, sorted; empty if it is not available. Error TB_E_INVALID as above.
OCLTENSOR_API std::vector<std::string> provider_operations(std::string_view name);

struct Algorithm {
  std::string family, id;  // "matmul", "matmul.packed"
  uint64_t runs;           // since the process began
  bool last;               // the family's last choice
  bool disabled;
  bool general;  // accepts every problem, and cannot be disabled
  std::string name;
};
OCLTENSOR_API std::vector<Algorithm> algorithms();
// The id of the family's last choice; empty before the first.
OCLTENSOR_API std::string last_choice(std::string_view family);
// By id or pattern. The next algorithm of the family that accepts a problem runs instead.
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
