// Writes sources, options, launches and a README.
#include "export.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ocltensor/error.h"
#include "replay/names.h"

namespace tools {
namespace {

namespace ot = ocltensor;

void write_file(const std::filesystem::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  ot::check(file.good(), "{} cannot be written: {}", path.string(), std::strerror(errno));
}

std::string launch_list(const Capture& capture) {
  std::string text =
      "# number, program, kernel, operator, work-items / per group, arguments (structures in "
      "hex)\n";
  size_t number = 0;
  for (const Launch* l : launches_of(capture)) {
    const auto& kernel = capture.kernel(l->kernel);
    text += fmt::format("{} {} {} {} | {} | {}\n", number++,
                        ot::replay::export_name(capture, capture.program(kernel.program)),
                        kernel.name, label(capture, *l), range_text(*l), arguments_text(*l, 65536));
  }
  return text;
}

std::string readme(const Capture& capture, const std::string& capture_path) {
  std::string text = "# OpenCL programs and launches of a capture\n\nCaptured on\n";
  for (const auto& d : capture.devices())
    text += fmt::format("- device {}, platform {}, driver {}, {}\n", d.name, d.platform, d.driver,
                        d.language);
  text += fmt::format("- with ocltensor {}\n\n", capture.version());
  text += "| program | build options | kernels |\n|---|---|---|\n";
  for (const auto& p : capture.programs()) {
    std::string kernels;
    for (const auto& [id, kernel] : capture.kernels())
      if (kernel.program == p.id && kernels.find(kernel.name) == std::string::npos)
        kernels += (kernels.empty() ? "" : ", ") + kernel.name;
    text += fmt::format("| {} | `{}` | {} |\n", ot::replay::export_name(capture, p), p.options,
                        kernels);
  }
  text += fmt::format(
      "\nEach program is one file of OpenCL C, complete: compile it with the options beside it "
      "(`.options`).\n`launches.txt` lists every launch with its ranges and arguments.\n\n"
      "To reproduce, with the capture itself ({}, {}):\n\n"
      "    ocltensor-replay {}                    # runs it and compares with the captured "
      "results\n"
      "    ocltensor-replay --kernel-dir . {}     # the same with the programs and options of this "
      "folder, edited\n"
      "    ocltensor-replay --time 9 {}           # how long each launch takes\n\n"
      "`--device NAME` chooses another device.\n",
      std::filesystem::path(capture_path).filename().string(), size_text(capture.file_bytes()),
      std::filesystem::path(capture_path).filename().string(),
      std::filesystem::path(capture_path).filename().string(),
      std::filesystem::path(capture_path).filename().string());
  return text;
}

}  // namespace

void export_report(const Capture& capture, const std::string& capture_path,
                   const std::string& folder) {
  const std::filesystem::path to(folder);
  std::error_code error;
  std::filesystem::create_directories(to, error);
  ot::check(!error, "the folder {} cannot be made: {}", folder, error.message());
  for (const auto& p : capture.programs()) {
    const std::string name = ot::replay::export_name(capture, p);
    write_file(to / name, p.source);
    write_file(to / (name + ".options"), p.options + "\n");
  }
  write_file(to / "launches.txt", launch_list(capture));
  write_file(to / "README.md", readme(capture, capture_path));
}

}  // namespace tools
