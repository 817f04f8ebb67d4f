// ocltensor-info: prints plugins, platforms, devices, settings and caches, and tests each device;
// for bug reports.
#include <fmt/format.h>
#include <ocltensor/ocltensor.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "base/config.h"
#include "loader/loader.h"
#include "report.h"
#include "self_test.h"

namespace {

namespace ot = ocltensor;

std::string bytes(uint64_t n) {
  return fmt::format("{:.1f} GiB", static_cast<double>(n) / (1 << 30));
}

void print_device(ot::Device device) {
  const tb_device_properties p = ot::device_properties(device);
  const auto has = [&](uint32_t f) { return (p.features & f) != 0 ? "yes" : "no"; };
  fmt::print("\n{}  {}\n", device.text(), p.name);
  fmt::print("  platform         {}, driver {}, {}\n", p.platform, p.driver_version,
             p.language_version);
  fmt::print("  vendor           {}\n", p.vendor);
  fmt::print("  compute units    {} at {} MHz, work-groups up to {}\n", p.compute_units,
             p.clock_mhz, p.max_work_group_size);
  fmt::print("  memory           {} in all, {} recommended, {} in one piece, {} KiB local\n",
             bytes(p.global_memory), bytes(p.recommended_memory), bytes(p.largest_allocation),
             p.local_memory / 1024);
  fmt::print(
      "  float64 {}, float16 arithmetic {}, memory shared with the host {}, int64 atomics {}\n",
      has(TB_FEATURE_FP64), has(TB_FEATURE_FP16_ARITHMETIC), has(TB_FEATURE_UNIFIED_MEMORY),
      has(TB_FEATURE_INT64_ATOMICS));
}

// Devices of all plugins but the host's own CPU.
std::vector<ot::Device> devices() {
  std::vector<ot::Device> all;
  for (const std::string& type : ot::device_types())
    for (int i = 0; type != "cpu" && i < ot::device_count(type); ++i) all.emplace_back(type, i);
  return all;
}

// `serving`: the files of those that are used, by device type.
void print_plugin(const ot::LoadedPlugin& plugin, std::map<std::string, std::string>& serving) {
  if (!plugin) {
    fmt::print("  refused {}\n", plugin.refusal);
    return;
  }
  const tb_plugin_descriptor_t& d = *plugin.descriptor;
  const bool first = !serving.contains(d.device_type);
  fmt::print("  {}\n    device type '{}': {} {}, ABI {}.{}{}\n", plugin.path, d.device_type, d.name,
             d.version, d.abi_major, d.abi_minor,
             first ? "" : "; not used: a plugin before it serves that type");
  if (!first) return;
  serving[d.device_type] = plugin.path;
  ot::ErrorBuffer error;
  int32_t count = 0;
  const tb_status status = plugin.api->device->count(&count, error.get());
  if (status != TB_OK) fmt::print("    no devices: status {}: {}\n", status, error.text());
  if (status == TB_OK && count == 0) fmt::print("    no devices\n");
  for (int32_t i = 0; status == TB_OK && i < count; ++i) {
    tb_device_properties p{};
    p.struct_size = sizeof p;
    const tb_status known = plugin.api->device->properties(i, &p, error.get());
    fmt::print("    {}:{}  {}\n", d.device_type, i, known == TB_OK ? p.name : error.text());
  }
}

// All that a host would look at, also where an entry that is refused keeps it from the others.
// Returns the files of those that are used, by device type.
std::map<std::string, std::string> print_plugins(const std::string& given) {
  fmt::print("\nplugins\n");
  std::map<std::string, std::string> serving;
  if (!given.empty()) print_plugin(ot::load_plugin_file(given), serving);
  bool refused = false;
  for (const ot::LoadedPlugin& plugin : ot::try_plugin_path()) {
    print_plugin(plugin, serving);
    refused = refused || !plugin;
  }
  const auto* in_host = reinterpret_cast<const void*>(&ot::device_types);
  print_plugin(ot::load_own_plugin(ot::folder_of(in_host)), serving);
  if (refused) fmt::print("  programs load none of these while an entry of the path is refused\n");
  return serving;
}

void print_devices() {
  fmt::print("\ndrivers and devices\n");
  const std::string reason = ot::unavailable_reason("ocl");  // loads what there is
  if (!reason.empty()) fmt::print("  not available: {}\n", reason);
  for (const std::string& type : ot::device_types()) {
    if (type == "cpu" || ot::device_count(type) == 0) continue;
    std::istringstream report(ot::device_report(type));
    for (std::string line; std::getline(report, line);) fmt::print("  {}\n", line);
  }
  for (const ot::Device device : devices()) print_device(device);
}

void print_settings() {
  fmt::print("\nsettings\n");
  for (const ot::Setting& s : ot::settings())
    fmt::print("  {:34} {:12} {}\n", s.name, s.value.empty() ? "-" : s.value, s.source);
}

void print_cache() {
  namespace fs = std::filesystem;
  const std::string folder = ot::config::cache_folder();
  uint64_t entries = 0;
  uint64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".bin") ++entries, total += entry.file_size(error);
  fmt::print("\nprogram cache\n  {}: {} programs, {} KiB\n", folder.empty() ? "none" : folder,
             entries, total / 1024);
}

