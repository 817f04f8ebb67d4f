// Collects the sections of a report. The kit is a program of its own, so that a crash in it is a
// finding and not the end.
#include "report.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "speed_rows.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
namespace ot = ocltensor;
using nlohmann::json;

constexpr int kFormat = 1;
// Some of each family of kernels, and what compilers have got wrong before.
constexpr const char* kKitOperators =
    "^(add|exp|erf|sin|lgamma|pow.Tensor_Tensor|remainder.Tensor|where|sum.IntList|amax|argmax|"
    "var.correction|cumsum|cummax|sort|topk|mode|mm|addmm|bmm|_int_mm|convolution|"
    "convolution_backward|max_pool2d_with_indices|native_batch_norm|native_layer_norm|"
    "native_layer_norm_backward|_softmax|_log_softmax_backward_data|gather|scatter_add|"
    "index_put|embedding_dense_backward|cat|copy|tril|_fft_c2c|normal|linalg_lu_factor_ex|_linalg_"
    "svd|"
    "upsample_bilinear2d|_foreach_add.List|_fused_adamw_|_scaled_dot_product_fused_attention."
    "*)[._]";

json device_of(ot::Device device) {
  const tb_device_properties p = ot::device_properties(device);
  const auto has = [&](uint32_t feature) { return (p.features & feature) != 0; };
  return {{"name", p.name},
          {"vendor", p.vendor},
          {"platform", p.platform},
          {"driver", p.driver_version},
          {"language", p.language_version},
          {"kind", p.kind},
          {"compute_units", p.compute_units},
          {"clock_mhz", p.clock_mhz},
          {"work_group", p.max_work_group_size},
          {"global_memory", p.global_memory},
          {"largest_allocation", p.largest_allocation},
          {"local_memory", p.local_memory},
          {"fp64", has(TB_FEATURE_FP64)},
          {"fp16", has(TB_FEATURE_FP16_ARITHMETIC)},
          {"unified_memory", has(TB_FEATURE_UNIFIED_MEMORY)},
          {"subgroups", has(TB_FEATURE_SUBGROUPS)},
          {"int64_atomics", has(TB_FEATURE_INT64_ATOMICS)}};
}

bool is_path(const std::string& text) { return text.find('/') != std::string::npos; }

json drivers_of(ot::Device device) {
  json lines = json::array();
  std::istringstream report(ot::device_report(device.type()));
  for (std::string line; std::getline(report, line);)
    if (!is_path(line)) lines.push_back(line);
  return lines;
}

json settings() {
  json all = json::object();
  for (const ot::Setting& s : ot::settings())
    if (s.source != "default") all[s.name] = is_path(s.value) ? "(a path)" : s.value;
  return all;
}

json providers() {
  json all = json::array();
  for (const ot::backends::Provider& p : ot::backends::providers())
    all.push_back({{"name", p.name},
                   {"available", p.available},
                   {"enabled", p.enabled},
                   {"missing", is_path(p.missing) ? "" : p.missing}});
  return all;
}

json figures(const SelfTest& t) {
  return {{"right", t.right},
          {"first_result_ms", t.first_result_ms},
          {"copy_gb_per_s", t.copy_gb_per_s},
          {"upload_gb_per_s", t.upload_gb_per_s},
          {"download_gb_per_s", t.download_gb_per_s},
          {"launch_us", t.launch_us},
          {"round_trip_us", t.round_trip_us}};
}

// Beside this program; empty if it is not installed.
std::string kit_program() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / "ocltensor-conformance").string();
  return access(path.c_str(), X_OK) == 0 ? path : std::string();
}

// The status of waitpid(). What it prints goes to this program's output.
int run(std::vector<std::string> line) {
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  if (posix_spawn(&process, line[0].c_str(), nullptr, nullptr, arguments.data(), environ) != 0)
    throw std::runtime_error(line[0] + " cannot be run");
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

json kit(const std::string& plugin, ot::Device device, int seconds) {
  const std::string program = kit_program();
  if (program.empty())
    return {{"missing", "ocltensor-conformance is not installed beside ocltensor-info"}};
  std::array<char, 32> name{"/tmp/ocltensor-kit-XXXXXX"};
  const int made = mkstemp(name.data());
  if (made < 0) return {{"missing", "no temporary file can be made"}};
  close(made);
  const int status = run({program, "--plugin", plugin, "--device", std::to_string(device.index()),
                          "--no-abi", "--rounded-weights", "--cases", "2", "--budget",
                          std::to_string(seconds), "--only", kKitOperators, "--json", name.data()});
  std::ifstream file(name.data());
  json result = json::parse(file, nullptr, false);
  unlink(name.data());
  if (result.is_discarded()) result = json::object();
  result.erase("plugin");  // a path
  result.erase("groups");
  result["exit"] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

json speed(ot::Device device) {
  json rows = json::array();
  measure_speed(device, [&](const SpeedRow& r) {
    if (!r.error.empty()) {
      fmt::print("  {:44} {}\n", r.name, r.error);
      return rows.push_back({{"name", r.name}, {"error", r.error}});
    }
    fmt::print("  {:44} {:10.1f} us {:9.1f} {:8} {}\n", r.name, r.microseconds, r.rate, r.unit,
               r.algorithm);
    std::fflush(stdout);
    rows.push_back({{"name", r.name},
                    {"us", r.microseconds},
                    {"rate", r.rate},
                    {"unit", r.unit},
                    {"first_ms", r.first_ms},
                    {"algorithm", r.algorithm}});
  });
  return rows;
}

}  // namespace

void write_report(const std::string& file, const std::string& plugin, ot::Device device,
                  const SelfTest& self_test, int kit_seconds) {
  std::ofstream out(file);  // before the work, which takes minutes
  if (!out) throw std::runtime_error(file + " cannot be written");
  json report{{"format", kFormat},
              {"ocltensor", OCLTENSOR_VERSION},
              {"device", device_of(device)},
              {"drivers", drivers_of(device)},
              {"settings", settings()},
              {"providers", providers()},
              {"self_test", figures(self_test)}};
  fmt::print("\nspeed of {}\n", device.text());
  report["speed"] = speed(device);
  fmt::print("\na slice of the conformance kit, {} seconds\n", kit_seconds);
  std::fflush(stdout);
  report["kit"] = kit(plugin, device, kit_seconds);
  out << report.dump(1, ' ', false, json::error_handler_t::replace) << "\n";
  out.close();
  if (!out) throw std::runtime_error(file + " cannot be written");
  fmt::print("\n{} is written: plugin/opencl/tuned/README.md says where it goes\n", file);
}

}  // namespace tools