// Fills in the tests of devices, by their text.
bool print_self_tests(std::map<std::string, tools::SelfTest>& tests) {
  bool right = true;
  for (const ot::Device device : devices()) {
    fmt::print("\nself-test of {}\n", device.text());
    tools::SelfTest t;
    try {
      t = tools::run_self_test(device);
    } catch (const ot::Error& e) {
      if (e.status() != TB_UNSUPPORTED) throw;
      fmt::print("  not possible     {}\n", e.what());  // a backend need not have operators
      continue;
    }
    right = right && t.right;
    tests[device.text()] = t;
    fmt::print("  result           {}\n",
               t.right ? "right" : "WRONG: this driver cannot be trusted");
    fmt::print("  first result     {:.0f} ms after the first call\n", t.first_result_ms);
    fmt::print("  device copy      {:.1f} GB/s, upload {:.1f}, download {:.1f}\n", t.copy_gb_per_s,
               t.upload_gb_per_s, t.download_gb_per_s);
    fmt::print("  small operator   {:.2f} us in a chain, {:.1f} us with a wait\n", t.launch_us,
               t.round_trip_us);
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  // PoCL up to 5 compiles kernels twice otherwise.
  setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
  bool no_test = false;
  std::string plugin;
  CLI::App app{"Shows plugins, platforms, devices, settings and caches, and measures each device."};
  app.add_flag("--no-self-test", no_test, "only look, run nothing");
  std::string report;
  std::string reported = "ocl:0";
  auto* file = app.add_option("--report", report,
                              "also write a file to send in: what the device is, how right and how "
                              "fast it is (three minutes)");
  int kit_seconds = 60;
  app.add_option("--kit-seconds", kit_seconds, "the report's slice of the conformance kit")
      ->needs(file)
      ->capture_default_str();
  app.add_option("--device", reported, "the report's device")->needs(file)->capture_default_str();
  app.add_option("--plugin", plugin, "path of the plugin (default: found beside the library)");
  CLI11_PARSE(app, argc, argv);
  try {
    fmt::print("ocltensor {}, ABI {}.{}\n", OCLTENSOR_VERSION, TB_ABI_MAJOR, TB_ABI_MINOR);
    if (!plugin.empty()) ot::load_plugin(plugin);
    ot::validate_settings();
    const auto serving = print_plugins(plugin);
    print_devices();
    print_settings();
    print_cache();
    std::map<std::string, tools::SelfTest> tests;
    const bool right = (no_test && report.empty()) || print_self_tests(tests);
    if (!report.empty()) {
      const ot::Device device(reported);
      if (!tests.contains(device.text()))
        throw std::runtime_error(reported + " is not there, or has no operators");
      tools::write_report(report, serving.at(std::string(device.type())), device,
                          tests[device.text()], kit_seconds);
    }
    if (!right) return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "ocltensor-info: {}\n", e.what());
    return 2;
  }
  return 0;
}
